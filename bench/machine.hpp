// The machine that numbers belong to.
#pragma once

#include <string>

namespace arenite::bench {

std::string cpu_name();  ///< "AMD EPYC …"; "unknown" where the system does not say

/// Single-precision GFLOP/s of one core that does nothing but fused multiply-adds in registers:
/// the best of some runs, 50 ms in all. Widest vectors this file was compiled for.
double fma_peak();

}  // namespace arenite::bench
