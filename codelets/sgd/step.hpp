// A step of SGD, as the formula of `sgd` is one: for what does many at once, and operators that
// make the gradient themselves.
#pragma once

#include "codelets/words.hpp"
#include "src/expr/simd/fused.hpp"

#include <cstdint>

namespace arenite::codelets::sgd {

/// Reads attributes momentum and weight_decay.
struct Rule {
  float momentum = 0, decay = 0;

  Rule() = default;
  explicit Rule(const OpView& op)
      : momentum(static_cast<float>(op.real("momentum"))),
        decay(static_cast<float>(op.real("weight_decay"))) {}
};

/// Of a run of elements: what the formula of `sgd` computes, in its loop.
class Step {
 public:
  /// Of an op that has the attributes of a Rule.
  Step(const OpView& op, bool has_velocity);

  /// `velocity` is nullptr where there is none.
  void operator()(float rate, const float* gradient, float* weight, float* velocity,
                  std::int64_t count) const;

 private:
  expr::Fused loop_;
};

}  // namespace arenite::codelets::sgd
