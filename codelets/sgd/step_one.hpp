// A step of SGD on one element of a parameter, by a thread of a grid.
#pragma once

#include "codelets/cuda/grid.hpp"
#include "codelets/sgd/sgd.hpp"

#include <cmath>

namespace arenite::codelets::sgd {

/// `velocity` is nullptr without momentum.
ARENITE_GPU inline void step_one(const Rule& rule, float rate, float gradient, float& weight,
                                 float* velocity) {
  const float before = weight;
  // Skipped, not multiplied by 0: an infinite weight must not turn into NaN.
  if (rule.decay != 0) gradient = std::fma(rule.decay, before, gradient);
  if (velocity != nullptr) {
    gradient = std::fma(rule.momentum, *velocity, gradient);
    *velocity = gradient;
  }
  weight = std::fma(-rate, gradient, before);
}

/// What an op updates on a GPU, and where the new versions go, which may be the same places.
struct States {
  const float *weight = nullptr, *velocity = nullptr;  ///< no velocity without momentum
  float *new_weight = nullptr, *new_velocity = nullptr;

  States() = default;
  /// The new weight is result `made`, the velocity the next one.
  States(const KernelCall& call, const Operands& at, bool has_velocity, std::size_t made = 0)
      : weight(call.in<float>(at.weight)),
        velocity(has_velocity ? call.in<float>(at.velocity) : nullptr),
        new_weight(call.out<float>(made)),
        new_velocity(has_velocity ? call.out<float>(made + 1) : nullptr) {}

  /// Of element i.
  ARENITE_GPU void step(const Rule& rule, float rate, float gradient, std::int64_t i) const {
    float w = weight[i];
    if (velocity == nullptr) {
      step_one(rule, rate, gradient, w, nullptr);
    } else {
      float v = velocity[i];
      step_one(rule, rate, gradient, w, &v);
      new_velocity[i] = v;
    }
    new_weight[i] = w;
  }
};

}  // namespace arenite::codelets::sgd
