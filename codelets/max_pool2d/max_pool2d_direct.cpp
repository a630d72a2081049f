// 2×2 max pooling of few channels: one vector holds the outputs of several windows side by side.
//
//   C = 4     upper row:  p0 p1 | p2 p3 | p4 p5 | p6 p7      32 floats, two loads
//             left taps:  p0      p2      p4      p6         one permutation of both
//             right taps: p1      p3      p5      p7         another
#include "codelets/avx512.hpp"
#include "codelets/max_pool2d/max_pool2d.hpp"
#include "codelets/words.hpp"

#include <array>

namespace arenite::codelets::max_pool2d {

#ifdef ARENITE_AVX512

namespace {

using Lanes = std::array<std::int32_t, lanes>;

struct Direct {
  Geometry g;
  std::int64_t group;             ///< windows a vector
  alignas(64) Lanes left, right;  ///< forward: output lane → input element
  /// Gradient: input element (0–15, 16–31) → output lane, and the tap it is in the upper row.
  alignas(64) std::array<Lanes, 2> source, tap;

  /// Lanes that are used when this many windows are left in the row.
  std::uint32_t outputs(std::int64_t windows) const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{1} << (windows * g.x.c)) - 1);
  }
  std::uint32_t inputs(std::int64_t windows) const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{1} << (2 * windows * g.x.c)) - 1);
  }
};

Direct direct(const Geometry& g) {
  Direct d{.g = g, .group = lanes / g.x.c};
  const std::int64_t channels = g.x.c;
  for (std::int64_t l = 0; l < lanes; ++l) {
    const auto at = static_cast<std::size_t>(l);
    // Lanes beyond the last window of a vector are never stored: element 0 will do for them.
    const bool used = l < d.group * channels;
    d.left[at] = used ? static_cast<std::int32_t>(l / channels * 2 * channels + l % channels) : 0;
    d.right[at] = used ? d.left[at] + static_cast<std::int32_t>(channels) : 0;
  }
  for (std::int64_t e = 0; e < 2 * lanes; ++e) {
    const std::int64_t pixel = e / channels;
    const auto half = static_cast<std::size_t>(e / lanes), at = static_cast<std::size_t>(e % lanes);
    d.source[half][at] = static_cast<std::int32_t>((pixel / 2 * channels + e % channels) % lanes);
    d.tap[half][at] = static_cast<std::int32_t>(pixel % 2);
  }
  return d;
}

/// Calls f(image, output row, first window, windows) for every vector.
template <class F>
void for_each_vector(const Direct& d, F f) {
  for (std::int64_t i = 0; i < d.g.y.n; ++i) {
    for (std::int64_t oy = 0; oy < d.g.y.h; ++oy) {
      for (std::int64_t ox = 0; ox < d.g.y.w; ox += d.group) {
        f(i, oy, ox, std::min(d.group, d.g.y.w - ox));
      }
    }
  }
}

void run_forward(const KernelCall& call, const Direct& d) {
  const __m512i left = _mm512_load_si512(d.left.data()), right = _mm512_load_si512(d.right.data());
  for_each_vector(d, [&](std::int64_t i, std::int64_t oy, std::int64_t ox, std::int64_t windows) {
    const std::uint32_t in = d.inputs(windows);
    const auto out = static_cast<__mmask16>(d.outputs(windows));
    const auto low = static_cast<__mmask16>(in), high = static_cast<__mmask16>(in >> lanes);
    const float* upper = call.in<float>(0) + d.g.x.at(i, 2 * oy, 2 * ox);
    const float* lower = upper + d.g.x.row;
    const __m512 u0 = _mm512_maskz_loadu_ps(low, upper),
                 u1 = _mm512_maskz_loadu_ps(high, upper + lanes),
                 l0 = _mm512_maskz_loadu_ps(low, lower),
                 l1 = _mm512_maskz_loadu_ps(high, lower + lanes);
    __m512 best = _mm512_permutex2var_ps(u0, left, u1);
    __m512i winner = _mm512_setzero_si512();
    const auto meet = [&](__m512 value, int tap) {
      const auto wins = static_cast<__mmask16>(_mm512_cmp_ps_mask(value, best, _CMP_GT_OQ) |
                                               _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q));
      best = _mm512_mask_mov_ps(best, wins, value);
      winner = _mm512_mask_mov_epi32(winner, wins, _mm512_set1_epi32(tap));
    };
    meet(_mm512_permutex2var_ps(u0, right, u1), 1);
    meet(_mm512_permutex2var_ps(l0, left, l1), 2);
    meet(_mm512_permutex2var_ps(l0, right, l1), 3);
    _mm512_mask_storeu_ps(call.out<float>(0) + d.g.y.at(i, oy, ox), out, best);
    _mm512_mask_cvtepi32_storeu_epi8(call.out<std::uint8_t>(1) + d.g.code.at(i, oy, ox), out,
                                     winner);
  });
  zero_halo(call.out<float>(0), d.g.y);
  zero_halo(call.out<std::uint8_t>(1), d.g.code);
}

void run_grad(const KernelCall& call, const Direct& d) {
  for_each_vector(d, [&](std::int64_t i, std::int64_t oy, std::int64_t ox, std::int64_t windows) {
    const std::uint32_t in = d.inputs(windows);
    const auto out = static_cast<__mmask16>(d.outputs(windows));
    const __m512 dy = _mm512_maskz_loadu_ps(out, call.in<float>(0) + d.g.y.at(i, oy, ox));
    const __m512i code = _mm512_maskz_cvtepu8_epi32(
        0xffff, _mm_maskz_loadu_epi8(out, call.in<std::uint8_t>(1) + d.g.code.at(i, oy, ox)));
    float* upper = call.out<float>(0) + d.g.x.at(i, 2 * oy, 2 * ox);
    for (std::size_t half = 0; half < 2; ++half, upper += lanes) {
      const auto mask = static_cast<__mmask16>(half == 0 ? in : in >> lanes);
      const __m512i source = _mm512_load_si512(d.source[half].data());
      const __m512i tap = _mm512_load_si512(d.tap[half].data());
      const __m512 spread = _mm512_maskz_permutexvar_ps(0xffff, source, dy);
      const __m512i codes = _mm512_maskz_permutexvar_epi32(0xffff, source, code);
      const __mmask16 above = _mm512_cmpeq_epi32_mask(codes, tap);
      const __mmask16 below =
          _mm512_cmpeq_epi32_mask(codes, _mm512_add_epi32(tap, _mm512_set1_epi32(2)));
      _mm512_mask_storeu_ps(upper, mask, _mm512_maskz_mov_ps(above, spread));
      _mm512_mask_storeu_ps(upper + d.g.x.row, mask, _mm512_maskz_mov_ps(below, spread));
    }
  });
  pool2d::zero_uncovered(call.out<float>(0), d.g.x, d.g.y);
  zero_halo(call.out<float>(0), d.g.x);
}

template <auto geometry>
Direct build(const OpView& op) {
  return direct(geometry(op));
}

template <auto geometry>
graph::Support supports(const OpView& op) {
  const Geometry g = geometry(op);
  if (!pool2d::is_2x2(g.window)) return "windows other than 2x2, side by side";
  if (g.x.c > lanes / 2) return "more than 8 channels";
  return {};
}

}  // namespace

Kernel direct_forward() {
  return {.name = "direct",
          .supports = supports<Geometry::forward>,
          .prepare = prepare<build<Geometry::forward>, run_forward>,
          .wanted_halo = skipped_halo<0>,
          .writes_halo = true};
}

Kernel direct_grad() {
  return {.name = "direct",
          .supports = supports<Geometry::grad>,
          .prepare = prepare<build<Geometry::grad>, run_grad>,
          .wanted_halo = skipped_halo<0, 1>,
          .writes_halo = true};
}

#else

Kernel direct_forward() { return without_avx512("direct"); }
Kernel direct_grad() { return without_avx512("direct"); }

#endif

}  // namespace arenite::codelets::max_pool2d
