// Philox4x32-10 for blocks of elements (see meaning.hpp), of the target's vectors.
#if defined(ARENITE_EXPR_PHILOX_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ARENITE_EXPR_PHILOX_INL_HPP
#undef ARENITE_EXPR_PHILOX_INL_HPP
#else
#define ARENITE_EXPR_PHILOX_INL_HPP
#endif

#include <hwy/highway.h>

#include "src/expr/meaning.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE {

constexpr std::size_t philox_block = 64;

#if HWY_TARGET == HWY_SCALAR

inline void philox(std::uint64_t first, std::uint64_t key, std::uint32_t* words) {
  for (std::size_t i = 0; i < philox_block; ++i) words[i] = philox_word(first + i, key);
}

#else

/// The upper halves of products.
template <class V>
HWY_INLINE V high_product(V x, V factor) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::uint32_t> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto even = hn::MulEven(x, factor),
             odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), factor);
  return hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

/// The words of a block, whose first element is at a multiple of its size: of sixteen counters.
HWY_INLINE void philox(std::uint64_t first, std::uint64_t key, std::uint32_t* words) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::uint32_t> d;
  constexpr std::size_t lanes = hn::MaxLanes(hn::ScalableTag<std::uint32_t>()),
                        counters = philox_block / 4;
  const auto a = hn::Set(d, std::uint32_t{philox_first}),
             b = hn::Set(d, std::uint32_t{philox_second});
  for (std::size_t c = 0; c < counters; c += lanes) {
    // The lowest four bits of a block's first counter are zeros: nothing is carried.
    auto x0 = hn::Iota(d, static_cast<std::uint32_t>(first / 4 + c)),
         x1 = hn::Set(d, static_cast<std::uint32_t>(first / 4 >> 32)), x2 = hn::Zero(d), x3 = x2;
    PhiloxKey keys(key);
    for (int round = 0; round < philox_rounds; ++round, keys.next()) {
      const auto high0 = high_product(x0, a), low0 = hn::Mul(x0, a), high2 = high_product(x2, b),
                 low2 = hn::Mul(x2, b);
      x0 = hn::Xor(hn::Xor(high2, x1), hn::Set(d, keys.low));
      x1 = low2;
      x2 = hn::Xor(hn::Xor(high0, x3), hn::Set(d, keys.high));
      x3 = low0;
    }
    hn::StoreU(x0, d, words + c);
    hn::StoreU(x1, d, words + counters + c);
    hn::StoreU(x2, d, words + 2 * counters + c);
    hn::StoreU(x3, d, words + 3 * counters + c);
  }
}

#endif

}  // namespace arenite::expr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
