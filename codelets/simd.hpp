// Kernels that Highway compiles for several sets of instructions, as the registry has them.
#pragma once

#include "codelets/registry.hpp"

#include <arenite/error.hpp>

#include "src/expr/simd/isa.hpp"

namespace arenite::codelets {

/// In place of a kernel where the processor, or ARENITE_ISA, has no vectors for it.
inline Kernel without_vectors(const std::string& name) {
  return {.name = name,
          .supports = [](const OpView&) -> graph::Support { return "no AVX2"; },
          .prepare = [name](const OpView&) -> PreparedKernel {
            fail({.found = "kernel '" + name + "' without AVX2", .expected = "another kernel"});
          }};
}

}  // namespace arenite::codelets

/// Kernel NAME(), which is the target's make_NAME().
#define ARENITE_DISPATCHED(NAME)                \
  HWY_EXPORT(make_##NAME);                      \
  Kernel NAME() {                               \
    expr::apply_isa();                          \
    return HWY_DYNAMIC_DISPATCH(make_##NAME)(); \
  }
