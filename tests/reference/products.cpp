// Products of matrices, one or a batch: a [.., m, n] · b [.., n, k], either read transposed.
#include "tests/reference/rules.hpp"

namespace arenite::reference {
namespace {

void matmul(Call& call) {
  const Tensor &a = call.in(0), &b = call.in(1);
  Tensor& c = call.out(0);
  const bool a_transposed = call.attributes().integer("transpose_a") == 1,
             b_transposed = call.attributes().integer("transpose_b") == 1;
  const int rank = a.shape.rank();
  const std::int64_t batch = rank == 3 ? a.shape[0] : 1, columns = c.shape.at(-1),
                     rows = rank == 1 ? 1 : c.shape.at(-2),
                     inner = b.shape.at(b_transposed ? -1 : -2);
  for (std::int64_t i = 0; i < batch * rows * columns; ++i) {
    const std::int64_t matrix = i / (rows * columns), row = i / columns % rows,
                       column = i % columns;
    for (std::int64_t p = 0; p < inner; ++p) {
      const std::int64_t in_a = a_transposed ? p * rows + row : row * inner + p,
                         in_b = b_transposed ? column * inner + p : p * columns + column;
      c[i] += a[matrix * rows * inner + in_a] * b[matrix * inner * columns + in_b];
    }
  }
}

}  // namespace

void add_product_rules(Rules& rules) { rules["matmul"] = matmul; }

}  // namespace arenite::reference
