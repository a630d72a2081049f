// What kernels share that are written once for every set of instructions, on Google Highway: such a
// file is compiled for each of src/expr/simd/targets.hpp, holds its kernel in the target's
// namespace where that has vectors (HWY_TARGET != HWY_SCALAR), and gives it as `make_<name>`.
#if defined(ARENITE_CODELETS_SIMD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ARENITE_CODELETS_SIMD_INL_HPP
#undef ARENITE_CODELETS_SIMD_INL_HPP
#else
#define ARENITE_CODELETS_SIMD_INL_HPP
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace arenite::codelets::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
using Mask = hn::Mask<Floats>;

constexpr std::int64_t lanes = hn::MaxLanes(Floats());  ///< floats of a vector
/// 32 registers hold twice as many sums as 16.
constexpr bool has_32_registers = HWY_TARGET == HWY_AVX3;

/// The first `count` lanes (at least none), or all of them.
HWY_INLINE Mask first_lanes(std::int64_t count) {
  return hn::FirstN(Floats(), static_cast<std::size_t>(std::min(count, lanes)));
}

/// Vector v of a row of so many, of whose last one only some elements are there.
template <int vectors>
HWY_INLINE Vector load(const float* row, int v, Mask last) {
  const float* from = row + v * lanes;
  return v + 1 == vectors ? hn::MaskedLoad(last, Floats(), from) : hn::LoadU(Floats(), from);
}
template <int vectors>
HWY_INLINE void store(Vector x, float* row, int v, Mask last) {
  float* to = row + v * lanes;
  v + 1 == vectors ? hn::BlendedStore(x, last, Floats(), to) : hn::StoreU(x, Floats(), to);
}

/// The gradient where relu's output is not 0.
HWY_INLINE Vector relu_grad(Vector output, Vector gradient) {
  return hn::IfThenZeroElse(hn::Le(output, hn::Zero(Floats())), gradient);
}

}  // namespace arenite::codelets::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
