// Pooling of a convolution's outputs that lie in memory, and its reverse, as grids: what GPU
// libraries leave to do of the fused operation.
#pragma once

#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"
#include "codelets/cuda/windows.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d {

/// output and code = max_pool2d(relu(convolved + bias)); `convolved` [N, size.h, size.w, K] holds
/// the rows and columns that fill no window too.
static void pool_convolved(const KernelCall& call, const Geometry& g, Pair size,
                           const float* convolved, const float* bias, float* output,
                           std::uint8_t* code) {
  constexpr std::uint8_t none = dead;
  const Pair pool = g.pool;
  cuda::for_each(call, cuda::elements(g.y), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.y, i);
    const float offset = bias != nullptr ? bias[at.c] : 0;
    const std::int64_t row = size.w * g.y.c;
    const float* window =
        convolved + (at.n * size.h + at.y * pool.h) * row + at.x * pool.w * g.y.c + at.c;
    float best = 0;
    std::uint8_t winner = none, tap = 0;
    for (std::int64_t ky = 0; ky < pool.h; ++ky) {
      for (std::int64_t kx = 0; kx < pool.w; ++kx, ++tap) {
        const float value = offset + window[ky * row + kx * g.y.c];
        // The first of equals; a NaN wins.
        if (!(value > best) && value == value) continue;
        best = value;
        winner = tap;
      }
    }
    output[i] = best;
    code[i] = winner;
  });
}

/// The gradient of `convolved`, of which pool_convolved made the codes: a window's at the tap that
/// won, 0 elsewhere.
static void spread_gradient(const KernelCall& call, const Geometry& g, Pair size,
                            const float* gradient, const std::uint8_t* code, float* spread) {
  constexpr std::int64_t dead_bit = dead;
  const Pair pool = g.pool;
  // A thread writes a window, and what no window covers behind the last one.
  cuda::for_each(call, cuda::elements(g.y), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.y, i);
    const std::int64_t top = at.y * pool.h, left = at.x * pool.w,
                       bottom = at.y + 1 == g.y.h ? size.h : top + pool.h,
                       right = at.x + 1 == g.y.w ? size.w : left + pool.w;
    const std::int64_t tap = code[i];
    const bool alive = (tap & dead_bit) == 0;
    const std::int64_t row = alive ? top + tap / pool.w : -1, column = left + tap % pool.w;
    const float value = gradient[i];
    for (std::int64_t y = top; y < bottom; ++y) {
      for (std::int64_t x = left; x < right; ++x) {
        spread[((at.n * size.h + y) * size.w + x) * g.y.c + at.c] =
            y == row && x == column ? value : 0;
      }
    }
  });
}

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
