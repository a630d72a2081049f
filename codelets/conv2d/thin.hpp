// Convolutions of thin images, as a network's first layer has: so few taps and channels that a
// thread keeps all of a window in registers, and no tile of a product would be full.
#pragma once

#include "codelets/conv2d/implicit_gemm.hpp"
#include "codelets/conv2d/tiled.hpp"

namespace arenite::codelets::conv2d {
inline namespace ARENITE_GRIDS {

/// Sizes that a thread's loops are unrolled for; stride and dilation are 1.
template <int kernel_h_, int kernel_w_, int channels_>
struct ThinShape {
  static constexpr int kernel_h = kernel_h_, kernel_w = kernel_w_, channels = channels_,
                       sums = kernel_h * kernel_w * channels;
};

/// Whether there is one for a convolution.
inline graph::Support is_thin(const Geometry& g) {
  const auto is = [&](std::int64_t size, std::int64_t channels) {
    return g.window.kernel == Pair{size, size} && g.x.c == channels;
  };
  if (const graph::Support steps = moves_by_one(g.window); !steps) return steps;
  if (is(3, 1) || is(3, 3) || is(5, 1)) return {};
  return "other than 3x3 taps on 1 or 3 channels, and 5x5 on 1";
}

/// Calls f(shape) with a thin convolution's.
template <class F>
void with_thin_shape(const Sizes& s, F f) {
  if (s.of_kernel_w.value() == 5) return f(ThinShape<5, 5, 1>());
  if (s.channels() == 3) return f(ThinShape<3, 3, 3>());
  f(ThinShape<3, 3, 1>());
}

/// Calls f(row, column, element of x) for `height` × `width` pixels of all channels, of which those
/// outside the image are 0; nothing is asked of each where all lie inside.
template <int height, int width, int channels, class F>
ARENITE_GPU void each_pixel(const Sizes& s, const float* x, const Corner& corner, F f) {
  const float* const first = x + (corner.image + corner.top * s.w + corner.left) * channels;
  const bool whole = corner.top >= 0 && corner.left >= 0 && corner.top + height <= s.h &&
                     corner.left + width <= s.w;
  ARENITE_UNROLL_ALL
  for (int row = 0; row < height; ++row) {
    const float* const from = first + row * s.w * channels;
    const bool row_inside = whole || inside(corner.top + row, s.h);
    ARENITE_UNROLL_ALL
    for (int column = 0; column < width; ++column) {
      const bool there = whole || (row_inside && inside(corner.left + column, s.w));
      ARENITE_UNROLL_ALL
      for (int c = 0; c < channels; ++c)
        f(row, column, c, there ? from[column * channels + c] : 0.0f);
    }
  }
}

/// Forward, fused with ReLU and pooling over 2 × 2: a thread makes 4 outputs of a window.
template <class Shape>
struct ThinForward {
  Sizes s;
  const float *x, *weight, *bias;  ///< bias: nullptr without
  float* y;
  std::uint8_t* code;
  bool aligned;
  cuda::Divisor groups;  ///< of 4 outputs

  ARENITE_GPU void operator()(std::int64_t i) const {
    constexpr int height = Shape::kernel_h + 1, width = Shape::kernel_w + 1, c = Shape::channels;
    const cuda::Divisor::Parts at = groups.parts(static_cast<std::int32_t>(i));
    const std::int32_t output = 4 * at.remainder;
    float patch[height][width][c];
    each_pixel<height, width, c>(s, x, corner_of<true>(s, 4 * at.quotient),
                                 [&](int row, int column, int channel, float value) {
                                   patch[row][column][channel] = value;
                                 });
    float block[4][4]{};  // of each of the window's pixels, each output's sum
    ARENITE_UNROLL_ALL
    for (int ky = 0; ky < Shape::kernel_h; ++ky) {
      ARENITE_UNROLL_ALL
      for (int kx = 0; kx < Shape::kernel_w; ++kx) {
        ARENITE_UNROLL_ALL
        for (int channel = 0; channel < c; ++channel) {
          float w[4];
          load_weights((ky * Shape::kernel_w + kx) * c + channel, output, w);
          ARENITE_UNROLL_ALL
          for (int pixel = 0; pixel < 4; ++pixel) {
            ARENITE_UNROLL_ALL
            for (int j = 0; j < 4; ++j)
              block[pixel][j] += patch[ky + pixel / 2][kx + pixel % 2][channel] * w[j];
          }
        }
      }
    }
    store_pooled({s, bias, y, code, aligned}, at.quotient, output, block);
  }

 private:
  ARENITE_GPU void load_weights(int row, std::int32_t output, float (&w)[4]) const {
    const float* const from = weight + row * s.outputs() + output;
    if (aligned) return cuda::load_side_by_side(from, w);
    ARENITE_UNROLL_ALL
    for (int j = 0; j < 4; ++j) w[j] = output + j < s.outputs() ? from[j] : 0;
  }
};

/// The weight's gradient: a thread has all of one output's sums, and goes from window to window.
/// Behind pooling it visits the one pixel of a window that has a gradient: a quarter of the work.
/// Blocks leave parts as GradWeightProduct does.
template <bool pooled, class Shape>
struct ThinGradWeight {
  static constexpr int threads = 256, sums = Shape::sums;
  /// Sums of all threads, and in the last row those of the gradients alone.
  struct Shared {
    float of[sums + 1][threads];
  };

  Sizes s;
  const float* x;
  OutputGradient<pooled> from;
  float* parts;
  std::int32_t lanes;         ///< threads that share an output's windows
  std::int32_t lane_windows;  ///< of each of them

  ARENITE_GPU void operator()(cuda::Block<threads> block, Shared& shared) const {
    block.each([&](int t) { sum(block.index, t, shared); });
    block.each([&](int t) {
      constexpr int rows = sums + (pooled ? 1 : 0);
      const std::int32_t outputs = s.outputs();
      float* const part = parts + static_cast<std::int64_t>(block.index) * rows * outputs;
      for (std::int32_t i = t; i < rows * outputs; i += threads) {
        const cuda::Divisor::Parts at = s.of_outputs.parts(i);
        float total = 0;
        for (std::int32_t lane = 0; lane < lanes; ++lane)
          total += shared.of[at.quotient][lane * outputs + at.remainder];
        part[i] = total;
      }
    });
  }

 private:
  /// So many windows' gradients are under way together.
  static constexpr int ahead = 4;

  ARENITE_GPU void sum(std::int32_t block, int t, Shared& shared) const {
    const cuda::Divisor::Parts at = s.of_outputs.parts(t);  // which lane, which output
    if (at.quotient >= lanes) return;
    float all = 0, mine[sums];
    ARENITE_UNROLL_ALL
    for (int i = 0; i < sums; ++i) mine[i] = 0;
    const std::int32_t first = (block * lanes + at.quotient) * lane_windows,
                       end = first + lane_windows < s.windows ? first + lane_windows : s.windows;
    ARENITE_KEEP_ROLLED
    for (std::int32_t window = first; window < end; window += ahead) {
      Visit visits[ahead];
      ARENITE_UNROLL_ALL
      for (int i = 0; i < ahead; ++i) visits[i] = visit(window + i, end, at.remainder);
      ARENITE_UNROLL_ALL
      for (int i = 0; i < ahead; ++i) {
        if (visits[i].pixel >= 0) add(visits[i], mine, all);
      }
    }
    ARENITE_UNROLL_ALL
    for (int i = 0; i < sums; ++i) shared.of[i][t] = mine[i];
    shared.of[sums][t] = all;
  }

  /// A window's pixel that has a gradient; negative where none has.
  struct Visit {
    std::int32_t pixel;
    float gradient;
  };

  ARENITE_GPU Visit visit(std::int32_t window, std::int32_t end, std::int32_t output) const {
    if (window >= end) return {-1, 0};
    const std::int32_t element = window * s.outputs() + output;
    const float gradient = from.gradient[element];
    if constexpr (!pooled) return {window, gradient};
    const std::uint8_t winner = from.code[element];
    return {(winner & pool2d::dead) != 0 ? -1 : window * s.of_pool.value() + winner, gradient};
  }

  ARENITE_GPU void add(const Visit& at, float (&mine)[sums], float& all) const {
    all += at.gradient;
    each_pixel<Shape::kernel_h, Shape::kernel_w, Shape::channels>(
        s, x, corner_of<pooled>(s, at.pixel), [&](int row, int column, int c, float value) {
          mine[(row * Shape::kernel_w + column) * Shape::channels + c] += at.gradient * value;
        });
  }
};

/// How a thin convolution's windows are dealt out.
template <bool pooled>
struct ThinGradWeightConvolution {
  static constexpr auto geometry = Geometry::grad_weight;
  static constexpr int threads = 256, least_alignment = 4;
  Sizes sizes;
  std::int32_t lanes, lane_windows;
  std::int64_t blocks;

  explicit ThinGradWeightConvolution(const Geometry& g)
      : sizes(g), lanes(threads / sizes.outputs()) {
    // More blocks would make more parts than their windows are worth.
    constexpr std::int64_t least_windows = 8, wanted = 2 * TiledConvolution::wanted_blocks;
    lane_windows = static_cast<std::int32_t>(
        std::max(least_windows, divide_up(sizes.windows, wanted * lanes)));
    blocks = divide_up(sizes.windows, std::int64_t{lanes} * lane_windows);
  }

  static graph::Support fits(const Geometry& g) {
    if (g.y.c > threads) return "more output channels than a block has threads";
    return is_thin(g);
  }

  std::int64_t workspace() const {
    return blocks * weight_part_elements<pooled>(sizes) * float_bytes;
  }

  void run(const KernelCall& call) const {
    auto* parts = static_cast<float*>(call.workspace);
    with_thin_shape(sizes, [&](auto shape) {
      cuda::for_each_block(
          call, blocks,
          ThinGradWeight<pooled, decltype(shape)>{
              .s = sizes,
              .x = call.in<float>(0),
              .from = {call.in<float>(1), pooled ? call.in<std::uint8_t>(2) : nullptr},
              .parts = parts,
              .lanes = lanes,
              .lane_windows = lane_windows});
    });
    add_weight_parts<pooled>(call, sizes, blocks, parts);
  }
};

/// Pooled over 2 × 2.
struct ThinForwardConvolution {
  static constexpr auto geometry = Geometry::forward;
  static constexpr int least_alignment = 16;
  Sizes sizes;
  bool biased;

  explicit ThinForwardConvolution(const Geometry& g) : sizes(g), biased(g.biased) {}

  static graph::Support fits(const Geometry& g) {
    if (g.pool != Pair{2, 2}) return "pooling other than 2x2";
    return is_thin(g);
  }

  void run(const KernelCall& call) const {
    const std::int64_t groups = divide_up(sizes.outputs(), 4);
    with_thin_shape(sizes, [&](auto shape) {
      cuda::for_each(call, sizes.windows * groups,
                     ThinForward<decltype(shape)>{.s = sizes,
                                                  .x = call.in<float>(0),
                                                  .weight = call.in<float>(1),
                                                  .bias = biased ? call.in<float>(2) : nullptr,
                                                  .y = call.out<float>(0),
                                                  .code = call.out<std::uint8_t>(1),
                                                  .aligned = sizes.outputs() % 4 == 0,
                                                  .groups = cuda::Divisor(groups)});
    });
  }
};

}  // namespace ARENITE_GRIDS
}  // namespace arenite::codelets::conv2d
