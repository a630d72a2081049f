// The GPU's own kernels as C++ compiles them: their grids are loops.
#pragma once

#include <arenite/operators.hpp>
#include <arenite/runtime/kernel.hpp>

#include "codelets/map/map.hpp"

namespace arenite::codelets {
#define ARENITE_OPERATOR(folder) void register_##folder##_loops(runtime::KernelTable& kernels);
#include "cuda_operators.def"
#undef ARENITE_OPERATOR
#define ARENITE_OPERATOR(folder) \
  void register_##folder##_tiled_loops(runtime::KernelTable& kernels);
#include "tiled_operators.def"
#undef ARENITE_OPERATOR
}  // namespace arenite::codelets

namespace arenite::testing {

inline void add_grids_as_loops(runtime::KernelTable& table) {
#define ARENITE_OPERATOR(folder) codelets::register_##folder##_tiled_loops(table);
#include "tiled_operators.def"
#undef ARENITE_OPERATOR
#define ARENITE_OPERATOR(folder) codelets::register_##folder##_loops(table);
#include "cuda_operators.def"
#undef ARENITE_OPERATOR
  codelets::share_kernels_of_map(operators(), table);
}

}  // namespace arenite::testing
