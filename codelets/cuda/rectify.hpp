// A ReLU's gradient behind a library that cannot take it with its product.
#pragma once

#include "codelets/cuda/kernel.hpp"

#include <cstdint>

namespace arenite::codelets::cuda {

/// dx = 0 where `output`, which the ReLU has made, is.
static void rectify_gradient(const KernelCall& call, std::int64_t count, const float* output,
                             float* dx) {
  for_each(call, count, [=] ARENITE_THREAD(std::int64_t i) {
    if (output[i] <= 0) dx[i] = 0;
  });
}

}  // namespace arenite::codelets::cuda
