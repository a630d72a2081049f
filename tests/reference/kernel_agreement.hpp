// Kernels against the reference: for tests only.
#pragma once

#include <arenite/runtime/kernel.hpp>

#include "codelets/testing.hpp"

#include <functional>
#include <map>
#include <string>

namespace arenite::reference {

/// Runs each op of `operator_cases`, and those of their gradients, with every kernel of the table
/// for the device that supports it; expects what the op's rule gives in double.
/// Returns how many were compared, by operator. `begins` is told of each case.
std::map<std::string, int> compare_kernels(
    const runtime::KernelTable& table, DeviceKind device,
    const codelets::testing::Runner& runner = codelets::testing::run_here,
    const std::function<void(const std::string&)>& begins = {});

}  // namespace arenite::reference
