// The functions of floats, of the target's vectors.
#if defined(ARENITE_EXPR_FUNCTIONS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ARENITE_EXPR_FUNCTIONS_INL_HPP
#undef ARENITE_EXPR_FUNCTIONS_INL_HPP
#else
#define ARENITE_EXPR_FUNCTIONS_INL_HPP
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <utility>

#include "src/expr/simd/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using math::Tag;
template <class T>
using Vector = hn::Vec<Tag<T>>;

// What the functions are: of as many vectors as each has sources.
#define ARENITE_FUNCTION(NAME, SOURCES, ...)                                       \
  struct NAME {                                                                    \
    static constexpr int sources = SOURCES;                                        \
    template <class D, class V>                                                    \
    static HWY_INLINE auto of([[maybe_unused]] D d, [[maybe_unused]] const V* x) { \
      return __VA_ARGS__;                                                          \
    }                                                                              \
  };
ARENITE_FUNCTION(Copy, 1, x[0])
ARENITE_FUNCTION(Negate, 1, hn::Neg(x[0]))
ARENITE_FUNCTION(Abs, 1, hn::Abs(x[0]))
// Without an instruction for it Highway loses the sign of a zero.
ARENITE_FUNCTION(Floor, 1, hn::CopySign(hn::Floor(x[0]), x[0]))
ARENITE_FUNCTION(Round, 1, hn::CopySign(hn::Round(x[0]), x[0]))
ARENITE_FUNCTION(Sqrt, 1, hn::Sqrt(x[0]))
ARENITE_FUNCTION(Rsqrt, 1, hn::Div(hn::Set(d, 1), hn::Sqrt(x[0])))
ARENITE_FUNCTION(Exp, 1, math::exp(x[0]))
ARENITE_FUNCTION(Expm1, 1, math::expm1(x[0]))
ARENITE_FUNCTION(Log, 1, math::log(x[0]))
ARENITE_FUNCTION(Log1p, 1, math::log1p(x[0]))
ARENITE_FUNCTION(Sin, 1, math::sin(x[0]))
ARENITE_FUNCTION(Cos, 1, math::cos(x[0]))
ARENITE_FUNCTION(Tanh, 1, math::tanh(x[0]))
ARENITE_FUNCTION(Erf, 1, math::erf(x[0]))
ARENITE_FUNCTION(Sigmoid, 1, math::sigmoid(x[0]))
ARENITE_FUNCTION(Bfloat16, 1, math::bfloat16(x[0]))
ARENITE_FUNCTION(Add, 2, hn::Add(x[0], x[1]))
ARENITE_FUNCTION(Subtract, 2, hn::Sub(x[0], x[1]))
ARENITE_FUNCTION(Multiply, 2, hn::Mul(x[0], x[1]))
ARENITE_FUNCTION(Divide, 2, hn::Div(x[0], x[1]))
ARENITE_FUNCTION(Min, 2, math::min(x[0], x[1]))
ARENITE_FUNCTION(Max, 2, math::max(x[0], x[1]))
ARENITE_FUNCTION(Pow, 2, math::pow(x[0], x[1]))
ARENITE_FUNCTION(Equal, 2, hn::Eq(x[0], x[1]))
ARENITE_FUNCTION(NotEqual, 2, hn::Not(hn::Eq(x[0], x[1])))  // Ne is false of NaN
ARENITE_FUNCTION(Less, 2, hn::Lt(x[0], x[1]))
ARENITE_FUNCTION(LessEqual, 2, hn::Le(x[0], x[1]))
ARENITE_FUNCTION(Fma, 3, math::fma(x[0], x[1], x[2]))
#undef ARENITE_FUNCTION

/// A comparison, and what to take where it holds and where it does not.
template <class Comparison>
struct SelectBy {
  static constexpr int sources = 4;
  template <class D, class V>
  static HWY_INLINE auto of(D d, const V* x) {
    return hn::IfThenElse(Comparison::of(d, x), x[2], x[3]);
  }
};

/// The vectors of what a formula makes, which is one or a std::array. They are copied by constant
/// numbers, and alone: else they would lie in memory in between.
template <class Lanes, std::size_t... result>
HWY_INLINE auto vectors_of(const Lanes& all, std::index_sequence<result...>) {
  return std::array{all[result].raw...};
}
template <class Lanes, std::size_t count>
HWY_INLINE auto vectors_of(const std::array<Lanes, count>& all) {
  return vectors_of(all, std::make_index_sequence<count>());
}
template <class Lanes>
HWY_INLINE auto vectors_of(const Lanes& one) {
  return std::array{one.raw};
}

template <std::size_t... result>
HWY_INLINE void store(const std::array<Vector<float>, sizeof...(result)>& all, float* const* to,
                      std::size_t place, std::index_sequence<result...>) {
  (hn::StoreU(all[result], Tag<float>(), to[result] + place), ...);
}
template <std::size_t count>
HWY_INLINE void store(const std::array<Vector<float>, count>& all, float* const* to,
                      std::size_t place) {
  store(all, to, place, std::make_index_sequence<count>());
}

}  // namespace arenite::expr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
