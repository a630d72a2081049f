// A step of SGD, as the formula of `sgd` is one: for what does many at once, and operators that
// make the gradient themselves.
#pragma once

#include "codelets/avx512.hpp"
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

#ifdef ARENITE_AVX512

/// The same for gradients that stand in registers, `rows` times `vectors` of them; of a row's last
/// vector only the elements in `last` are there, and rows are `stride` apart.
struct VectorStep {
  __m512 rate, momentum, decay;
  bool has_decay;

  VectorStep(const Rule& rule, float learning_rate) noexcept
      : rate(_mm512_set1_ps(learning_rate)),
        momentum(_mm512_set1_ps(rule.momentum)),
        decay(_mm512_set1_ps(rule.decay)),
        has_decay(rule.decay != 0) {}

  /// All is read before anything is written: vectors of short rows overlap, and a load that meets a
  /// masked store on its way would wait for it.
  template <int rows, int vectors>
  void operator()(__m512 (&gradient)[rows][vectors], float* weight, float* velocity,
                  std::int64_t stride, __mmask16 last) const noexcept {
    const auto for_each = [&](auto f) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
          f(gradient[r][v], r * stride + v * lanes, v + 1 == vectors ? last : __mmask16{0xffff});
      }
    };
    if (has_decay) {
      for_each([&](__m512& g, std::int64_t at, __mmask16 some) {
        g = _mm512_fmadd_ps(decay, _mm512_maskz_loadu_ps(some, weight + at), g);
      });
    }
    if (velocity) {
      for_each([&](__m512& g, std::int64_t at, __mmask16 some) {
        g = _mm512_fmadd_ps(momentum, _mm512_maskz_loadu_ps(some, velocity + at), g);
      });
      for_each([&](__m512& g, std::int64_t at, __mmask16 some) {
        _mm512_mask_storeu_ps(velocity + at, some, g);
      });
    }
    for_each([&](__m512& g, std::int64_t at, __mmask16 some) {
      g = _mm512_fnmadd_ps(rate, g, _mm512_maskz_loadu_ps(some, weight + at));
    });
    for_each([&](__m512& g, std::int64_t at, __mmask16 some) {
      _mm512_mask_storeu_ps(weight + at, some, g);
    });
  }
};

#endif

}  // namespace arenite::codelets::sgd
