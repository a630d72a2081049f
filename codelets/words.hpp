// Names of the graph and the runtime that all of codelets uses without their namespaces, and what
// most kernels do while a program is built.
#pragma once

#include <arenite/runtime/kernel.hpp>

namespace arenite::codelets {

using graph::OpView;
using graph::ValueId;
using runtime::Kernel;
using runtime::KernelCall;
using runtime::prepare;
using runtime::prepared;
using runtime::PreparedKernel;
using Results = std::vector<graph::ResultType>;

/// `prepare` where operand 0 is of float32 or float64.
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
