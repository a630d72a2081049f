// The convolution's three directions as products of matrices that are looked up (cuda/tiles.hpp),
// alone or fused with ReLU and max pooling: the pooled form's convolution, and its gradient, stand
// nowhere in memory either.
//
//                  rows of a          depth             columns of b    the product
//   forward        output pixels      taps, channels    outputs         y
//   input gradient pixels of x        taps, outputs     channels        dx
//   weight grad.   taps, channels     output pixels     outputs         dweight
//
// Where pooling follows, output pixels are numbered window by window, so that one thread has all
// pixels of a window; those that no window covers have no gradient, and are left out.
#pragma once

#include "codelets/conv2d/lookups.hpp"

namespace arenite::codelets::conv2d {

/// Where the pooled form's outputs go.
struct PooledOutput {
  const Sizes& s;
  const float* bias;  ///< or nullptr
  float* y;
  std::uint8_t* code;
  bool aligned;  ///< the outputs of a window are fours
};

struct Pooled {
  float value;
  std::uint8_t winner;
};

/// The ReLU of a window's 4 pixels, pooled: the first of equals wins, and so does a NaN.
ARENITE_GPU inline Pooled pool_relu(const float (&window)[4], float offset) {
  Pooled best{0, pool2d::dead};
  ARENITE_UNROLL_ALL
  for (int i = 0; i < 4; ++i) {
    const float value = window[i] + offset;
    if (value > best.value || value != value) best = {value, static_cast<std::uint8_t>(i)};
  }
  return best;
}

/// The ReLU of a window's 4 pixels, pooled, for 4 outputs from `column` on.
ARENITE_GPU inline void store_pooled(const PooledOutput& to, std::int32_t window,
                                     std::int32_t column, const float (&block)[4][4]) {
  const std::int32_t outputs = to.s.outputs(), at = window * outputs;
  float best[4];
  std::uint8_t winner[4];
  ARENITE_UNROLL_ALL
  for (int j = 0; j < 4; ++j) {
    const float offset = to.bias != nullptr && column + j < outputs ? to.bias[column + j] : 0;
    const Pooled pooled = pool_relu({block[0][j], block[1][j], block[2][j], block[3][j]}, offset);
    best[j] = pooled.value;
    winner[j] = pooled.winner;
  }
  cuda::store_four(to.y + at, column, outputs, to.aligned, best);
  if (to.aligned) {
    if (column < outputs)
      *reinterpret_cast<Codes*>(to.code + at +
                                column) = {{winner[0], winner[1], winner[2], winner[3]}};
    return;
  }
  ARENITE_UNROLL_ALL
  for (int j = 0; j < 4; ++j) {
    if (column + j < outputs) to.code[at + column + j] = winner[j];
  }
}

/// y = x * weight + bias, its ReLU, or that ReLU's pooling over windows of 4 pixels with what won
/// there.
template <bool pooled, int vector>
struct ForwardProduct {
  static constexpr bool sums_b = false;

  Patches<pooled, vector, false> a;
  cuda::Matrix<vector, true> b;  ///< the weight, a row for each tap and channel
  cuda::TileGrid grid;
  std::int32_t depth;
  const float* bias;  ///< or nullptr
  bool relu;          ///< unused with pooling, which has one
  float* y;
  std::uint8_t* code;  ///< unused without pooling
  bool aligned;

  ARENITE_GPU void store(const cuda::TilePlace&, std::int32_t row, std::int32_t column,
                         const float (&block)[4][4]) const {
    const Sizes& s = a.s;
    const std::int32_t outputs = s.outputs();
    if constexpr (pooled) {
      if (row / 4 < s.windows) store_pooled({s, bias, y, code, aligned}, row / 4, column, block);
    } else {
      ARENITE_UNROLL_ALL
      for (int i = 0; i < 4; ++i) {
        if (row + i >= s.windows) return;
        float values[4];
        ARENITE_UNROLL_ALL
        for (int j = 0; j < 4; ++j) {
          const bool biased = bias != nullptr && column + j < outputs;
          const float value = block[i][j] + (biased ? bias[column + j] : 0);
          values[j] = relu && value <= 0 ? 0 : value;
        }
        cuda::store_four(y + (row + i) * outputs, column, outputs, aligned, values);
      }
    }
  }
};

template <bool pooled, int vector>
struct GradInputProduct {
  static constexpr bool sums_b = false;

  GradientPatches<pooled, vector> a;
  TurnedWeight<vector> b;
  cuda::TileGrid grid;
  std::int32_t depth;
  const float* output;  ///< of a ReLU before the layer, or nullptr
  float* dx;
  bool aligned;

  ARENITE_GPU void store(const cuda::TilePlace&, std::int32_t row, std::int32_t column,
                         const float (&block)[4][4]) const {
    const Sizes& s = a.s;
    const std::int32_t channels = s.channels();
    if (output == nullptr) {
      store_rows(row, column, block);
      return;
    }
    float living[4][4];
    ARENITE_UNROLL_ALL
    for (int i = 0; i < 4; ++i) {  // all of them before the first store: loads do not overtake it
      ARENITE_UNROLL_ALL
      for (int j = 0; j < 4; ++j) living[i][j] = 0;
      if (row + i < s.pixels)
        cuda::load_four(output + (row + i) * channels, column, channels, aligned, living[i]);
    }
    ARENITE_UNROLL_ALL
    for (int i = 0; i < 4; ++i) {
      ARENITE_UNROLL_ALL
      for (int j = 0; j < 4; ++j) living[i][j] = living[i][j] <= 0 ? 0 : block[i][j];
    }
    store_rows(row, column, living);
  }

 private:
  ARENITE_GPU void store_rows(std::int32_t row, std::int32_t column,
                              const float (&block)[4][4]) const {
    const Sizes& s = a.s;
    ARENITE_UNROLL_ALL
    for (int i = 0; i < 4; ++i) {
      if (row + i >= s.pixels) return;
      cuda::store_four(dx + (row + i) * s.channels(), column, s.channels(), aligned, block[i]);
    }
  }
};

/// Elements of a part of the weight's gradient, [taps · channels (+ 1), outputs]: where pooling
/// follows, the last row is the bias' gradient.
template <bool pooled>
ARENITE_GPU std::int64_t weight_part_elements(const Sizes& s) {
  return (std::int64_t{s.weight_rows()} + (pooled ? 1 : 0)) * s.outputs();
}

template <bool pooled>
ARENITE_GPU float* weight_part(const Sizes& s, float* parts, std::int32_t part) {
  return parts + part * weight_part_elements<pooled>(s);
}

/// Part by part.
template <bool pooled, int vector>
struct GradWeightProduct {
  static constexpr bool sums_b = pooled;

  Patches<pooled, vector, true> a;
  GradientRows<pooled, vector> b;
  cuda::TileGrid grid;
  std::int32_t depth;
  float* parts;
  bool aligned;

  ARENITE_GPU float* part(const cuda::TilePlace& place) const {
    return weight_part<pooled>(a.s, parts, place.part);
  }
  ARENITE_GPU void store(const cuda::TilePlace& place, std::int32_t row, std::int32_t column,
                         const float (&block)[4][4]) const {
    const Sizes& s = a.s;
    ARENITE_UNROLL_ALL
    for (int i = 0; i < 4; ++i) {
      if (row + i >= s.weight_rows()) return;
      cuda::store_four(part(place) + (row + i) * s.outputs(), column, s.outputs(), aligned,
                       block[i]);
    }
  }
  ARENITE_GPU void store_sums(const cuda::TilePlace& place, std::int32_t column,
                              const float (&sums)[4]) const {
    const Sizes& s = a.s;
    cuda::store_four(part(place) + s.weight_rows() * s.outputs(), column, s.outputs(), aligned,
                     sums);
  }
};

}  // namespace arenite::codelets::conv2d
