// Stand-ins for what NVIDIA's libraries do on a GPU: for one test only.
//
// They compute on the host, in plain loops, what descriptors say; descriptors are the libraries'
// own, which need no GPU. Names are the libraries', so that a program with them calls no other.
#pragma once

#include <cstddef>

namespace arenite::gpu_libraries {

/// Scratch that each algorithm asks for, and fills.
constexpr std::size_t scratch_bytes = 1000;

/// Calls that compute fail while this is set.
bool& refusing();

/// Calls that did, since the process began.
int& computed();

}  // namespace arenite::gpu_libraries
