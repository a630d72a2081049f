// A GPU's own convolutions and dense layers on integers, whose sums are exact in float32 in
// whatever order they are added: large enough for every tile, part and thread to count. For tests
// only.
#pragma once

#include <arenite/runtime/kernel.hpp>

#include "codelets/testing.hpp"

#include <cstddef>
#include <map>
#include <string>

namespace arenite::reference {

/// How many kernels that is: 15 directions' own choice of tiles and five tilings each, first
/// layers' 3, what 5 directions have behind the libraries, and of 9 directions both kinds of
/// Winograd's blocks, and those that large layers take, which are left out under sanitizers.
inline constexpr std::size_t exact_kernels =
    15 * 6 + 3 + 5 + 9 * 2 + (ARENITE_PLAIN_KERNELS ? 0 : 9);

/// Runs the directions of convolutions, alone and fused, and of dense layers, with all kernels of
/// the table that are our own and fast; expects the plain CPU kernels' very numbers. Returns how
/// often each ran, by "operator/kernel".
std::map<std::string, int> compare_exact_products(
    const runtime::KernelTable& table,
    const codelets::testing::Runner& runner = codelets::testing::run_here);

}  // namespace arenite::reference
