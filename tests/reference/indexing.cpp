// Rows from an index that is data, and the arithmetic of such indices.
#include "tests/reference/rules.hpp"

namespace arenite::reference {
namespace {

/// Where `rows` rows of x from the index on begin, in elements; −1 where they are not all there.
std::int64_t first_element(const Tensor& x, std::int64_t rows, double begin) {
  if (!(begin >= 0 && begin <= static_cast<double>(x.shape[0] - rows))) return -1;
  return static_cast<std::int64_t>(begin) * x.shape.with(0, 1).elements();
}

/// Rows that are not there are zeros.
void dynamic_slice(Call& call) {
  const Tensor& x = call.in(0);
  Tensor& y = call.out(0);
  const std::int64_t from = first_element(x, y.shape[0], call.in(1)[0]);
  if (from < 0) return;
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) y[i] = x[from + i];
}

/// Nothing is replaced where the rows are not there, or do not end where they are said to.
void replace_slice(Call& call) {
  const Tensor &x = call.in(0), &replacement = call.in(1);
  Tensor& y = call.out(0);
  y.data = x.data;
  const std::int64_t from = first_element(x, replacement.shape[0], call.in(2)[0]);
  if (from < 0) return;
  if (call.has(3) && call.in(3)[0] != call.in(2)[0] + static_cast<double>(replacement.shape[0])) {
    return;
  }
  for (std::int64_t i = 0; i < replacement.shape.elements(); ++i) y[from + i] = replacement[i];
}

void index_sum(Call& call) {
  const auto scale = static_cast<double>(call.attributes().integer("scale")),
             offset = static_cast<double>(call.attributes().integer("offset"));
  call.out(0)[0] = call.in(0)[0] + (call.has(1) ? scale * call.in(1)[0] : 0) + offset;
}

}  // namespace

void add_indexing_rules(Rules& rules) {
  rules["dynamic_slice"] = dynamic_slice;
  rules["replace_slice"] = replace_slice;
  rules["index_sum"] = index_sum;
}

}  // namespace arenite::reference
