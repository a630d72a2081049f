// A step of SGD on gradients that stand in the target's registers.
#if defined(ARENITE_CODELETS_SGD_STEP_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ARENITE_CODELETS_SGD_STEP_INL_HPP
#undef ARENITE_CODELETS_SGD_STEP_INL_HPP
#else
#define ARENITE_CODELETS_SGD_STEP_INL_HPP
#endif

#include "codelets/sgd/step.hpp"
#include "codelets/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite::codelets::HWY_NAMESPACE {

/// Of `rows` times `vectors` of them; of a row's last vector only the elements in `last` are there,
/// and rows are `stride` apart. What it computes is the formula of `sgd`.
struct VectorStep {
  Vector rate, momentum, decay;
  bool has_decay;

  VectorStep(const sgd::Rule& rule, float learning_rate)
      : rate(hn::Set(Floats(), learning_rate)),
        momentum(hn::Set(Floats(), rule.momentum)),
        decay(hn::Set(Floats(), rule.decay)),
        has_decay(rule.decay != 0) {}

  /// All is read before anything is written: vectors of short rows overlap, and a load that meets a
  /// masked store on its way would wait for it.
  template <int rows, int vectors>
  HWY_INLINE void operator()(Vector (&gradient)[rows][vectors], float* weight, float* velocity,
                             std::int64_t stride, Mask last) const {
    const auto for_each = [&](auto f) HWY_ATTR __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) f(gradient[r][v], r * stride, v);
      }
    };
    const auto add = [&](Vector factor, const float* from) HWY_ATTR __attribute__((always_inline)) {
      for_each([&](Vector & g, std::int64_t row, int v) HWY_ATTR __attribute__((always_inline)) {
        g = hn::MulAdd(factor, load<vectors>(from + row, v, last), g);
      });
    };
    const auto keep = [&](float* to) HWY_ATTR __attribute__((always_inline)) {
      for_each([&](Vector & g, std::int64_t row, int v) HWY_ATTR
               __attribute__((always_inline)) { store<vectors>(g, to + row, v, last); });
    };
    if (has_decay) add(decay, weight);
    if (velocity) {
      add(momentum, velocity);
      keep(velocity);
    }
    for_each([&](Vector & g, std::int64_t row, int v) HWY_ATTR __attribute__((always_inline)) {
      g = hn::NegMulAdd(rate, g, load<vectors>(weight + row, v, last));
    });
    keep(weight);
  }
};

}  // namespace arenite::codelets::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
