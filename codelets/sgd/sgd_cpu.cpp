#include "codelets/sgd/sgd.hpp"

#include <algorithm>

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t count = 0;
  float momentum = 0, weight_decay = 0;
};

/// Floats updated between two prefetches: four cache lines of each array.
constexpr std::int64_t block = 64;
/// How far ahead lines are fetched for writing: another core has read the weights, and asking for
/// ownership only at the store would wait for it.
constexpr std::int64_t ahead = 4 * block;

template <bool with_velocity, bool with_decay>
void run(const runtime::KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  float* weight = call.inout<float>(0);
  const float* gradient = call.in<float>(1);
  const float rate = *call.in<float>(2);
  float* velocity = with_velocity ? call.inout<float>(3) : nullptr;
  const float momentum = state.momentum, decay = state.weight_decay;
  for (std::int64_t from = 0; from < state.count; from += block) {
    const std::int64_t to = std::min(from + block, state.count);
    if (from + ahead < state.count) {
      const std::int64_t end = std::min(from + ahead + block, state.count);
      for (std::int64_t i = from + ahead; i < end; i += 16) {
        __builtin_prefetch(weight + i, 1, 3);
        if constexpr (with_velocity) __builtin_prefetch(velocity + i, 1, 3);
      }
    }
#pragma omp simd
    for (std::int64_t i = from; i < to; ++i) {
      float g = gradient[i];
      // Skipped, not multiplied by 0: an infinite weight must not turn into NaN.
      if constexpr (with_decay) g += decay * weight[i];
      if constexpr (with_velocity) {
        g += momentum * velocity[i];
        velocity[i] = g;
      }
      weight[i] -= rate * g;
    }
  }
}

runtime::PreparedKernel prepare(const graph::OpView& op) {
  const auto state = std::make_shared<const State>(
      State{.count = op.operand(0).shape.elements(),
            .momentum = static_cast<float>(op.real("momentum")),
            .weight_decay = static_cast<float>(op.real("weight_decay"))});
  const bool decay = state->weight_decay != 0;
  if (op.has_operand(3)) return {decay ? run<true, true> : run<true, false>, state};
  return {decay ? run<false, true> : run<false, false>, state};
}

}  // namespace

std::vector<runtime::Kernel> sgd_kernels() { return {{.name = "plain", .prepare = prepare}}; }

}  // namespace arenite::codelets
