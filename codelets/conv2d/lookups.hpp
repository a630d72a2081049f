// A convolution's images, gradients and weight as the matrices that its products look up: which
// element of memory, or which zero, stands in a row and a column (implicit_gemm.hpp has the table).
#pragma once

#include "codelets/conv2d/conv2d.hpp"
#include "codelets/cuda/divisor.hpp"
#include "codelets/cuda/tiles.hpp"
#include "codelets/pool2d.hpp"

#include <cstdint>
#include <type_traits>

namespace arenite::codelets::conv2d {

/// A convolution's sizes as a grid takes indices apart. Everything is below 2^31.
struct Sizes {
  std::int32_t h = 0, w = 0;           ///< of x
  std::int32_t pixels = 0;             ///< of x, all samples'
  std::int32_t windows = 0;            ///< of y, all samples'
  std::int32_t convolved = 0;          ///< output pixels that windows cover
  std::int32_t rows = 0, columns = 0;  ///< of y
  std::int32_t taps = 0;
  std::int32_t padding_h = 0, padding_w = 0, dilation_h = 1, dilation_w = 1;
  cuda::Divisor of_h, of_w, of_channels, of_outputs, of_kernel_w, of_stride_h, of_stride_w;
  cuda::Divisor of_rows, of_columns, of_pool, of_pool_h, of_pool_w;

  Sizes() = default;
  explicit Sizes(const Geometry& g)
      : h(narrow(g.x.h)),
        w(narrow(g.x.w)),
        pixels(narrow(g.x.n * g.x.h * g.x.w)),
        windows(narrow(g.y.n * g.y.h * g.y.w)),
        convolved(narrow(g.y.n * g.y.h * g.y.w * g.pool.h * g.pool.w)),
        rows(narrow(g.y.h)),
        columns(narrow(g.y.w)),
        taps(narrow(g.window.area())),
        padding_h(narrow(g.window.padding.h)),
        padding_w(narrow(g.window.padding.w)),
        dilation_h(narrow(g.window.dilation.h)),
        dilation_w(narrow(g.window.dilation.w)),
        of_h(g.x.h),
        of_w(g.x.w),
        of_channels(g.x.c),
        of_outputs(g.y.c),
        of_kernel_w(g.window.kernel.w),
        of_stride_h(g.window.stride.h),
        of_stride_w(g.window.stride.w),
        of_rows(g.y.h),
        of_columns(g.y.w),
        of_pool(g.pool.h * g.pool.w),
        of_pool_h(g.pool.h),
        of_pool_w(g.pool.w) {}

  ARENITE_GPU std::int32_t channels() const { return of_channels.value(); }
  ARENITE_GPU std::int32_t outputs() const { return of_outputs.value(); }
  ARENITE_GPU std::int32_t weight_rows() const { return taps * channels(); }

  /// Whether all that kernels count fits 31 bits, with room for sums of two.
  static graph::Support fit(const Geometry& g) {
    const auto below = [](auto... factors) {
      return (1.0 * ... * static_cast<double>(factors)) < (1 << 30);
    };
    if (below(g.x.n, g.x.h, g.x.w, g.x.c) &&
        below(g.y.n, g.y.h, g.y.w, g.y.c, g.pool.h, g.pool.w) &&
        below(g.window.kernel.h, g.window.kernel.w, g.x.c, g.y.c) &&
        below(g.y.h, g.pool.h, g.window.stride.h) && below(g.y.w, g.pool.w, g.window.stride.w) &&
        below(g.window.kernel.h, g.window.dilation.h) &&
        below(g.window.kernel.w, g.window.dilation.w) && below(2, g.x.h + g.window.padding.h) &&
        below(2, g.x.w + g.window.padding.w))
      return {};
    return "sizes of 2^30 or more";
  }

 private:
  static std::int32_t narrow(std::int64_t size) { return static_cast<std::int32_t>(size); }
};

/// What lies beyond a matrix has coordinates that no image contains, alone or added to another.
constexpr std::int32_t nowhere = -(1 << 30);

/// Where a window's tap 0 lies in x.
struct Corner {
  std::int32_t image;  ///< number of its sample's first pixel
  std::int32_t top, left;
};

/// Which pixel of a window, or of all windows over a pixel, and which channel of it.
struct Tap {
  std::int32_t down, right, channel;
};

/// A pooling window and the number of a pixel in it; without pooling each pixel is a window.
struct Covered {
  std::int32_t window, pixel;
};

template <bool pooled>
ARENITE_GPU Covered covered(const Sizes& s, std::int32_t i) {
  if constexpr (!pooled) return {i, 0};
  const cuda::Divisor::Parts at = s.of_pool.parts(i);
  return {at.quotient, at.remainder};
}

template <bool pooled>
ARENITE_GPU Corner corner_of(const Sizes& s, std::int32_t i) {
  if (i >= s.convolved) return {0, nowhere, nowhere};
  const Covered at = covered<pooled>(s, i);
  const cuda::Divisor::Parts x = s.of_columns.parts(at.window), y = s.of_rows.parts(x.quotient);
  std::int32_t row = y.remainder, column = x.remainder;
  if constexpr (pooled) {
    const cuda::Divisor::Parts in_window = s.of_pool_w.parts(at.pixel);
    row = row * s.of_pool_h.value() + in_window.quotient;
    column = column * s.of_pool_w.value() + in_window.remainder;
  }
  return {y.quotient * s.h * s.w, row * s.of_stride_h.value() - s.padding_h,
          column * s.of_stride_w.value() - s.padding_w};
}

/// Of `channels` channels, those of x or the outputs.
ARENITE_GPU inline Tap tap_of(const Sizes& s, const cuda::Divisor& channels, std::int32_t i) {
  if (i >= s.taps * channels.value()) return {nowhere, nowhere, 0};
  const cuda::Divisor::Parts at = channels.parts(i), tap = s.of_kernel_w.parts(at.quotient);
  return {tap.quotient * s.dilation_h, tap.remainder * s.dilation_w, at.remainder};
}

ARENITE_GPU inline bool inside(std::int32_t i, std::int32_t size) {
  return static_cast<std::uint32_t>(i) < static_cast<std::uint32_t>(size);
}

/// x under the windows: a row for each output pixel, or with `across` a column.
template <bool pooled, int vector_, bool across>
struct Patches {
  static constexpr int vector = vector_;
  static constexpr bool along_depth = !across;
  using At = std::conditional_t<across, Tap, Corner>;
  using Deep = std::conditional_t<across, Corner, Tap>;

  const float* x;
  Sizes s;

  ARENITE_GPU At at(std::int32_t i) const {
    if constexpr (across)
      return tap_of(s, s.of_channels, i);
    else
      return corner_of<pooled>(s, i);
  }
  ARENITE_GPU Deep deep(std::int32_t k) const {
    if constexpr (across)
      return corner_of<pooled>(s, k);
    else
      return tap_of(s, s.of_channels, k);
  }
  ARENITE_GPU void load(const At& at, const Deep& deep, float (&values)[vector]) const {
    if constexpr (across)
      load_pixel(deep, at, values);
    else
      load_pixel(at, deep, values);
  }

 private:
  ARENITE_GPU void load_pixel(const Corner& corner, const Tap& tap, float (&values)[vector]) const {
    const std::int32_t row = corner.top + tap.down, column = corner.left + tap.right;
    if (!inside(row, s.h) || !inside(column, s.w)) return cuda::zero(values);
    const std::int32_t pixel = corner.image + row * s.w + column;
    cuda::load_side_by_side(x + (pixel * s.channels() + tap.channel), values);
  }
};

/// 4 codes that are loaded, or stored, together.
struct alignas(4) Codes {
  std::uint8_t of[4];
};

/// The gradient of a convolution's output pixels: y's, or that of y's windows at the pixel that
/// won.
template <bool pooled>
struct OutputGradient {
  const float* gradient;
  const std::uint8_t* code;  ///< unused without pooling

  template <int vector>
  ARENITE_GPU void load(const Sizes& s, const Covered& at, std::int32_t output,
                        float (&values)[vector]) const {
    const std::int32_t from = at.window * s.outputs() + output;
    cuda::load_side_by_side(gradient + from, values);
    if constexpr (pooled) {
      std::uint8_t winners[vector];
      if constexpr (vector == 4) {
        const Codes codes = *reinterpret_cast<const Codes*>(code + from);
        ARENITE_UNROLL_ALL
        for (int i = 0; i < 4; ++i) winners[i] = codes.of[i];
      } else {
        winners[0] = code[from];
      }
      ARENITE_UNROLL_ALL
      for (int i = 0; i < vector; ++i) {
        if (winners[i] != at.pixel) values[i] = 0;
      }
    }
  }
};

/// Rows of the weight's gradient are summed over these: a row for each output pixel.
template <bool pooled, int vector_>
struct GradientRows {
  static constexpr int vector = vector_;
  static constexpr bool along_depth = false;
  using At = std::int32_t;  ///< the output; negative beyond them
  using Deep = Covered;     ///< the window is negative beyond them

  OutputGradient<pooled> from;
  Sizes s;

  ARENITE_GPU At at(std::int32_t i) const { return i < s.outputs() ? i : nowhere; }
  ARENITE_GPU Deep deep(std::int32_t k) const {
    return k < s.convolved ? covered<pooled>(s, k) : Covered{nowhere, 0};
  }
  ARENITE_GPU void load(At at, const Deep& deep, float (&values)[vector]) const {
    if (at < 0 || deep.window < 0) return cuda::zero(values);
    from.load(s, deep, at, values);
  }
};

/// The gradients of all output pixels that a pixel of x is in the window of.
template <bool pooled, int vector_>
struct GradientPatches {
  static constexpr int vector = vector_;
  static constexpr bool along_depth = true;
  using At = Corner;  ///< of the window over the pixel that reaches furthest
  using Deep = Tap;

  OutputGradient<pooled> from;
  Sizes s;

  ARENITE_GPU At at(std::int32_t i) const {
    if (i >= s.pixels) return {0, nowhere, nowhere};
    const cuda::Divisor::Parts x = s.of_w.parts(i), y = s.of_h.parts(x.quotient);
    return {y.quotient * s.rows * s.columns, y.remainder + s.padding_h, x.remainder + s.padding_w};
  }
  ARENITE_GPU Deep deep(std::int32_t k) const { return tap_of(s, s.of_outputs, k); }
  ARENITE_GPU void load(const At& at, const Deep& tap, float (&values)[vector]) const {
    // Nowhere minus nowhere is a pixel of some image: one of the two is looked at alone.
    const std::int32_t down = at.top - tap.down, right = at.left - tap.right;
    if (tap.down < 0 || down < 0 || right < 0) return cuda::zero(values);
    const cuda::Divisor::Parts y = s.of_stride_h.parts(down), x = s.of_stride_w.parts(right);
    if (y.remainder != 0 || x.remainder != 0) return cuda::zero(values);
    Covered covering{};
    if constexpr (pooled) {
      const cuda::Divisor::Parts row = s.of_pool_h.parts(y.quotient),
                                 column = s.of_pool_w.parts(x.quotient);
      if (row.quotient >= s.rows || column.quotient >= s.columns) return cuda::zero(values);
      covering = {at.image + row.quotient * s.columns + column.quotient,
                  row.remainder * s.of_pool_w.value() + column.remainder};
    } else {
      if (y.quotient >= s.rows || x.quotient >= s.columns) return cuda::zero(values);
      covering = {at.image + y.quotient * s.columns + x.quotient, 0};
    }
    from.load(s, covering, tap.channel, values);
  }
};

/// The weight, a row for each tap and output.
template <int vector_>
struct TurnedWeight {
  static constexpr int vector = vector_;
  static constexpr bool along_depth = true;
  using At = std::int32_t;
  using Deep = std::int32_t;

  const float* weight;
  Sizes s;

  ARENITE_GPU At at(std::int32_t i) const { return i < s.channels() ? i * s.outputs() : nowhere; }
  ARENITE_GPU Deep deep(std::int32_t k) const {
    if (k >= s.taps * s.outputs()) return nowhere;
    const cuda::Divisor::Parts at = s.of_outputs.parts(k);
    return at.quotient * s.channels() * s.outputs() + at.remainder;
  }
  ARENITE_GPU void load(At at, Deep deep, float (&values)[vector]) const {
    if (at < 0 || deep < 0) return cuda::zero(values);
    cuda::load_side_by_side(weight + (at + deep), values);
  }
};

}  // namespace arenite::codelets::conv2d
