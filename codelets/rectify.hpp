// relu and its gradient, for its own kernels and for those that do them with what they have just
// made. For kernels' own files, which are compiled for the machine at hand.
#pragma once

#include "codelets/image.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace arenite::codelets {

/// y = relu(x); a NaN stays a NaN. y may be x.
template <class T>
void rectify(const T* x, std::int64_t count, T* y) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] <= 0 ? 0 : x[i];
}

/// dx = gradient where relu's output is not 0. dx may be the gradient.
template <class T>
void rectify_gradient(const T* output, const T* gradient, std::int64_t count, T* dx) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = output[i] <= 0 ? 0 : gradient[i];
}

/// Row y of sample i of an input gradient, as it was made: copied to dx, if it does not stand there
/// yet. Where a ReLU before the layer has made `output`, that one's gradient.
inline void finish_row(const std::optional<Image>& image, const float* output, std::int64_t i,
                       std::int64_t y, const float* gradient, std::int64_t count,
                       float* dx) noexcept {
  if (image) {
    rectify_gradient(output + image->at(i, y, 0), gradient, count, dx);
  } else if (dx != gradient) {
    std::copy_n(gradient, count, dx);
  }
}

/// All rows of dx, where they stand.
inline void finish_rows(const Image& image, const float* output, const Image& x,
                        float* dx) noexcept {
  for (std::int64_t i = 0; i < x.n; ++i) {
    for (std::int64_t y = 0; y < x.h; ++y) {
      float* row = dx + x.at(i, y, 0);
      rectify_gradient(output + image.at(i, y, 0), row, x.w * x.c, row);
    }
  }
}

}  // namespace arenite::codelets
