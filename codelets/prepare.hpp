// What most kernels do while a program is built: make an immutable state of the op.
#pragma once

#include "codelets/words.hpp"

#include <memory>
#include <type_traits>
#include <utility>

namespace arenite::codelets {

/// A `Kernel::prepare`: the state that `build` makes of the op, and the function to run on it,
/// which is `run` or what `run` chooses when it is given the state.
template <auto build, auto run>
PreparedKernel prepare(const OpView& op) {
  auto state = build(op);
  runtime::KernelFunction function = nullptr;
  if constexpr (std::is_convertible_v<decltype(run), runtime::KernelFunction>) {
    function = run;
  } else {
    function = run(state);
  }
  return {function, std::make_shared<const decltype(state)>(std::move(state))};
}

/// The same where operand 0 is of float32 or float64.
template <auto build, auto of_floats, auto of_doubles>
PreparedKernel prepare_real(const OpView& op) {
  return op.operand(0).type == DType::float64 ? prepare<build, of_doubles>(op)
                                              : prepare<build, of_floats>(op);
}

/// A plain kernel that knows the halos of its operands, as `wanted_halo` says, and of its results.
template <auto prepare_op, auto wanted_halo>
Kernel plain_with_halos() {
  return {.name = "plain", .prepare = prepare_op, .wanted_halo = wanted_halo, .writes_halo = true};
}

/// A `build` of what is made of an op alone.
template <class State>
State made_of(const OpView& op) {
  return State(op);
}

}  // namespace arenite::codelets
