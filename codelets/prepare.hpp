// What most kernels do while a program is built: make an immutable state of the op.
#pragma once

#include <arenite/runtime/kernel.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace arenite::codelets {

/// A `Kernel::prepare`: the state that `build` makes of the op, and the function to run on it,
/// which is `run` or what `run` chooses when it is given the state.
template <auto build, auto run>
runtime::PreparedKernel prepare(const graph::OpView& op) {
  auto state = build(op);
  runtime::KernelFunction function = nullptr;
  if constexpr (std::is_convertible_v<decltype(run), runtime::KernelFunction>) {
    function = run;
  } else {
    function = run(state);
  }
  return {function, std::make_shared<const decltype(state)>(std::move(state))};
}

}  // namespace arenite::codelets
