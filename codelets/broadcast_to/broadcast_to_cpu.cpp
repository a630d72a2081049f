#include "codelets/strides.hpp"
#include "codelets/words.hpp"

#include <optional>

namespace arenite::codelets {
namespace {

struct State {
  Nest<2> runs;  ///< in y and in x
  Axis<2> run;   ///< one element of x for all of y's, or one each
  std::array<std::int64_t, 2> first{};
  std::optional<Image> image;  ///< of a result with a halo
};

State state_of(const OpView& op) {
  const graph::Value &x = op.operand(0), &y = op.result(0);
  const Strides to(y), from = Strides::repeated(x);
  State state;
  for (int i = 0; i < y.shape.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    state.runs.add({y.shape[i], {to.axis[axis], from.axis[axis]}});
  }
  state.run = state.runs.take_innermost(
      [](const auto& axis) { return axis.step[0] == 1 && axis.step[1] <= 1; });
  state.first = {to.first, from.first};
  if (y.layout.halo > 0) state.image.emplace(y);
  return state;
}

template <class T>
void run(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t length = state.run.size;
  T* result = call.out<T>(0);
  state.runs.for_each(state.first, [&](const auto& at) {
    T* y = result + at[0];
    const T* x = call.in<T>(0) + at[1];
    if (state.run.step[1] == 1) {
      std::copy_n(x, length, y);
    } else if (length > 0) {
      std::fill_n(y, length, *x);
    }
  });
  if (state.image) zero_halo(result, *state.image);
}

}  // namespace

std::vector<Kernel> broadcast_to_kernels() {
  return {plain_with_halos<prepare_real<state_of, run<float>, run<double>>, skipped_halo<0>>()};
}

}  // namespace arenite::codelets
