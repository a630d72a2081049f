// Winograd's F(2×2, 3×3): a 2×2 tile of outputs from 16 products a channel instead of 36 (Lavin and
// Gray, "Fast algorithms for convolutional neural networks", 2016).
//
//   V = Bᵀ d B    a tile's 4×4 pixels, 16 channels a vector
//   U = G g Gᵀ    a 3×3 kernel, 16 output channels a vector
//   M = Σ_c U·V   for each of the 16 elements a product of a block of tiles × channels with
//                 channels × output channels
//   y = Aᵀ M A    the tile's four outputs, handed to the kernel that asked for them
//
// Where a pixel or a weight is infinite, the transforms may turn an infinite output into a NaN.
#pragma once

#include "codelets/avx512.hpp"
#include "codelets/image.hpp"
#include "codelets/transpose.hpp"

#ifdef ARENITE_AVX512

#include <array>
#include <utility>

namespace arenite::codelets::winograd {

constexpr std::int64_t elements = 16;      ///< of a transformed tile
constexpr int max_tiles = 14;              ///< at a time: with 2 vectors of channels, 28 sums
constexpr std::int64_t panel = 2 * lanes;  ///< output channels at a time

/// Where weight (tap, channel, output channel) lies, in elements from the first. Side by side lie
/// either output channels or channels.
struct Weights {
  const float* first;
  std::int64_t tap, channel, output;
};

/// One output tile of one sample; in steps of tiles.
struct Tile {
  std::int64_t i = 0, y = 0, x = 0;
};

/// A convolution with 3×3 kernels and stride 1.
class Convolution {
 public:
  /// y: the outputs wanted, `outputs` channels of each; the first one's 3×3 pixels begin `before`
  /// rows above and columns left of x's first.
  Convolution(const PaddedSamples& x, Pair before, Pair y, std::int64_t outputs);

  std::int64_t workspace_bytes() const noexcept {
    return (weights_size() + input_size() + products_size()) * float_bytes + x_.scratch_bytes();
  }

  /// Calls what store(tile) returns with (k, mask, taps), for every tile and every 16 output
  /// channels from k; `taps` are the tile's outputs, row by row. Those beyond `y` mean nothing.
  template <class Store>
  void run(const float* x, const Weights& weights, void* workspace, Store store) const;

  std::int64_t channels() const noexcept { return x_.image().c; }

 private:
  void transform_weights(const Weights& weights, float* to) const;
  void transform_tile(const float* sample, const Tile& tile, float* to) const;
  void multiply_panel(std::int64_t tiles, std::int64_t width, const float* input,
                      const float* weights, float* products) const;

  std::int64_t groups() const noexcept { return divide_up(channels(), lanes); }
  std::int64_t all_outputs() const noexcept { return round_up(outputs_, lanes); }
  /// From a group of channels to the next: [group][tile][16 channels].
  std::int64_t group_step() const noexcept { return block_ * lanes; }
  /// From an element of the transformed input (of the products, of a panel's weights) to the next.
  /// The odd line keeps 16 elements in different cache sets.
  std::int64_t input_step() const noexcept { return groups() * group_step() + lanes; }
  std::int64_t product_step() const noexcept { return block_ * panel + lanes; }

  std::int64_t weights_step(std::int64_t width) const noexcept {
    return channels() * width + lanes;
  }
  std::int64_t panel_width(std::int64_t k) const noexcept {
    return std::min(panel, all_outputs() - k);
  }
  /// Where the weights of the panel from output channel k lie; all before it are whole ones.
  std::int64_t panel_at(std::int64_t k) const noexcept {
    return k / panel * elements * weights_step(panel);
  }

  std::int64_t weights_size() const noexcept {
    const std::int64_t last = (outputs_ - 1) / panel * panel;
    return panel_at(last) + elements * weights_step(panel_width(last));
  }
  std::int64_t input_size() const noexcept { return elements * input_step(); }
  std::int64_t products_size() const noexcept { return elements * product_step(); }

  PaddedSamples x_;
  Pair before_, y_, tiles_;  ///< of a sample
  std::int64_t outputs_, all_tiles_;
  std::int64_t block_;  ///< tiles whose transforms are kept while the weights pass by
};

inline Convolution::Convolution(const PaddedSamples& x, Pair before, Pair y, std::int64_t outputs)
    : x_(x),
      before_(before),
      y_(y),
      tiles_{divide_up(y.h, 2), divide_up(y.w, 2)},
      outputs_(outputs),
      all_tiles_(x.image().n * tiles_.h * tiles_.w) {
  // Where the weights do not stay in a core's second-level cache, more tiles share each sweep of
  // theirs; elsewhere the least scratch is as fast.
  constexpr std::int64_t cache = 3 << 19;
  const std::int64_t bytes = elements * groups() * lanes * max_tiles * float_bytes,
                     times = weights_size() * float_bytes > cache ? cache / bytes : 1;
  block_ = std::min(all_tiles_, max_tiles * std::clamp<std::int64_t>(times, 1, 4));
}

// ---- transforms --------------------------------------------------------------------------------

/// One input channel's 3×3 kernel for 16 output channels; load(tap) has tap 3·row + column.
template <class Load>
void transform_kernel(Load load, std::int64_t step, float* to) {
  const __m512 half = _mm512_set1_ps(0.5f);
  const auto spread = [&](__m512 a, __m512 b, __m512 c, __m512* out) {
    const __m512 outer = _mm512_mul_ps(_mm512_add_ps(a, c), half), middle = _mm512_mul_ps(b, half);
    out[0] = a;
    out[1] = _mm512_add_ps(outer, middle);
    out[2] = _mm512_sub_ps(outer, middle);
    out[3] = c;
  };
  __m512 columns[3][4];
  for (int x = 0; x < 3; ++x) spread(load(x), load(3 + x), load(6 + x), columns[x]);
  for (int y = 0; y < 4; ++y) {
    __m512 row[4];
    spread(columns[0][y], columns[1][y], columns[2][y], row);
    for (int x = 0; x < 4; ++x) _mm512_storeu_ps(to + (4 * y + x) * step, row[x]);
  }
}

/// Kernels of 16 input for 16 output channels where the input channels lie side by side:
/// to[tap][input channel][output channel], zeros where there are fewer of them.
inline void transpose_kernels(const Weights& weights, std::int64_t c, std::int64_t channels,
                              std::int64_t k, std::int64_t outputs, float (&to)[9][lanes][lanes]) {
  const float* from = weights.first + c + k * weights.output;
  const bool whole = channels >= lanes && outputs >= lanes;
  if (!whole) std::memset(to, 0, sizeof to);
  for (int tap = 0; tap < 9; ++tap, from += weights.tap) {
    if (whole) {
      __m512 columns[lanes];
      transpose(from, weights.output, columns);
      for (int i = 0; i < lanes; ++i) _mm512_storeu_ps(to[tap][i], columns[i]);
      continue;
    }
    for (std::int64_t o = 0; o < std::min(outputs, lanes); ++o) {
      const float* row = from + o * weights.output;
      for (std::int64_t i = 0; i < std::min(channels, lanes); ++i) to[tap][i][o] = row[i];
    }
  }
}

/// All weights: [panel][element][channel][32 output channels, or 16 in the last panel].
inline void Convolution::transform_weights(const Weights& weights, float* to) const {
  for (std::int64_t k = 0; k < all_outputs(); k += lanes) {
    const std::int64_t first = k / panel * panel, width = panel_width(first);
    const __mmask16 mask = first_lanes(outputs_ - k);
    float* out = to + panel_at(first) + (k - first);
    for (std::int64_t from = 0; from < channels(); from += lanes) {
      alignas(64) float turned[9][lanes][lanes];
      if (weights.output != 1) {
        transpose_kernels(weights, from, channels() - from, k, outputs_ - k, turned);
      }
      for (std::int64_t c = from; c < std::min(channels(), from + lanes); ++c, out += width) {
        if (weights.output != 1) {
          transform_kernel([&](int tap) { return _mm512_load_ps(turned[tap][c - from]); },
                           weights_step(width), out);
        } else {
          const float* kernel = weights.first + c * weights.channel + k;
          transform_kernel(
              [&](int tap) { return _mm512_maskz_loadu_ps(mask, kernel + tap * weights.tap); },
              weights_step(width), out);
        }
      }
    }
  }
}

/// 16 channels of one tile from its rows and columns, given as elements from its first pixel.
inline void transform_pixels(const float* x, const std::int64_t (&rows)[4],
                             const std::int64_t (&columns)[4], __mmask16 mask, std::int64_t step,
                             float* to) {
  const auto spread = [](__m512 a, __m512 b, __m512 c, __m512 d, __m512* out) {
    out[0] = _mm512_sub_ps(a, c);
    out[1] = _mm512_add_ps(b, c);
    out[2] = _mm512_sub_ps(c, b);
    out[3] = _mm512_sub_ps(b, d);
  };
  __m512 spread_rows[4][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const float* p = x + columns[j];
    spread(_mm512_maskz_loadu_ps(mask, p + rows[0]), _mm512_maskz_loadu_ps(mask, p + rows[1]),
           _mm512_maskz_loadu_ps(mask, p + rows[2]), _mm512_maskz_loadu_ps(mask, p + rows[3]),
           spread_rows[j]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    __m512 out[4];
    spread(spread_rows[0][i], spread_rows[1][i], spread_rows[2][i], spread_rows[3][i], out);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) _mm512_store_ps(to + (4 * i + j) * step, out[j]);
  }
}

inline void Convolution::transform_tile(const float* sample, const Tile& tile, float* to) const {
  const std::int64_t row = x_.row(), pixel = channels();
  const float* x = sample + (2 * tile.y - before_.h) * row + (2 * tile.x - before_.w) * pixel;
  // A tile's fourth row and column only make its second outputs: where those are not wanted, there
  // may be no such pixels.
  const std::int64_t rows[4] = {0, row, 2 * row, (2 * tile.y + 1 < y_.h ? 3 : 2) * row},
                     columns[4] = {0, pixel, 2 * pixel, (2 * tile.x + 1 < y_.w ? 3 : 2) * pixel};
  for (std::int64_t c = 0; c < pixel; c += lanes, to += group_step()) {
    transform_pixels(x + c, rows, columns, first_lanes(pixel - c), input_step(), to);
  }
}

/// One tile's four outputs in 16 channels.
inline void transform_products(const float* products, std::int64_t step, __m512 (&out)[4]) {
  const auto gather = [](__m512 a, __m512 b, __m512 c, __m512 d, __m512* to) {
    to[0] = _mm512_add_ps(a, _mm512_add_ps(b, c));
    to[1] = _mm512_sub_ps(_mm512_sub_ps(b, c), d);
  };
  __m512 columns[4][2];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const float* p = products + j * step;
    gather(_mm512_load_ps(p), _mm512_load_ps(p + 4 * step), _mm512_load_ps(p + 8 * step),
           _mm512_load_ps(p + 12 * step), columns[j]);
  }
  gather(columns[0][0], columns[1][0], columns[2][0], columns[3][0], &out[0]);
  gather(columns[0][1], columns[1][1], columns[2][1], columns[3][1], &out[2]);
}

// ---- products ----------------------------------------------------------------------------------

/// products[tile][k] = Σ_c input[tile][c] · weights[c][k] for one element.
template <int tiles, int vectors>
void multiply(const float* input, std::int64_t group_step, std::int64_t channels,
              const float* weights, float* products) {
  __m512 sum[tiles][vectors];
#pragma GCC unroll 14
  for (auto& row : sum) {
#pragma GCC unroll 2
    for (auto& s : row) s = _mm512_setzero_ps();
  }
  for (std::int64_t from = 0; from < channels; from += lanes, input += group_step) {
    const float *x = input, *end = input + std::min(lanes, channels - from);
    for (; x < end; ++x, weights += vectors * lanes) {
      // Without this GCC reads several channels ahead, and has no registers for them.
      asm("" : "+r"(x));
      __m512 w[vectors];
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) w[j] = _mm512_load_ps(weights + j * lanes);
#pragma GCC unroll 14
      for (int t = 0; t < tiles; ++t) {
        const __m512 pixel = _mm512_set1_ps(x[t * lanes]);
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) sum[t][j] = _mm512_fmadd_ps(pixel, w[j], sum[t][j]);
      }
    }
  }
#pragma GCC unroll 14
  for (int t = 0; t < tiles; ++t) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      _mm512_store_ps(products + t * panel + j * lanes, sum[t][j]);
    }
  }
}

using Multiply = void (*)(const float*, std::int64_t, std::int64_t, const float*, float*);

template <int vectors>
constexpr auto multiplies = []<int... count>(std::integer_sequence<int, count...>) {
  return std::array<Multiply, max_tiles>{multiply<count + 1, vectors>...};
}
(std::make_integer_sequence<int, max_tiles>{});

/// `tiles` tiles of a block and one panel. Element by element: its weights stay in the first-level
/// cache while the tiles pass by.
inline void Convolution::multiply_panel(std::int64_t tiles, std::int64_t width, const float* input,
                                        const float* weights, float* products) const {
  const auto& kernels = width == panel ? multiplies<2> : multiplies<1>;
  for (std::int64_t e = 0; e < elements; ++e) {
    for (std::int64_t from = 0; from < tiles; from += max_tiles) {
      const std::int64_t count = std::min<std::int64_t>(max_tiles, tiles - from);
      kernels[static_cast<std::size_t>(count - 1)](
          input + e * input_step() + from * lanes, group_step(), channels(),
          weights + e * weights_step(width), products + e * product_step() + from * panel);
    }
  }
}

// ---- the whole ---------------------------------------------------------------------------------

template <class Store>
void Convolution::run(const float* x, const Weights& weights, void* workspace, Store store) const {
  auto* transformed = static_cast<float*>(workspace);
  float* input = transformed + weights_size();
  float* products = input + input_size();
  float* padded = products + products_size();
  transform_weights(weights, transformed);
  x_.clear(padded);
  const auto next = [this](Tile& tile) {
    if (++tile.x < tiles_.w) return;
    tile.x = 0;
    if (++tile.y < tiles_.h) return;
    tile.y = 0;
    ++tile.i;
  };
  const float* sample = nullptr;
  std::int64_t sample_number = -1;
  Tile read, first;
  for (std::int64_t from = 0; from < all_tiles_; from += block_) {
    const std::int64_t tiles = std::min(block_, all_tiles_ - from);
    for (std::int64_t t = 0; t < tiles; ++t, next(read)) {
      if (read.i != sample_number) {
        sample_number = read.i;
        sample = x_.sample(x, sample_number, padded);
      }
      transform_tile(sample, read, input + t * lanes);
    }
    for (std::int64_t k = 0; k < all_outputs(); k += panel) {
      const std::int64_t width = panel_width(k);
      multiply_panel(tiles, width, input, transformed + panel_at(k), products);
      Tile tile = first;
      for (std::int64_t t = 0; t < tiles; ++t, next(tile)) {
        const auto put = store(tile);
        for (std::int64_t j = 0; j < width; j += lanes) {
          __m512 taps[4];
          transform_products(products + t * panel + j, product_step(), taps);
          put(k + j, first_lanes(outputs_ - k - j), taps);
        }
      }
    }
    first = read;
  }
}

}  // namespace arenite::codelets::winograd

#endif
