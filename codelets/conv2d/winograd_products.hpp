// The convolution's three directions as Winograd's products (cuda/winograd.hpp), alone or fused
// with ReLU and max pooling over 2×2, whose windows are the tiles of outputs.
//
//                  rows               depth           columns     to memory
//   forward        tiles of outputs   channels        outputs     y
//   input gradient tiles of x         outputs         channels    dx
//   weight grad.   channels           output tiles    outputs     dweight, in parts
#pragma once

#include "codelets/conv2d/implicit_gemm.hpp"
#include "codelets/conv2d/winograd_lookups.hpp"

namespace arenite::codelets::conv2d {

/// y = x * weight + bias, its ReLU, or that ReLU's pooling with what won.
template <bool pooled>
struct WinogradForward {
  static constexpr bool sums_b = false;

  InputPatches<false> a;
  WeightTiles<false> b;
  cuda::TileGrid grid;
  std::int32_t depth;
  const float* bias;  ///< or nullptr
  bool relu;          ///< unused with pooling, which has one
  float* y;
  std::uint8_t* code;  ///< unused without pooling

  ARENITE_GPU void store(const cuda::TilePlace&, std::int32_t tile, std::int32_t output,
                         const float (&products)[16]) const {
    const Sizes& s = a.s;
    if (tile >= a.tiles.count || output >= s.outputs()) return;
    float values[4];
    cuda::winograd::both_ways<cuda::winograd::Output>(products, values);
    const float offset = bias != nullptr ? bias[output] : 0;
    if constexpr (pooled) {
      const Pooled best = pool_relu(values, offset);
      y[tile * s.outputs() + output] = best.value;
      code[tile * s.outputs() + output] = best.winner;
    } else {
      const Tiling2x2::At at = a.tiles.at(tile);
      Pixels<2, 2>::of(at.sample, at.row, at.column, s.rows, s.columns)
          .each(s.columns, [&](int i, std::int32_t pixel) {
            const float value = values[i] + offset;
            y[pixel * s.outputs() + output] = relu && value <= 0 ? 0 : value;
          });
    }
  }
};

template <class Gradient>
struct WinogradGradInput {
  static constexpr bool sums_b = false;

  Gradient a;
  WeightTiles<true> b;
  cuda::TileGrid grid;
  std::int32_t depth;
  const float* output;  ///< of a ReLU before the layer, or nullptr
  float* dx;

  ARENITE_GPU void store(const cuda::TilePlace&, std::int32_t tile, std::int32_t channel,
                         const float (&products)[16]) const {
    const Sizes& s = a.s;
    if (tile >= a.tiles.count || channel >= s.channels()) return;
    float values[4];
    cuda::winograd::both_ways<cuda::winograd::Output>(products, values);
    const Tiling2x2::At at = a.tiles.at(tile);
    const auto pixels = Pixels<2, 2>::of(at.sample, at.row, at.column, s.h, s.w);
    if (output != nullptr) {  // all of them before the first store: loads do not overtake it
      float living[4];
      load_pixels(output, pixels, s.w, s.channels(), channel, living);
      ARENITE_UNROLL_ALL
      for (int i = 0; i < 4; ++i) values[i] = living[i] <= 0 ? 0 : values[i];
    }
    pixels.each(s.w,
                [&](int i, std::int32_t pixel) { dx[pixel * s.channels() + channel] = values[i]; });
  }
};

/// Part by part, as GradWeightProduct leaves them.
template <bool pooled>
struct WinogradGradWeight {
  static constexpr bool sums_b = pooled;

  InputPatches<true> a;
  GradientTiles<pooled> b;
  cuda::TileGrid grid;
  std::int32_t depth;
  float* parts;

  ARENITE_GPU void store(const cuda::TilePlace& place, std::int32_t channel, std::int32_t output,
                         const float (&products)[16]) const {
    const Sizes& s = a.s;
    if (channel >= s.channels() || output >= s.outputs()) return;
    float taps[9];
    cuda::winograd::both_ways<cuda::winograd::KernelGradient>(products, taps);
    float* const to = weight_part<pooled>(s, parts, place.part) + channel * s.outputs() + output;
    ARENITE_UNROLL_ALL
    for (int i = 0; i < 9; ++i) to[i * s.channels() * s.outputs()] = taps[i];
  }
  ARENITE_GPU void store_sum(const cuda::TilePlace& place, std::int32_t output, float sum) const {
    const Sizes& s = a.s;
    if (output >= s.outputs()) return;
    weight_part<pooled>(s, parts, place.part)[s.weight_rows() * s.outputs() + output] = sum;
  }
};

}  // namespace arenite::codelets::conv2d
