// A convolution's images, gradients and weight as Winograd's tiles of them: what
// cuda/winograd.hpp's blocks load, and how it is transformed.
#pragma once

#include "codelets/conv2d/lookups.hpp"
#include "codelets/cuda/winograd.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace arenite::codelets::conv2d {

/// Tiles of 2×2 pixels that cover an image of each sample.
struct Tiling2x2 {
  cuda::Divisor down, across;  ///< tiles of a sample
  std::int32_t count = 0;      ///< all samples'

  Tiling2x2() = default;
  Tiling2x2(std::int64_t samples, std::int64_t rows, std::int64_t columns)
      : down(divide_up(rows, 2)),
        across(divide_up(columns, 2)),
        count(static_cast<std::int32_t>(samples * down.value() * across.value())) {}

  struct At {
    std::int32_t sample, row, column;  ///< of its first pixel
  };
  ARENITE_GPU At at(std::int32_t tile) const {
    const cuda::Divisor::Parts x = across.parts(tile), y = down.parts(x.quotient);
    return {y.quotient, 2 * y.remainder, 2 * x.remainder};
  }
};

/// Pixels side by side of a sample's image, `height` × `width` of them.
template <int height, int width>
struct Pixels {
  std::int32_t first;   ///< its number among all samples' pixels, even where it is in none
  std::uint32_t there;  ///< a bit for each, row by row: whether it is in the image

  static ARENITE_GPU Pixels none() { return {0, 0}; }
  static ARENITE_GPU Pixels of(std::int32_t sample, std::int32_t top, std::int32_t left,
                               std::int32_t rows, std::int32_t columns) {
    std::uint32_t in_row = 0, all = 0;
    ARENITE_UNROLL_ALL
    for (int x = 0; x < width; ++x) in_row |= (inside(left + x, columns) ? 1u : 0u) << x;
    ARENITE_UNROLL_ALL
    for (int y = 0; y < height; ++y) all |= (inside(top + y, rows) ? in_row : 0u) << (y * width);
    return {(sample * rows + top) * columns + left, all};
  }

  /// Calls f(i, number of the i-th pixel) for those that are there.
  template <class F>
  ARENITE_GPU void each(std::int32_t columns, F f) const {
    ARENITE_UNROLL_ALL
    for (int i = 0; i < height * width; ++i) {
      if ((there >> i & 1) != 0) f(i, first + i / width * columns + i % width);
    }
  }
};
using Patch = Pixels<4, 4>;

/// An image's pixels of one channel; zeros where there are none.
template <int height, int width>
ARENITE_GPU void load_pixels(const float* from, const Pixels<height, width>& at,
                             std::int32_t columns, std::int32_t channels, std::int32_t channel,
                             float* to) {
  ARENITE_UNROLL_ALL
  for (int i = 0; i < height * width; ++i) to[i] = 0;
  at.each(columns, [&](int i, std::int32_t pixel) { to[i] = from[pixel * channels + channel]; });
}

/// x under the tiles of outputs: a row for each tile, or with `across` a column.
template <bool across>
struct InputPatches {
  static constexpr bool along_depth = !across;
  static constexpr int numbers = 16;
  using At = std::conditional_t<across, std::int32_t, Patch>;
  using Deep = std::conditional_t<across, Patch, std::int32_t>;

  const float* x;
  Sizes s;
  Tiling2x2 tiles;

  ARENITE_GPU At at(std::int32_t i) const {
    if constexpr (across)
      return channel(i);
    else
      return patch(i);
  }
  ARENITE_GPU Deep deep(std::int32_t k) const {
    if constexpr (across)
      return patch(k);
    else
      return channel(k);
  }
  ARENITE_GPU void load(const At& at, const Deep& deep, float* to) const {
    if constexpr (across)
      load_patch(deep, at, to);
    else
      load_patch(at, deep, to);
  }
  static ARENITE_GPU void transform(const float* from, float* to) {
    cuda::winograd::both_ways<cuda::winograd::Input>(from, to);
  }

 private:
  ARENITE_GPU std::int32_t channel(std::int32_t i) const { return i < s.channels() ? i : nowhere; }
  ARENITE_GPU Patch patch(std::int32_t i) const {
    if (i >= tiles.count) return Patch::none();
    const Tiling2x2::At at = tiles.at(i);
    return Patch::of(at.sample, at.row - s.padding_h, at.column - s.padding_w, s.h, s.w);
  }
  ARENITE_GPU void load_patch(const Patch& at, std::int32_t channel, float* to) const {
    load_pixels(x, channel < 0 ? Patch::none() : at, s.w, s.channels(), channel, to);
  }
};

/// The gradients of the outputs that a tile of x's pixels is in the windows of: a row for each
/// tile.
struct GradientTilePatches {
  static constexpr bool along_depth = true;
  static constexpr int numbers = 16;
  using At = Patch;
  using Deep = std::int32_t;

  const float* gradient;
  Sizes s;
  Tiling2x2 tiles;

  ARENITE_GPU At at(std::int32_t i) const {
    if (i >= tiles.count) return Patch::none();
    const Tiling2x2::At at = tiles.at(i);
    return Patch::of(at.sample, at.row + s.padding_h - 2, at.column + s.padding_w - 2, s.rows,
                     s.columns);
  }
  ARENITE_GPU Deep deep(std::int32_t k) const { return k < s.outputs() ? k : nowhere; }
  ARENITE_GPU void load(const At& at, Deep output, float* to) const {
    load_pixels(gradient, output < 0 ? Patch::none() : at, s.columns, s.outputs(), output, to);
  }
  static ARENITE_GPU void transform(const float* from, float* to) {
    cuda::winograd::both_ways<cuda::winograd::Input>(from, to);
  }
};

/// A code among numbers, bit by bit.
ARENITE_GPU inline float as_number(std::int32_t code) {
  float number = 0;
  std::memcpy(&number, &code, sizeof(number));
  return number;
}
ARENITE_GPU inline std::int32_t as_code(float number) {
  std::int32_t code = 0;
  std::memcpy(&code, &number, sizeof(code));
  return code;
}

/// The same where the outputs are pooled over 2×2: the windows that the 16 outputs lie in, each
/// one's gradient, then each one's code. Where the first output is the last pixel of its window
/// (`odd`) these are 3×3, where it is the first one they are 2×2.
template <bool odd>
struct PooledTilePatches {
  static constexpr int side = odd ? 3 : 2, windows = side * side;
  static constexpr bool along_depth = true;
  static constexpr int numbers = 2 * windows;
  using At = Pixels<side, side>;
  using Deep = std::int32_t;

  const float* gradient;
  const std::uint8_t* code;
  Sizes s;
  Tiling2x2 tiles;

  ARENITE_GPU At at(std::int32_t i) const {
    if (i >= tiles.count) return At::none();
    constexpr std::int32_t before = odd ? 3 : 2;  // even together with the padding
    const Tiling2x2::At at = tiles.at(i);
    return At::of(at.sample, (at.row + s.padding_h - before) / 2,
                  (at.column + s.padding_w - before) / 2, s.rows, s.columns);
  }
  ARENITE_GPU Deep deep(std::int32_t k) const { return k < s.outputs() ? k : nowhere; }
  ARENITE_GPU void load(const At& at, Deep output, float* to) const {
    ARENITE_UNROLL_ALL
    for (int i = 0; i < windows; ++i) {
      to[i] = 0;
      to[windows + i] = as_number(pool2d::dead);
    }
    (output < 0 ? At::none() : at).each(s.columns, [&](int i, std::int32_t window) {
      const std::int32_t from = window * s.outputs() + output;
      to[i] = gradient[from];
      to[windows + i] = as_number(code[from]);
    });
  }
  static ARENITE_GPU void transform(const float* from, float* to) {
    float spread[16];
    ARENITE_UNROLL_ALL
    for (int i = 0; i < 16; ++i) {
      const int y = i / 4 + (odd ? 1 : 0), x = i % 4 + (odd ? 1 : 0);
      const int window = y / 2 * side + x / 2, pixel = y % 2 * 2 + x % 2;
      spread[i] = as_code(from[windows + window]) == pixel ? from[window] : 0;
    }
    cuda::winograd::both_ways<cuda::winograd::Input>(spread, to);
  }
};

/// Output tiles' gradients: a row for each tile. Where outputs are pooled a tile is a window.
template <bool pooled>
struct GradientTiles {
  static constexpr bool along_depth = false;
  static constexpr int numbers = pooled ? 2 : 4;  ///< a window's gradient and code, or four pixels'
  using At = std::int32_t;                        ///< the output; negative beyond them
  using Deep = std::conditional_t<pooled, std::int32_t, Pixels<2, 2>>;

  const float* gradient;
  const std::uint8_t* code;  ///< unused without pooling
  Sizes s;
  Tiling2x2 tiles;

  ARENITE_GPU At at(std::int32_t i) const { return i < s.outputs() ? i : nowhere; }
  ARENITE_GPU Deep deep(std::int32_t k) const {
    if constexpr (pooled) {
      return k < s.windows ? k : nowhere;
    } else {
      if (k >= tiles.count) return Deep::none();
      const Tiling2x2::At at = tiles.at(k);
      return Deep::of(at.sample, at.row, at.column, s.rows, s.columns);
    }
  }
  ARENITE_GPU void load(At output, const Deep& deep, float* to) const {
    if constexpr (pooled) {
      to[0] = 0;
      to[1] = as_number(pool2d::dead);
      if (output < 0 || deep < 0) return;
      const std::int32_t from = deep * s.outputs() + output;
      to[0] = gradient[from];
      to[1] = as_number(code[from]);
    } else {
      load_pixels(gradient, output < 0 ? Deep::none() : deep, s.columns, s.outputs(), output, to);
    }
  }
  static ARENITE_GPU void transform(const float* from, float* to) {
    float pixels[4];
    ARENITE_UNROLL_ALL
    for (int i = 0; i < 4; ++i) {
      if constexpr (pooled)
        pixels[i] = as_code(from[1]) == i ? from[0] : 0;
      else
        pixels[i] = from[i];
    }
    cuda::winograd::both_ways<cuda::winograd::OutputGradient>(pixels, to);
  }
  /// What the bias' gradient gains by a window: nothing where it is dead.
  static ARENITE_GPU float sum(const float* loaded) {
    static_assert(pooled);
    return (as_code(loaded[1]) & pool2d::dead) != 0 ? 0 : loaded[0];
  }
};

/// The weight: a column for each output, or, `turned` for the input's gradient, for each channel.
template <bool turned>
struct WeightTiles {
  static constexpr bool along_depth = turned;
  static constexpr int numbers = 9;
  using At = std::int32_t;  ///< in elements; negative beyond them
  using Deep = std::int32_t;

  const float* weight;
  Sizes s;

  ARENITE_GPU At at(std::int32_t i) const {
    if (i >= (turned ? s.channels() : s.outputs())) return nowhere;
    return turned ? i * s.outputs() : i;
  }
  ARENITE_GPU Deep deep(std::int32_t k) const {
    if (k >= (turned ? s.outputs() : s.channels())) return nowhere;
    return turned ? k : k * s.outputs();
  }
  ARENITE_GPU void load(At at, Deep deep, float* to) const {
    ARENITE_UNROLL_ALL
    for (int i = 0; i < numbers; ++i) to[i] = 0;
    if (at < 0 || deep < 0) return;
    const float* const first = weight + (at + deep);
    const std::int32_t tap = s.channels() * s.outputs();
    ARENITE_UNROLL_ALL
    for (int i = 0; i < numbers; ++i) to[i] = first[(turned ? 8 - i : i) * tap];
  }
  static ARENITE_GPU void transform(const float* from, float* to) {
    cuda::winograd::both_ways<cuda::winograd::Kernel>(from, to);
  }
};

}  // namespace arenite::codelets::conv2d
