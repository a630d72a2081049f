#include "codelets/cuda/kernel.hpp"

namespace arenite::codelets {
namespace {

/// Elements of dx: all, and those of the slice, from `begin` to `end`.
struct State {
  std::int64_t all = 0, begin = 0, end = 0;
};

State state_of(const OpView& op) {
  const Shape &gradient = op.operand(0).shape, &dx = op.result(0).shape;
  const std::int64_t begin = op.integer("begin") * cuda::row_elements(gradient);
  return {.all = dx.elements(), .begin = begin, .end = begin + gradient.elements()};
}

void run(const KernelCall& call, const State& s) {
  const float* gradient = call.in<float>(0);
  float* dx = call.out<float>(0);
  cuda::for_each(call, s.all, [=] ARENITE_THREAD(std::int64_t i) {
    dx[i] = i >= s.begin && i < s.end ? gradient[i - s.begin] : 0;
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(slice)(runtime::KernelTable& kernels) {
  kernels.add("slice_grad", cuda::own(prepare<state_of, run>));
}

}  // namespace arenite::codelets
