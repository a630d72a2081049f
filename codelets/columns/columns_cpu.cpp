#include "codelets/columns/pieces.hpp"
#include "codelets/words.hpp"

#include <algorithm>

namespace arenite::codelets {
namespace {

void run(const KernelCall& call, const columns::State& state) {
  float* y = call.out<float>(0);
  for (std::size_t i = 0; i < state.pieces.size(); ++i) {
    const columns::Piece& piece = state.pieces[i];
    if (piece.columns == 0) continue;  // of however many rows
    const float* x = call.in<float>(i);
    for (std::int64_t row = 0; row < piece.rows; ++row) {
      std::copy_n(x + piece.from + row * piece.stride, piece.columns,
                  y + piece.to + row * state.width);
    }
  }
}

}  // namespace

std::vector<Kernel> stack_columns_kernels() {
  return {{.name = "plain", .prepare = prepare<columns::pieces_of<0>, run>}};
}

std::vector<Kernel> join_columns_kernels() {
  return {{.name = "plain", .prepare = prepare<columns::pieces_of<1>, run>}};
}

}  // namespace arenite::codelets
