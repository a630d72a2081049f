// Mathematical functions of the target's vectors. math_test measures how exact they are.
//
// Those of float32 are polynomials of steps that IEEE 754 defines, and SLEEF's are deterministic:
// AVX2 and AVX-512 make the same bits. Without FMA bits may differ, within the same bounds. Results
// are right where denormals count as zero, and where they do not.
#if defined(ARENITE_EXPR_MATH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ARENITE_EXPR_MATH_INL_HPP
#undef ARENITE_EXPR_MATH_INL_HPP
#else
#define ARENITE_EXPR_MATH_INL_HPP
#endif

#include <hwy/highway.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

#include "src/expr/simd/sleef-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE::math {

using Int32 = hn::Vec<hn::RebindToSigned<Tag<float>>>;

HWY_INLINE Float32 splat(float x) { return hn::Set(Tag<float>(), x); }
HWY_INLINE Float64 splat(double x) { return hn::Set(Tag<double>(), x); }
HWY_INLINE Int32 splat(std::int32_t x) { return hn::Set(hn::RebindToSigned<Tag<float>>(), x); }
HWY_INLINE Int32 bits_of(Float32 x) { return hn::BitCast(hn::RebindToSigned<Tag<float>>(), x); }
HWY_INLINE Float32 of_bits(Int32 x) { return hn::BitCast(Tag<float>(), x); }

constexpr float infinity32 = std::numeric_limits<float>::infinity();
constexpr float nan32 = std::numeric_limits<float>::quiet_NaN();

// ln 2 in two parts: the first has few bits, so that its products with exponents are exact.
constexpr float ln2_high = 0.693145752f, ln2_low = 1.42860677e-6f;

// ---- Minima and maxima, of which x86 makes the second operand where neither is the smaller or
// larger one: asked both ways, it makes each of two zeros, and a NaN at least once.

template <class V>
HWY_INLINE V min(V a, V b) {
#if HWY_TARGET == HWY_SCALAR
  const V smaller = hn::IfThenElse(hn::Lt(a, b), a, b);
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), smaller));
#else
  return hn::Or(hn::Min(a, b), hn::Min(b, a));
#endif
}

template <class V>
HWY_INLINE V max(V a, V b) {
#if HWY_TARGET == HWY_SCALAR
  const V larger = hn::IfThenElse(hn::Lt(b, a), a, b);
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), larger));
#else
  // They differ only where they are two zeros, and −0 − −0 is 0; or NaN, which stays one.
  const V one = hn::Max(a, b), other = hn::Max(b, a), both = hn::Or(one, other);
  return hn::Sub(both, hn::Xor(one, other));
#endif
}

/// Rounded once, also where the processor has no such instruction.
template <class V>
HWY_INLINE V fma(V a, V b, V c) {
#if HWY_TARGET == HWY_SCALAR
  return V{std::fma(a.raw, b.raw, c.raw)};
#else
  return hn::MulAdd(a, b, c);
#endif
}

/// A NaN stays one.
HWY_INLINE Float32 at_most(Float32 x, float high) {
#if HWY_TARGET == HWY_SCALAR
  return hn::IfThenElse(hn::Gt(x, splat(high)), splat(high), x);
#else
  return hn::Min(splat(high), x);
#endif
}

/// A NaN stays one.
HWY_INLINE Float32 clamp(float low, Float32 x, float high) {
  x = at_most(x, high);
#if HWY_TARGET == HWY_SCALAR
  return hn::IfThenElse(hn::Lt(x, splat(low)), splat(low), x);
#else
  return hn::Max(splat(low), x);
#endif
}

/// The sum of factors[i] · x^i, the highest first.
template <class... Factors>
HWY_INLINE Float32 polynomial(Float32 x, float highest, Factors... factors) {
  Float32 sum = splat(highest);
  ((sum = hn::MulAdd(sum, x, splat(factors))), ...);
  return sum;
}

/// To the nearest that a bfloat16 holds, ties to even.
HWY_INLINE Float32 bfloat16(Float32 x) {
  const hn::RebindToUnsigned<Tag<float>> d;
  const auto bits = hn::BitCast(d, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto sum = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fff)));
  const Float32 rounded = hn::BitCast(Tag<float>(), hn::And(sum, hn::Set(d, 0xffff0000u)));
  return hn::IfThenElse(hn::IsNaN(x), x, rounded);
}

// ---- Exponentials of float32

/// e^x = 2^n · (1 + rest), with n in the low bits of `shifted`.
struct Power {
  Float32 rest;
  Int32 shifted;
};

constexpr float magic = 12582912.0f;  // 1.5 · 2^23, beside which only whole numbers exist

HWY_INLINE Power power(Float32 x) {
  const Float32 t = hn::MulAdd(x, splat(1.44269504f), splat(magic));
  const Float32 n = hn::Sub(t, splat(magic));
  Float32 r = hn::NegMulAdd(n, splat(ln2_high), x);
  r = hn::NegMulAdd(n, splat(ln2_low), r);
  const Float32 p =
      polynomial(r, 0.00138145383f, 0.00836874545f, 0.041668389f, 0.166665211f, 0.49999994f);
  return {hn::MulAdd(hn::Mul(p, r), r, r), bits_of(t)};
}

HWY_INLINE Int32 exponent(const Power& e) {
  return hn::Sub(e.shifted, splat(std::int32_t{0x4b400000}));
}

/// For −126 <= n <= 127, of which the low 9 bits are enough.
HWY_INLINE Float32 exp2(Int32 n) {
  return of_bits(hn::ShiftLeft<23>(hn::Add(n, splat(std::int32_t{127}))));
}

/// x · 2^n, rounded once, with n in the low bits of `shifted`, and x near 1. In two steps, as 2^n
/// itself may be too large, or too small.
HWY_INLINE Float32 scaled(Float32 x, Int32 shifted) {
#if HWY_TARGET == HWY_AVX3
  const Float32 n = hn::Sub(of_bits(shifted), splat(magic));
  return Float32{_mm512_scalef_ps(x.raw, n.raw)};
#else
  const Int32 half = hn::ShiftRight<1>(shifted);
  return hn::Mul(hn::Mul(x, exp2(half)), exp2(hn::Sub(shifted, half)));
#endif
}

HWY_INLINE Float32 exp(Float32 x) {
  const Power e = power(clamp(-104.0f, x, 89.0f));
  return scaled(hn::Add(e.rest, splat(1.0f)), e.shifted);
}

/// No less than e^−87, and no more than e^88: what is beyond is lost beside a 1.
HWY_INLINE Float32 exp_beside_one(Float32 x) {
  const Power e = power(clamp(-87.0f, x, 88.0f));
  return hn::Mul(hn::Add(e.rest, splat(1.0f)), exp2(e.shifted));
}

/// 2^n · rest + (2^n − 1), of which half is made first: there is no 2^128.
HWY_INLINE Float32 expm1(Float32 x) {
  const Power e = power(clamp(-26.0f, x, 89.0f));
  const Float32 scale = exp2(hn::Sub(exponent(e), splat(std::int32_t{1})));
  const Float32 half = hn::MulAdd(e.rest, scale, hn::Sub(scale, splat(0.5f)));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), splat(0x1p-25f)), x, hn::Add(half, half));
}

// ---- Logarithms of float32

/// Of n · ln 2 + log(1 + f), with 1 + f from √½ to √2.
HWY_INLINE Float32 log_of_parts(Float32 n, Float32 f) {
  const Float32 p = polynomial(f, -0.0763449296f, 0.12761575f, -0.131601825f, 0.142017588f,
                               -0.166233569f, 0.200012267f, -0.250008196f, 0.333333313f);
  const Float32 square = hn::Mul(f, f);
  Float32 low = hn::MulAdd(hn::Mul(p, f), square, hn::Mul(n, splat(ln2_low)));
  low = hn::NegMulAdd(splat(0.5f), square, low);
  return hn::MulAdd(n, splat(ln2_high), hn::Add(f, low));
}

HWY_INLINE Float32 log(Float32 x) {
  const Float32 zero = splat(0.0f), infinity = splat(infinity32);
  const auto denormal = hn::Lt(x, splat(std::numeric_limits<float>::min()));
  const Int32 bits = bits_of(hn::IfThenElse(denormal, hn::Mul(x, splat(0x1p23f)), x));
  const Int32 n = hn::ShiftRight<23>(hn::Sub(bits, splat(std::int32_t{0x3f3504f3})));  // √½
  const Float32 mantissa = of_bits(hn::Sub(bits, hn::ShiftLeft<23>(n)));
  const Float32 power =
      hn::Sub(hn::ConvertTo(Tag<float>(), n), hn::IfThenElseZero(denormal, splat(23.0f)));
  Float32 made = log_of_parts(power, hn::Sub(mantissa, splat(1.0f)));
  made = hn::IfThenElse(hn::Lt(x, infinity), made, x);  // a NaN stays one
  made = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), made);
  return hn::IfThenElse(hn::Lt(x, zero), splat(nan32), made);
}

/// The logarithm of 1 + x as it is rounded, and what rounding lost.
HWY_INLINE Float32 log1p(Float32 x) {
  const Float32 one = splat(1.0f), sum = hn::Add(one, x);
  const Float32 lost = hn::Div(hn::Sub(x, hn::Sub(sum, one)), sum);
  const auto finite = hn::And(hn::Gt(sum, splat(0.0f)), hn::Lt(sum, splat(infinity32)));
  // It has the sign of x, also for −0.
  return hn::CopySign(hn::Add(log(sum), hn::IfThenElseZero(finite, lost)), x);
}

// ---- Functions of float32 between −1 and 1

HWY_INLINE Float32 tanh(Float32 x) {
  const Float32 size = hn::Abs(x), square = hn::Mul(x, x), one = splat(1.0f);
  const Float32 p = polynomial(square, -0.00570498733f, 0.020639088f, -0.0537397154f, 0.133314416f,
                               -0.333332807f);
  const Float32 small = hn::MulAdd(hn::Mul(p, square), x, x);
  const Float32 power = exp_beside_one(hn::Add(size, size));
  const Float32 large = hn::Sub(one, hn::Div(splat(2.0f), hn::Add(power, one)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(size, splat(0.625f)), small, large), x);
}

/// Of places that are equal in their lowest three bits.
using Table = std::array<float, 16>;
template <class... X>
constexpr Table twice(X... x) {
  return {x..., x...};
}

HWY_INLINE Float32 looked_up(const Table& table, Int32 place) {
  place = hn::And(place, splat(std::int32_t{7}));
#if HWY_TARGET == HWY_SCALAR
  return splat(table[static_cast<std::size_t>(place.raw)]);
#else
  const Tag<float> d;
  return hn::TableLookupLanes(hn::LoadU(d, table.data()), hn::IndicesFromVec(d, place));
#endif
}

// By half, from 0 to 4: a middle whose erf is all but exactly a float, that one, and the factors of
// a polynomial of the distance. The first one is about 0, where erf x is x + x · p(x).
inline constexpr Table erf_middle = twice(0.0f, 0.738601685f, 1.25780487f, 1.73545837f, 2.25991821f,
                                          2.72864532f, 3.24835205f, 3.74391937f);
inline constexpr Table erf_there = twice(0.0f, 0.703764617f, 0.924728215f, 0.985884428f,
                                         0.998606563f, 0.999886096f, 0.999995649f, 0.999999881f);
inline constexpr Table erf_factors[] = {
    twice(-0.0173202213f, 0.0178852864f, 0.00380848045f, -0.00593598187f, -0.00072368898f,
          0.000634766824f, 0.000173929133f, 1.7441027e-05f),
    twice(-0.0089203408f, -0.0280352794f, 0.0208360553f, 0.00964790769f, -0.00283442088f,
          -0.00176267768f, -0.000275401399f, -2.1493006e-05f),
    twice(0.116352849f, -0.0513500571f, -0.0462234952f, 0.0058038109f, 0.010493041f, 0.0029761754f,
          0.000316307589f, 1.90701521e-05f),
    twice(-0.000678115815f, 0.15365839f, -0.00795794837f, -0.0485568903f, -0.0185632445f,
          -0.00356365228f, -0.000288803771f, -1.43487523e-05f),
    twice(-0.376065016f, 0.0198502298f, 0.167316079f, 0.0929688662f, 0.0209776778f, 0.00305154594f,
          0.000197708767f, 8.31325906e-06f),
    twice(-2.1079527e-06f, -0.482996017f, -0.291731328f, -0.0963505507f, -0.0154349292f,
          -0.0017982953f, -9.58408855e-05f, -3.45466992e-06f),
    twice(0.128379181f, 0.653933108f, 0.231936678f, 0.0555188023f, 0.00682988157f, 0.000659042387f,
          2.95032823e-05f, 9.22526226e-07f)};

HWY_INLINE Float32 erf(Float32 x) {
  const Float32 size = at_most(hn::Abs(x), 3.96875f);
  // From 4 to 8 the highest bits behind the exponent count halves; what is all but one is rounded.
  const Float32 shifted = hn::Add(size, splat(4.0f));
  const Int32 place = hn::ShiftRight<20>(bits_of(shifted));
  const Float32 distance = hn::Sub(size, looked_up(erf_middle, place));
  Float32 p = looked_up(erf_factors[0], place);
#pragma GCC unroll 8
  for (std::size_t i = 1; i < std::size(erf_factors); ++i)
    p = hn::MulAdd(p, distance, looked_up(erf_factors[i], place));
  const Float32 there =
      hn::IfThenElse(hn::Lt(shifted, splat(4.5f)), size, looked_up(erf_there, place));
#if HWY_TARGET == HWY_SCALAR
  // The product alone may be too small to be normal where the sum is not.
  const Float32 up = splat(0x1p24f);
  const Float32 made =
      hn::Mul(hn::MulAdd(p, hn::Mul(distance, up), hn::Mul(there, up)), splat(0x1p-24f));
#else
  const Float32 made = hn::MulAdd(p, distance, there);
#endif
  return hn::CopySign(made, x);
}

HWY_INLINE Float32 sin(Float32 x) { return sleef::sin(x); }
HWY_INLINE Float32 cos(Float32 x) { return sleef::cos(x); }
HWY_INLINE Float32 pow(Float32 x, Float32 y) { return sleef::pow(x, y); }

// ---- Functions of float64, with what SLEEF leaves out of them

template <class M>
HWY_INLINE bool any(M mask) {
  return !hn::AllFalse(Tag<double>(), mask);
}

/// SLEEF's products of small numbers are lost where denormals count as zero, and a −0 for a sum.
HWY_INLINE Float64 or_itself_below(double limit, Float64 x, Float64 made) {
  return hn::IfThenElse(hn::Lt(hn::Abs(x), splat(limit)), x, made);
}

HWY_INLINE Float64 expm1(Float64 x) { return or_itself_below(0x1p-54, x, sleef::expm1(x)); }

/// SLEEF's ends a little before the largest numbers, its expm1 does not.
HWY_INLINE Float64 exp(Float64 x) {
  const Float64 made = sleef::exp(x);
  const auto large = hn::Gt(x, splat(709.0));
  return HWY_UNLIKELY(any(large)) ? hn::IfThenElse(large, sleef::expm1(x), made) : made;
}

HWY_INLINE Float64 log(Float64 x) { return sleef::log(x); }

/// SLEEF's is for numbers up to 1e307.
HWY_INLINE Float64 log1p(Float64 x) {
  const Float64 made = or_itself_below(0x1p-54, x, sleef::log1p(x));
  const auto large = hn::Gt(x, splat(1e300));
  return HWY_UNLIKELY(any(large)) ? hn::IfThenElse(large, sleef::log(x), made) : made;
}

HWY_INLINE Float64 sin(Float64 x) { return or_itself_below(0x1p-27, x, sleef::sin(x)); }
HWY_INLINE Float64 cos(Float64 x) { return sleef::cos(x); }
HWY_INLINE Float64 tanh(Float64 x) { return sleef::tanh(x); }
HWY_INLINE Float64 erf(Float64 x) {
  const Float64 line = hn::Mul(x, splat(1.1283791670955126));  // 2 / √π
  return hn::IfThenElse(hn::Lt(hn::Abs(x), splat(0x1p-28)), line, sleef::erf(x));
}

/// SLEEF's is ∞ a little before the largest numbers: what it says is ∞ is made of square roots.
HWY_INLINE Float64 pow(Float64 x, Float64 y) {
  const Float64 made = sleef::pow(x, y);
  // The half of a smaller exponent may be 0; with that only 0 and ∞ make ∞, and SLEEF knows those.
  const auto infinite = hn::And(hn::IsInf(made), hn::Gt(hn::Abs(y), splat(1e-300)));
  if (HWY_LIKELY(!any(infinite))) return made;
  const Float64 root = sleef::pow(hn::Abs(x), hn::Mul(y, splat(0.5)));
  return hn::IfThenElse(infinite, hn::CopySign(hn::Mul(root, root), made), made);
}

// ---- Functions of both

/// Of z = e^−|x|, which is never too large: 1 / (1 + z), or z / (1 + z) where x is negative.
template <class V>
HWY_INLINE V sigmoid_by(V x, V one) {
  const V z = exp(hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Sub(one, one)), z, one), hn::Add(one, z));
}
HWY_INLINE Float32 sigmoid(Float32 x) { return sigmoid_by(x, splat(1.0f)); }
HWY_INLINE Float64 sigmoid(Float64 x) { return sigmoid_by(x, splat(1.0)); }

}  // namespace arenite::expr::HWY_NAMESPACE::math
HWY_AFTER_NAMESPACE();
#endif
