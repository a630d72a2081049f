#include "codelets/columns/pieces.hpp"
#include "codelets/cuda/kernel.hpp"

namespace arenite::codelets {
namespace {

void run(const KernelCall& call, const columns::State& state) {
  float* y = call.out<float>(0);
  const std::int64_t width = state.width;
  for (std::size_t i = 0; i < state.pieces.size(); ++i) {
    const columns::Piece piece = state.pieces[i];
    const float* x = call.in<float>(i);
    cuda::for_each(call, piece.rows * piece.columns, [=] ARENITE_THREAD(std::int64_t at) {
      const std::int64_t row = at / piece.columns, column = at % piece.columns;
      y[piece.to + row * width + column] = x[piece.from + row * piece.stride + column];
    });
  }
}

}  // namespace

void ARENITE_CUDA_KERNELS(columns)(runtime::KernelTable& kernels) {
  kernels.add("stack_columns", cuda::own(prepare<columns::pieces_of<0>, run>));
  kernels.add("join_columns", cuda::own(prepare<columns::pieces_of<1>, run>));
}

}  // namespace arenite::codelets
