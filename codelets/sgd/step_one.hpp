// A step of SGD on one element of a parameter, by a thread of a grid.
#pragma once

#include "codelets/cuda/grid.hpp"
#include "codelets/sgd/step.hpp"

namespace arenite::codelets::sgd {

/// `velocity` is nullptr without momentum.
ARENITE_GPU inline void step_one(const Rule& rule, float rate, float gradient, float& weight,
                                 float* velocity) {
  const float before = weight;  // read before anything is written, which might be the same
  // Skipped, not multiplied by 0: an infinite weight must not turn into NaN.
  if (rule.decay != 0) gradient += rule.decay * before;
  if (velocity != nullptr) {
    gradient += rule.momentum * *velocity;
    *velocity = gradient;
  }
  weight = before - rate * gradient;
}

}  // namespace arenite::codelets::sgd
