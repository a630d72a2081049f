// Pooling of a convolution's outputs that lie in memory, and its reverse, as grids: what GPU
// libraries leave to do of the fused operation.
#pragma once

#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"
#include "codelets/cuda/windows.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d {

/// output and code = max_pool2d(relu(convolved + bias)); `convolved` [N, size.h, size.w, K] holds
/// the rows and columns that fill no window too.
static void pool_convolved(const runtime::KernelCall& call, const Geometry& g, Pair size,
                           const float* convolved, const float* bias, float* output,
                           std::uint8_t* code) {
  constexpr std::uint8_t none = dead;
  const Pair pool = g.pool;
  cuda::for_each(call, cuda::elements(g.y), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.y, i);
    const float offset = bias != nullptr ? bias[at.c] : 0;
    float best = 0;
    std::uint8_t winner = none;
    for (std::int64_t tap = 0; tap < pool.h * pool.w; ++tap) {
      const std::int64_t row = (at.n * size.h + at.y * pool.h + tap / pool.w) * size.w;
      const float value = offset + convolved[(row + at.x * pool.w + tap % pool.w) * g.y.c + at.c];
      // The first of equals; a NaN wins.
      if (!(value > best) && value == value) continue;
      best = value;
      winner = static_cast<std::uint8_t>(tap);
    }
    output[i] = best;
    code[i] = winner;
  });
}

/// The gradient of `convolved`, of which pool_convolved made the codes: a window's at the tap that
/// won, 0 elsewhere.
static void spread_gradient(const runtime::KernelCall& call, const Geometry& g, Pair size,
                            const float* gradient, const std::uint8_t* code, float* spread) {
  const Pair pool = g.pool;
  const std::int64_t row = size.w * g.y.c, count = g.y.n * size.h * row;
  cuda::for_each(call, count, [=] ARENITE_THREAD(std::int64_t i) {
    const std::int64_t k = i % g.y.c, cx = i % row / g.y.c, cy = i / row % size.h,
                       n = i / row / size.h;
    const std::int64_t oy = cy / pool.h, ox = cx / pool.w;
    float value = 0;
    if (oy < g.y.h && ox < g.y.w) {
      const std::int64_t from = cuda::index_of(g.y, n, oy, ox, k);
      if (code[from] == cy % pool.h * pool.w + cx % pool.w) value = gradient[from];
    }
    spread[i] = value;
  });
}

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
