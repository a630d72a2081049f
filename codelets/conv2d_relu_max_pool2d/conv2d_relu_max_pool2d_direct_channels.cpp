// The direct forward kernel for 16 output channels and more: a vector of weights times one pixel,
// for 2 rows × up to 14 columns of outputs, 28 sums.
#include "codelets/conv2d_relu_max_pool2d/direct.hpp"
#include "codelets/conv2d_relu_max_pool2d/pooling.hpp"

#include <array>
#include <utility>

namespace arenite::codelets::conv2d_relu_max_pool2d::direct {

#ifdef ARENITE_AVX512
namespace {

constexpr std::int64_t max_windows = 7;  ///< side by side in one tile

struct Channels {
  Geometry g;
  PaddedSamples x;
  std::vector<std::int64_t> offsets;  ///< one a weight: tap-major, channels inside
  std::int64_t column;                ///< input elements from one column of outputs to the next
  std::int64_t row;                   ///< and from one row
  std::vector<Part> tiles;            ///< of a row of windows
};

Channels channels(const Geometry& g) {
  const PaddedSamples x(g.x, g.window.padding);
  Channels s{.g = g,
             .x = x,
             .offsets = {},
             .column = g.window.stride.w * g.x.c,
             .row = g.window.stride.h * x.row(),
             .tiles = split(g.y.w, max_windows)};
  for (const std::int64_t tap : g.tap_offsets(x.row())) {
    for (std::int64_t c = 0; c < g.x.c; ++c) s.offsets.push_back(tap + c);
  }
  return s;
}

/// Where 16 channels of one tile are read and written.
struct Tile {
  const float *x, *weight, *bias;
  float* y;
  std::uint8_t* code;
};

/// `pixel` is 0 where the distance between columns is only known at run time.
template <int windows, int pixel>
void channels_tile(const Channels& s, const Tile& tile) {
  constexpr int columns = 2 * windows;
  __m512 upper[columns], lower[columns];
#pragma GCC unroll 14
  for (int p = 0; p < columns; ++p) upper[p] = lower[p] = _mm512_setzero_ps();
  const float* weight = tile.weight;
  const std::int64_t column = pixel ? pixel : s.column, row = s.row, outputs = s.g.y.c;
  for (const std::int64_t offset : s.offsets) {
    const __m512 w = _mm512_loadu_ps(weight);
    weight += outputs;
    const float *x = tile.x + offset, *below = x + row;
    // Without this GCC keeps pixels for the next weight, and has no registers for them.
    asm("" : "+r"(x), "+r"(below));
#pragma GCC unroll 14
    for (int p = 0; p < columns; ++p) {
      upper[p] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[p * column]), upper[p]);
      lower[p] = _mm512_fmadd_ps(w, _mm512_set1_ps(below[p * column]), lower[p]);
    }
  }
  const __m512 bias = tile.bias ? _mm512_loadu_ps(tile.bias) : _mm512_setzero_ps();
#pragma GCC unroll 7
  for (int p = 0; p < windows; ++p) {
    const Pooled best =
        pool({upper[2 * p], upper[2 * p + 1], lower[2 * p], lower[2 * p + 1]}, bias);
    _mm512_storeu_ps(tile.y + p * outputs, best.value);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(tile.code + p * outputs), best.code);
  }
}

using ChannelsTile = void (*)(const Channels&, const Tile&);

template <int pixel>
constexpr auto channels_tiles = []<int... count>(std::integer_sequence<int, count...>) {
  return std::array<ChannelsTile, max_windows>{channels_tile<count + 1, pixel>...};
}
(std::make_integer_sequence<int, max_windows>{});

template <int pixel>
void run_channels(const KernelCall& call, const Channels& s) {
  const Geometry& g = s.g;
  const float *weight = call.in<float>(1), *bias = g.biased ? call.in<float>(2) : nullptr;
  auto* padded = static_cast<float*>(call.workspace);
  s.x.clear(padded);
  for (std::int64_t i = 0; i < g.y.n; ++i) {
    const float* sample = s.x.sample(call.in<float>(0), i, padded);
    for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
      for (const auto [ox, windows] : s.tiles) {
        const float* x = sample + 2 * (oy * s.row + ox * s.column);
        float* y = call.out<float>(0) + g.y.at(i, oy, ox);
        std::uint8_t* code = call.out<std::uint8_t>(1) + g.code.at(i, oy, ox);
        for (std::int64_t from = 0; from < g.y.c; from += lanes) {
          // The last vector overlaps the one before: what both hold comes out the same.
          const std::int64_t k = std::min(from, g.y.c - lanes);
          channels_tiles<pixel>[static_cast<std::size_t>(windows - 1)](
              s, {x, weight + k, bias ? bias + k : nullptr, y + k, code + k});
        }
      }
    }
  }
  zero_halo(call.out<float>(0), g.y);
  zero_halo(call.out<std::uint8_t>(1), g.code);
}

/// Of an output channel. Many weights are a matter of cache: those of 16 channels lie K apart.
constexpr std::int64_t most_weights = 160;

}  // namespace

graph::Support channels_support(const Geometry& g) {
  if (g.pool != Pair{2, 2}) return "pooling other than 2x2";
  if (g.taps() > most_weights || g.taps() * g.x.c > most_weights)
    return "more than 160 weights an output channel";
  return PaddedSamples(g.x, g.window.padding).fits();
}

std::int64_t channels_workspace(const Geometry& g) {
  return PaddedSamples(g.x, g.window.padding).scratch_bytes();
}

PreparedKernel prepare_channels(const Geometry& g) {
  constexpr auto by_pixel = []<int... pixel>(std::integer_sequence<int, pixel...>) {
    return std::array{prepared<run_channels<pixel>, Channels>...};
  }
  (std::integer_sequence<int, 0, 1, 2, 3, 4, 0, 6>{});
  const Channels s = channels(g);
  const auto column = static_cast<std::size_t>(s.column);
  return by_pixel[column < by_pixel.size() ? column : 0](s);
}

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d::direct
