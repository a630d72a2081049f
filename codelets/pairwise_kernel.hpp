// The loops of operators that are `pairwise`.
#pragma once

#include "codelets/registry.hpp"
#include "codelets/strides.hpp"
#include "codelets/words.hpp"

#include <optional>

namespace arenite::codelets {

struct PairwiseState {
  Nest<3> runs;  ///< in a, b and y
  Axis<3> run;   ///< one element of b for all of a's, or one each
  std::array<std::int64_t, 3> first{};
  std::optional<Image> image;  ///< of a result with a halo
};

inline PairwiseState pairwise_state(const OpView& op) {
  const graph::Value& y = op.result(0);
  const Strides a(op.operand(0)), b = Strides::repeated(op.operand(1)), to(y);
  PairwiseState state;
  for (int i = 0; i < y.shape.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    state.runs.add({y.shape[i], {a.axis[axis], b.axis[axis], to.axis[axis]}});
  }
  state.run = state.runs.take_innermost(
      [](const auto& axis) { return axis.step[0] == 1 && axis.step[1] <= 1 && axis.step[2] == 1; });
  state.first = {a.first, b.first, to.first};
  if (y.layout.halo > 0) state.image.emplace(y);
  return state;
}

/// `Operation` gives T from two of T. The result may lie on a, and on b that is not repeated.
template <class Operation, class T>
void run_pairwise(const KernelCall& call) {
  const auto& state = *static_cast<const PairwiseState*>(call.state);
  const std::int64_t length = state.run.size;
  constexpr Operation operation;
  T* result = call.out<T>(0);
  state.runs.for_each(state.first, [&](const auto& at) {
    const T *a = call.in<T>(0) + at[0], *b = call.in<T>(1) + at[1];
    T* y = result + at[2];
    if (state.run.step[1] == 1) {
#pragma omp simd
      for (std::int64_t i = 0; i < length; ++i) y[i] = operation(a[i], b[i]);
    } else if (length > 0) {
      const T one = *b;
#pragma omp simd
      for (std::int64_t i = 0; i < length; ++i) y[i] = operation(a[i], one);
    }
  });
  if (state.image) zero_halo(result, *state.image);
}

template <class Operation>
std::vector<Kernel> pairwise_kernels() {
  return {plain_with_halos<
      prepare_real<pairwise_state, run_pairwise<Operation, float>, run_pairwise<Operation, double>>,
      skipped_halo<0, 1>>()};
}

}  // namespace arenite::codelets
