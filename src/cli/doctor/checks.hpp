// The checks of `arenite doctor`, a file for each. They use what training uses, so that both find
// the same; each may crash or hang on a broken machine, and runs contained (contained.hpp).
#pragma once

#include "src/cli/doctor/finding.hpp"

#include <arenite/runtime/session.hpp>

#include <string>

namespace arenite::cli::doctor {

Finding check_starpu();      ///< version, library, what it was built with
Finding check_cpu();         ///< instructions that kernels need, LIBXSMM's code generator
Finding check_processors();  ///< cores, caches and memory, and what is left of them to this process
Finding check_gpu();         ///< what CUDA sees; runs a graph there
Finding check_locking();     ///< whether the main example's memory can be locked
Finding check_data();        ///< Fashion-MNIST: where, and whether it is that
Finding check_folders();     ///< the cache's and StarPU's
Finding check_perf();        ///< what flame graphs are made with
Finding check_run();         ///< a graph on the CPU's workers, correct to the bit

/// Compiles and evaluates a graph of a few ops, on whole numbers, for which every order of sums
/// gives the same bits. Empty: the result is right; else what was found instead. Throws Error.
std::string run_small_graph(runtime::Session& session);

}  // namespace arenite::cli::doctor
