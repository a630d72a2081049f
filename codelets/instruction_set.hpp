// The instructions that kernels were compiled for, which may be those of another machine.
#pragma once

#include <span>

namespace arenite::codelets {

/// Extensions of x86-64 by their names in __builtin_cpu_supports(): "avx2", "avx512f". Those that
/// every x86-64 processor has are not listed. Safe to call where they are missing.
std::span<const char* const> kernel_instructions() noexcept;

}  // namespace arenite::codelets
