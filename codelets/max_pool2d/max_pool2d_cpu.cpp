// Max pooling on the CPU, for any window, stride, padding and halo. Of 2×2 windows all taps stay in
// registers.
#include "codelets/max_pool2d/max_pool2d.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets::max_pool2d {
namespace {

using pool2d::Taps;
using pool2d::taps_of;

void pool_window(const Geometry& g, const float* x, std::int64_t i, const Taps& taps, float* best,
                 std::uint8_t* code) {
  const std::int64_t channels = g.x.c;
  bool first = true;
  for (std::int64_t ky = taps.top; ky < taps.bottom; ++ky) {
    for (std::int64_t kx = taps.left; kx < taps.right; ++kx) {
      const float* value = x + g.x.at(i, taps.y + ky, taps.x + kx);
      const auto tap = static_cast<std::uint8_t>(ky * g.window.kernel.w + kx);
      if (first) {
        std::copy_n(value, channels, best);
        std::fill_n(code, channels, tap);
        first = false;
        continue;
      }
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c) {
        const bool wins = (value[c] > best[c]) | (value[c] != value[c]);
        best[c] = wins ? value[c] : best[c];
        code[c] = wins ? tap : code[c];
      }
    }
  }
}

void run_forward(const KernelCall& call, const Geometry& g) {
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    pool_window(g, call.in<float>(0), i, taps_of(g.window, g.x, oy, ox),
                call.out<float>(0) + g.y.at(i, oy, ox),
                call.out<std::uint8_t>(1) + g.code.at(i, oy, ox));
  });
  zero_halo(call.out<float>(0), g.y);
  zero_halo(call.out<std::uint8_t>(1), g.code);
}

/// `count` channels of the 2×2 window whose rows start at `upper` and `lower`. The taps are 32 bits
/// wide until the end: with bytes in the loop the compiler would want 64 channels a vector.
template <int count>
void pool_2x2(const float* upper, const float* lower, std::int64_t channels, float* y,
              std::uint8_t* code) {
  std::int32_t tap[count];
#pragma omp simd
  for (int c = 0; c < count; ++c) {
    float best = upper[c];
    std::int32_t winner = 0;
    const auto meet = [&](float value, std::int32_t t) {
      const bool wins = (value > best) | (value != value);
      best = wins ? value : best;
      winner = wins ? t : winner;
    };
    meet(upper[channels + c], 1);
    meet(lower[c], 2);
    meet(lower[channels + c], 3);
    y[c] = best;
    tap[c] = winner;
  }
  for (int c = 0; c < count; ++c) code[c] = static_cast<std::uint8_t>(tap[c]);
}

/// 2×2 windows without overlap or padding.
void run_forward_2x2(const KernelCall& call, const Geometry& g) {
  const std::int64_t channels = g.x.c;
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    const float* upper = call.in<float>(0) + g.x.at(i, 2 * oy, 2 * ox);
    const float* lower = upper + g.x.row;
    float* y = call.out<float>(0) + g.y.at(i, oy, ox);
    std::uint8_t* code = call.out<std::uint8_t>(1) + g.code.at(i, oy, ox);
    std::int64_t c = 0;
    for (; c + 16 <= channels; c += 16) {
      pool_2x2<16>(upper + c, lower + c, channels, y + c, code + c);
    }
    for (; c < channels; ++c) pool_2x2<1>(upper + c, lower + c, channels, y + c, code + c);
  });
  zero_halo(call.out<float>(0), g.y);
  zero_halo(call.out<std::uint8_t>(1), g.code);
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
        const std::uint8_t* code = call.in<std::uint8_t>(1) + g.code.at(i, oy, ox);
        const Taps taps = taps_of(g.window, g.x, oy, ox);
        for (std::int64_t ky = taps.top; ky < taps.bottom; ++ky) {
          for (std::int64_t kx = taps.left; kx < taps.right; ++kx) {
            const auto tap = static_cast<std::uint8_t>(ky * g.window.kernel.w + kx);
            float* to = dx + g.x.at(i, taps.y + ky, taps.x + kx);
#pragma omp simd
            for (std::int64_t c = 0; c < channels; ++c) to[c] += code[c] == tap ? dy[c] : 0.0f;
          }
        }
      }
    }
  }
}

/// The way back of `pool_2x2`. One loop a tap: of all at once the compiler makes branches.
template <int count>
void spread_2x2(const float* dy, const std::uint8_t* code, std::int64_t channels, float* upper,
                float* lower) {
  std::int32_t tap[count];
  float gradient[count];
  for (int c = 0; c < count; ++c) {
    tap[c] = code[c];
    gradient[c] = dy[c];
  }
  const auto store = [&](float* dx, std::int32_t winner) {
#pragma omp simd
    for (int c = 0; c < count; ++c) dx[c] = tap[c] == winner ? gradient[c] : 0.0f;
  };
  store(upper, 0);
  store(upper + channels, 1);
  store(lower, 2);
  store(lower + channels, 3);
}

void run_grad_2x2(const KernelCall& call, const Geometry& g) {
  const std::int64_t channels = g.x.c;
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    const float* dy = call.in<float>(0) + g.y.at(i, oy, ox);
    const std::uint8_t* code = call.in<std::uint8_t>(1) + g.code.at(i, oy, ox);
    float* upper = call.out<float>(0) + g.x.at(i, 2 * oy, 2 * ox);
    float* lower = upper + g.x.row;
    std::int64_t c = 0;
    for (; c + 16 <= channels; c += 16)
      spread_2x2<16>(dy + c, code + c, channels, upper + c, lower + c);
    for (; c < channels; ++c) spread_2x2<1>(dy + c, code + c, channels, upper + c, lower + c);
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
                          skipped_halo<0, 1>>();
}

}  // namespace arenite::codelets::max_pool2d
