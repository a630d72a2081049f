// Average pooling on the CPU, for any window, stride, padding and halo.
//
// Sums are in float, a window row at a time and then over rows: pooling a whole image rounds no
// more often than its rows and columns are many.
#include "codelets/avg_pool2d/avg_pool2d.hpp"
#include "codelets/words.hpp"

#include <type_traits>

namespace arenite::codelets::avg_pool2d {
namespace {

using pool2d::Taps;

/// Calls f(count, c) for all channels c … c + count − 1, in runs of a vector, of a quarter and of
/// one. `count` is a constant, so that sums over taps stay in registers.
template <class F>
void for_each_run(std::int64_t channels, F f) {
  std::int64_t c = 0;
  for (; c + 16 <= channels; c += 16) f(std::integral_constant<int, 16>{}, c);
  for (; c + 4 <= channels; c += 4) f(std::integral_constant<int, 4>{}, c);
  for (; c < channels; ++c) f(std::integral_constant<int, 1>{}, c);
}

/// `count` channels of one window; `first` is its first tap inside the image.
template <int count>
void average(const Image& x, const Taps& taps, float weight, const float* first, float* y) {
  float sum[count] = {};
  for (std::int64_t ky = taps.top; ky < taps.bottom; ++ky, first += x.row) {
    const float* value = first;
    float row[count] = {};
    for (std::int64_t kx = taps.left; kx < taps.right; ++kx, value += x.c) {
#pragma omp simd
      for (int c = 0; c < count; ++c) row[c] += value[c];
    }
#pragma omp simd
    for (int c = 0; c < count; ++c) sum[c] += row[c];
  }
#pragma omp simd
  for (int c = 0; c < count; ++c) y[c] = weight * sum[c];
}

void run_forward(const KernelCall& call, const Geometry& g) {
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    const Taps taps = pool2d::taps_of(g.window, g.x, oy, ox);
    const float weight = g.weight(taps);
    const float* first = call.in<float>(0) + g.x.at(i, taps.y + taps.top, taps.x + taps.left);
    float* y = call.out<float>(0) + g.y.at(i, oy, ox);
    for_each_run(g.x.c, [&](auto count, std::int64_t c) {
      average<count()>(g.x, taps, weight, first + c, y + c);
    });
  });
  zero_halo(call.out<float>(0), g.y);
}

/// 2×2 windows without overlap or padding.
void run_forward_2x2(const KernelCall& call, const Geometry& g) {
  const std::int64_t channels = g.x.c;
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    const float* upper = call.in<float>(0) + g.x.at(i, 2 * oy, 2 * ox);
    const float* lower = upper + g.x.row;
    float* y = call.out<float>(0) + g.y.at(i, oy, ox);
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      y[c] = 0.25f * ((upper[c] + upper[channels + c]) + (lower[c] + lower[channels + c]));
    }
  });
  zero_halo(call.out<float>(0), g.y);
}

/// Bare loops: with the innermost one in a lambda GCC 12 makes code a fifth slower.
void run_grad(const KernelCall& call, const Geometry& g) {
  const std::int64_t channels = g.x.c;
  float* dx = call.out<float>(0);
  std::fill_n(dx, g.x.n * g.x.plane, 0.0f);
  for (std::int64_t i = 0; i < g.y.n; ++i) {
    for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
      for (std::int64_t ox = 0; ox < g.y.w; ++ox) {
        const float* dy = call.in<float>(0) + g.y.at(i, oy, ox);
        const Taps taps = pool2d::taps_of(g.window, g.x, oy, ox);
        const float weight = g.weight(taps);
        for (std::int64_t ky = taps.top; ky < taps.bottom; ++ky) {
          for (std::int64_t kx = taps.left; kx < taps.right; ++kx) {
            float* to = dx + g.x.at(i, taps.y + ky, taps.x + kx);
#pragma omp simd
            for (std::int64_t c = 0; c < channels; ++c) to[c] += weight * dy[c];
          }
        }
      }
    }
  }
}

void run_grad_2x2(const KernelCall& call, const Geometry& g) {
  const std::int64_t channels = g.x.c;
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    const float* dy = call.in<float>(0) + g.y.at(i, oy, ox);
    float* upper = call.out<float>(0) + g.x.at(i, 2 * oy, 2 * ox);
    float* lower = upper + g.x.row;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const float share = 0.25f * dy[c];
      upper[c] = share;
      upper[channels + c] = share;
      lower[c] = share;
      lower[channels + c] = share;
    }
  });
  pool2d::zero_uncovered(call.out<float>(0), g.x, g.y);
  zero_halo(call.out<float>(0), g.x);
}

}  // namespace

Kernel plain_forward() {
  return plain_with_halos<pool2d::by_window<Geometry::forward, run_forward_2x2, run_forward>,
                          skipped_halo<0>>();
}

Kernel plain_grad() {
  return plain_with_halos<pool2d::by_window<Geometry::grad, run_grad_2x2, run_grad>,
                          skipped_halo<0>>();
}

}  // namespace arenite::codelets::avg_pool2d
