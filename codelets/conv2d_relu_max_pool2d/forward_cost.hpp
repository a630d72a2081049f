// What the forward kernels cost, so that each takes the shapes on which it is fastest: cycles a
// pooled pixel, all its output channels together, fitted to measurements on layers of networks.
#pragma once

#include "codelets/avx512.hpp"
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d {

/// The direct kernel has one way for output channels that fill no vector, and one for others.
inline bool by_columns(const Geometry& g) noexcept { return g.y.c < lanes; }

/// Products, pooling, and by columns dealing these out.
inline double direct_cycles(const Geometry& g) noexcept {
  const auto channels = static_cast<double>(g.x.c), outputs = static_cast<double>(g.y.c),
             products = 2.2 * static_cast<double>(g.taps()) * channels;
  const auto vectors = [](std::int64_t n) { return static_cast<double>(divide_up(n, lanes)); };
  if (!by_columns(g)) return vectors(g.y.c) * (products + 12);
  return outputs * (products + 22) * vectors(g.y.w) / static_cast<double>(g.y.w) + 4 * channels;
}

/// A GEMM's products, then pooling what it wrote: slow for channels that fill no vector.
inline double gemm_cycles(const Geometry& g) noexcept {
  const auto weights = static_cast<double>(g.taps() * g.x.c),
             vectors = static_cast<double>(divide_up(g.y.c, lanes)),
             rest = static_cast<double>(g.y.c % lanes);
  return vectors * (2.5 * weights + 40) + 14 * rest;
}

/// Products and transforms back by output channels, transforms of tiles by input channels.
inline double winograd_cycles(const Geometry& g) noexcept {
  const auto vectors = static_cast<double>(divide_up(g.y.c, lanes)),
             groups = static_cast<double>(divide_up(g.x.c, lanes));
  return vectors * (8 * static_cast<double>(g.x.c) + 45) + 60 * groups;
}

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
