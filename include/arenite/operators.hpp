// The operators of this process: the built-in ones, and yours.
//
// `register_operator` adds one from outside the library (examples/outside_operator.cpp shows it).
// Register at the start, before another thread uses the tables: registrations wait for each other,
// but look-ups take no lock.
#pragma once

#include <arenite/graph/operator.hpp>
#include <arenite/runtime/kernel.hpp>

#include <vector>

namespace arenite {

/// All definitions and all kernels. The built-in ones are there from the first call on.
graph::OperatorTable& operators();
runtime::KernelTable& kernels();

/// Adds the operator with its kernels, the fastest first. Throws Error, and adds nothing, on a name
/// already taken, an incomplete definition, a kernel without `prepare` or two of one name and
/// device.
void register_operator(graph::OperatorDefinition definition, std::vector<runtime::Kernel> kernels);

}  // namespace arenite
