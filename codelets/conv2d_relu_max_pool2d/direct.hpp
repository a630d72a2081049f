// The two ways of the direct forward kernel, which have their own files.
#pragma once

#include "codelets/avx512.hpp"
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d::direct {

#ifdef ARENITE_AVX512

/// Lanes are output channels, at least 16.
graph::Support channels_support(const Geometry& g);
std::int64_t channels_workspace(const Geometry& g);  ///< bytes
PreparedKernel prepare_channels(const Geometry& g);

/// Lanes are pooled columns, of fewer channels.
graph::Support columns_support(const Geometry& g);
std::int64_t columns_workspace(const Geometry& g);
PreparedKernel prepare_columns(const Geometry& g);

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d::direct
