#include "codelets/cuda/kernel.hpp"
#include "codelets/sgd/step_one.hpp"

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t count = 0;
  sgd::Rule rule;
  bool has_velocity = false;
};

State state_of(const graph::OpView& op) {
  return {.count = op.operand(0).shape.elements(),
          .rule = sgd::Rule(op),
          .has_velocity = op.has_operand(3)};
}

void run(const runtime::KernelCall& call) {
  const State state = *static_cast<const State*>(call.state);
  float* weight = call.inout<float>(0);
  float* velocity = state.has_velocity ? call.inout<float>(3) : nullptr;
  const float *gradient = call.in<float>(1), *rate = call.in<float>(2);
  cuda::for_each(call, state.count, [=] ARENITE_THREAD(std::int64_t i) {
    sgd::step_one(state.rule, *rate, gradient[i], weight[i],
                  velocity != nullptr ? velocity + i : nullptr);
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(sgd)(runtime::KernelTable& kernels) {
  kernels.add("sgd", cuda::own(prepare<state_of, run>));
}

}  // namespace arenite::codelets
