// Softmax along a row: its largest element, and exp(x − largest) with their sum.
//
// A row is worked on 16 elements at a time and folded in a fixed tree: the bits depend neither on
// the width of the machine's vectors nor on the compiler's choice.
#pragma once

#include "codelets/softmax_cross_entropy/exponential.hpp"

#include <limits>

namespace arenite::codelets {

constexpr int chunk_lanes = 16;

struct alignas(64) Chunk {
  float lane[chunk_lanes];
};

/// Elements [0, count) of a row, at most a chunk of them, then `filler`.
inline Chunk load(const float* row, std::int64_t count, float filler) noexcept {
  Chunk chunk;
#pragma omp simd
  for (int i = 0; i < chunk_lanes; ++i) chunk.lane[i] = i < count ? row[i] : filler;
  return chunk;
}

inline float maximum(const Chunk& of) noexcept {
  Chunk chunk = of;
  for (int half = chunk_lanes / 2; half > 0; half /= 2) {
#pragma omp simd
    for (int i = 0; i < half; ++i) {
      const float a = chunk.lane[i], b = chunk.lane[i + half];
      chunk.lane[i] = a > b ? a : b;
    }
  }
  return chunk.lane[0];
}

inline float total(const Chunk& of) noexcept {
  Chunk chunk = of;
  for (int half = chunk_lanes / 2; half > 0; half /= 2) {
#pragma omp simd
    for (int i = 0; i < half; ++i) chunk.lane[i] += chunk.lane[i + half];
  }
  return chunk.lane[0];
}

/// −∞ of none. It may pass over a NaN: the sum of the exponentials does not.
inline float largest_of(const float* row, std::int64_t count) noexcept {
  constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
  Chunk largest = load(row, count, minus_infinity);
  for (std::int64_t from = chunk_lanes; from < count; from += chunk_lanes) {
    const Chunk next = load(row + from, count - from, minus_infinity);
#pragma omp simd
    for (int i = 0; i < chunk_lanes; ++i) {
      const float a = largest.lane[i], b = next.lane[i];
      largest.lane[i] = b > a ? b : a;
    }
  }
  return maximum(largest);
}

/// exp(row − largest) into `out`, which may be the row itself; returns their sum. Long rows add up
/// lane by lane, in float: at most count/16 + 4 roundings.
inline float exponentials(const float* row, std::int64_t count, float largest,
                          float* out) noexcept {
  constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
  Chunk sums{};
  for (std::int64_t from = 0; from < count; from += chunk_lanes) {
    const std::int64_t left = count - from;
    Chunk chunk = load(row + from, left, minus_infinity);
    float* to = out + from;
#pragma omp simd
    for (int i = 0; i < chunk_lanes; ++i) {
      const float e = exponential(chunk.lane[i] - largest);
      chunk.lane[i] = e;
      // The lanes past the last element hold exp(−∞ − largest) = 0 unless the row's maximum is −∞
      // or NaN, and then the sum is NaN as it should be.
      sums.lane[i] += e;
    }
#pragma omp simd
    for (int i = 0; i < chunk_lanes; ++i) {
      if (i < left) to[i] = chunk.lane[i];
    }
  }
  return total(sums);
}

}  // namespace arenite::codelets
