#include "codelets/sgd/sgd.hpp"
#include "codelets/sgd/step.hpp"

#include <algorithm>

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t count = 0;
  sgd::Rule rule;
};

/// Floats updated between two prefetches: four cache lines of each array.
constexpr std::int64_t block = 64;
/// How far ahead lines are fetched for writing: another core has read the weights, and asking for
/// ownership only at the store would wait for it.
constexpr std::int64_t ahead = 4 * block;

template <bool with_velocity, bool with_decay>
void run(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  float* weight = call.renewed<float>(0, 0, state.count);
  const float* gradient = call.in<float>(1);
  const float rate = *call.in<float>(2);
  float* velocity = with_velocity ? call.renewed<float>(1, 3, state.count) : nullptr;
  for (std::int64_t from = 0; from < state.count; from += block) {
    if (from + ahead < state.count) {
      const std::int64_t end = std::min(from + ahead + block, state.count);
      for (std::int64_t i = from + ahead; i < end; i += 16) {
        __builtin_prefetch(weight + i, 1, 3);
        if constexpr (with_velocity) __builtin_prefetch(velocity + i, 1, 3);
      }
    }
    sgd::step<with_velocity, with_decay>(state.rule, rate, gradient + from, weight + from,
                                         with_velocity ? velocity + from : nullptr,
                                         std::min(block, state.count - from));
  }
}

PreparedKernel choose(const OpView& op) {
  const auto state = std::make_shared<const State>(
      State{.count = op.operand(0).shape.elements(), .rule = sgd::Rule(op)});
  const bool decay = state->rule.decay != 0;
  if (op.has_operand(3)) return {decay ? run<true, true> : run<true, false>, state};
  return {decay ? run<false, true> : run<false, false>, state};
}

}  // namespace

std::vector<Kernel> sgd_kernels() { return {{.name = "plain", .prepare = choose}}; }

}  // namespace arenite::codelets
