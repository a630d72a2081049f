// SLEEF's functions for the target's vectors. They are the deterministic ones: those with FMA
// (finz) make the same bits at any width, those without (cinz) may make others.
#if defined(ARENITE_EXPR_SLEEF_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ARENITE_EXPR_SLEEF_INL_HPP
#undef ARENITE_EXPR_SLEEF_INL_HPP
#else
#define ARENITE_EXPR_SLEEF_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE::math {

namespace hn = hwy::HWY_NAMESPACE;

/// 64 bytes at most, which are whole vectors of every target.
template <class T>
using Tag = hn::CappedTag<T, 64 / sizeof(T)>;
using Float32 = hn::Vec<Tag<float>>;
using Float64 = hn::Vec<Tag<double>>;

namespace sleef {

// clang passes wide vectors in memory where the whole file is not compiled for them, and SLEEF
// wants them in registers. Then its functions of one element are called, of the same bits.
#undef ARENITE_BY_ELEMENT
#undef ARENITE_SLEEF32
#undef ARENITE_SLEEF64
#if HWY_TARGET == HWY_SCALAR
#define ARENITE_BY_ELEMENT 1
#define ARENITE_SLEEF32(NAME) Sleef_cinz_##NAME##f1_u10purec
#define ARENITE_SLEEF64(NAME) Sleef_cinz_##NAME##d1_u10purec
#elif HWY_COMPILER_CLANG
#define ARENITE_BY_ELEMENT 1
#define ARENITE_SLEEF32(NAME) Sleef_finz_##NAME##f1_u10purecfma
#define ARENITE_SLEEF64(NAME) Sleef_finz_##NAME##d1_u10purecfma
#elif HWY_TARGET == HWY_AVX2
#define ARENITE_BY_ELEMENT 0
#define ARENITE_SLEEF32(NAME) Sleef_finz_##NAME##f8_u10avx2
#define ARENITE_SLEEF64(NAME) Sleef_finz_##NAME##d4_u10avx2
#else
#define ARENITE_BY_ELEMENT 0
#define ARENITE_SLEEF32(NAME) Sleef_finz_##NAME##f16_u10avx512f
#define ARENITE_SLEEF64(NAME) Sleef_finz_##NAME##d8_u10avx512f
#endif

#if ARENITE_BY_ELEMENT
using Given32 = float;
using Given64 = double;

template <class T>
HWY_INLINE hn::Vec<Tag<T>> call(T (*function)(T), hn::Vec<Tag<T>> x) {
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>());
  T elements[lanes];
  hn::StoreU(x, Tag<T>(), elements);
  for (std::size_t i = 0; i < lanes; ++i) elements[i] = function(elements[i]);
  return hn::LoadU(Tag<T>(), elements);
}
template <class T>
HWY_INLINE hn::Vec<Tag<T>> call(T (*function)(T, T), hn::Vec<Tag<T>> x, hn::Vec<Tag<T>> y) {
  constexpr std::size_t lanes = hn::MaxLanes(Tag<T>());
  T elements[lanes], others[lanes];
  hn::StoreU(x, Tag<T>(), elements);
  hn::StoreU(y, Tag<T>(), others);
  for (std::size_t i = 0; i < lanes; ++i) elements[i] = function(elements[i], others[i]);
  return hn::LoadU(Tag<T>(), elements);
}
#else
using Given32 = decltype(Float32::raw);
using Given64 = decltype(Float64::raw);

template <class F, class V, class... W>
HWY_INLINE V call(F function, V x, W... y) {
  return V{function(x.raw, y.raw...)};
}
#endif

// sleef.h declares only what the whole file is compiled for.
extern "C" {
Given32 ARENITE_SLEEF32(sin)(Given32);
Given32 ARENITE_SLEEF32(cos)(Given32);
Given32 ARENITE_SLEEF32(pow)(Given32, Given32);
Given64 ARENITE_SLEEF64(exp)(Given64);
Given64 ARENITE_SLEEF64(expm1)(Given64);
Given64 ARENITE_SLEEF64(log)(Given64);
Given64 ARENITE_SLEEF64(log1p)(Given64);
Given64 ARENITE_SLEEF64(sin)(Given64);
Given64 ARENITE_SLEEF64(cos)(Given64);
Given64 ARENITE_SLEEF64(tanh)(Given64);
Given64 ARENITE_SLEEF64(erf)(Given64);
Given64 ARENITE_SLEEF64(pow)(Given64, Given64);
}

#if HWY_TARGET == HWY_SCALAR
// Those of float32 lose places of large numbers where denormals count as zero.
HWY_INLINE Float32 sin(Float32 x) {
  return Float32{static_cast<float>(ARENITE_SLEEF64(sin)(x.raw))};
}
HWY_INLINE Float32 cos(Float32 x) {
  return Float32{static_cast<float>(ARENITE_SLEEF64(cos)(x.raw))};
}
#else
HWY_INLINE Float32 sin(Float32 x) { return call(ARENITE_SLEEF32(sin), x); }
HWY_INLINE Float32 cos(Float32 x) { return call(ARENITE_SLEEF32(cos), x); }
#endif
HWY_INLINE Float32 pow(Float32 x, Float32 y) { return call(ARENITE_SLEEF32(pow), x, y); }

HWY_INLINE Float64 exp(Float64 x) { return call(ARENITE_SLEEF64(exp), x); }
HWY_INLINE Float64 expm1(Float64 x) { return call(ARENITE_SLEEF64(expm1), x); }
HWY_INLINE Float64 log(Float64 x) { return call(ARENITE_SLEEF64(log), x); }
HWY_INLINE Float64 log1p(Float64 x) { return call(ARENITE_SLEEF64(log1p), x); }
HWY_INLINE Float64 sin(Float64 x) { return call(ARENITE_SLEEF64(sin), x); }
HWY_INLINE Float64 cos(Float64 x) { return call(ARENITE_SLEEF64(cos), x); }
HWY_INLINE Float64 tanh(Float64 x) { return call(ARENITE_SLEEF64(tanh), x); }
HWY_INLINE Float64 erf(Float64 x) { return call(ARENITE_SLEEF64(erf), x); }
HWY_INLINE Float64 pow(Float64 x, Float64 y) { return call(ARENITE_SLEEF64(pow), x, y); }

}  // namespace sleef
}  // namespace arenite::expr::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
