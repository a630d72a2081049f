// How totals are taken: rules for two of them, and those of `fold_lanes` lanes in registers.
#if defined(ARENITE_EXPR_FOLDS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef ARENITE_EXPR_FOLDS_INL_HPP
#undef ARENITE_EXPR_FOLDS_INL_HPP
#else
#define ARENITE_EXPR_FOLDS_INL_HPP
#endif

#include <hwy/highway.h>

#include <limits>
#include <type_traits>

#include "src/expr/meaning.hpp"
#include "src/expr/simd/folds.hpp"
#include "src/expr/simd/functions-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE {

/// Of sums and products: integers wrap around.
template <class T, Function function>
struct Sum {
  using Kept = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  using Step = std::conditional_t<function == Function::sum, Add, Multiply>;
  static constexpr Kept none = function == Function::sum ? 0 : 1;

  static Kept join(Kept a, Kept b) noexcept { return function == Function::sum ? a + b : a * b; }
};

/// Of floats: a NaN is what it comes to, and −0 is less than 0.
template <class T, Function function>
struct Extreme {
  using Kept = T;
  static constexpr bool least = function == Function::least;
  using Step = std::conditional_t<least, Min, Max>;
  using Limits = std::numeric_limits<T>;
  static constexpr Kept none = std::is_floating_point_v<T>
                                   ? (least ? Limits::infinity() : -Limits::infinity())
                                   : (least ? Limits::max() : Limits::lowest());

  static Kept join(Kept a, Kept b) noexcept {
    return expr::of < least ? Function::min : Function::max > (a, b);
  }
};

/// Of booleans in tiles: all, or any.
template <Function function>
struct Truth {
  using Kept = std::uint32_t;
  static constexpr Kept none = function == Function::least ? ~Kept{0} : 0;

  static Kept join(Kept a, Kept b) noexcept { return function == Function::least ? a & b : a | b; }
};

/// Totals of floats, by lane: of `fold_lanes` lanes, or of as many for each of several turns.
template <class T, class Rule, std::size_t turns = 1>
struct Held {
  using Kept = typename Rule::Kept;
  static constexpr Tag<Kept> kept{};
  static constexpr std::size_t lanes = hn::MaxLanes(kept), count = turns * fold_lanes / lanes;

  Vector<Kept> all[count];

  HWY_INLINE void load(const Kept* from) {
    for (std::size_t i = 0; i < count; ++i) all[i] = hn::LoadU(kept, from + i * lanes);
  }
  HWY_INLINE void fill() {
#pragma GCC unroll 16  // else it is memset's
    for (std::size_t i = 0; i < count; ++i) all[i] = hn::Set(kept, Rule::none);
  }
  HWY_INLINE void store(Kept* to) const {
    for (std::size_t i = 0; i < count; ++i) hn::StoreU(all[i], kept, to + i * lanes);
  }
  HWY_INLINE void add(const T* values) {
    for (std::size_t i = 0; i < count; ++i) step(i, promoted(values + i * lanes));
  }
  /// A vector of values: number `part` of those that fill the lanes of the first turn, and then of
  /// the others.
  HWY_INLINE void add(std::size_t part, Vector<T> values) {
    constexpr std::size_t at_once = hn::MaxLanes(Tag<T>()) / lanes;
    if constexpr (at_once == 1) {
      if constexpr (std::is_same_v<T, Kept>)
        step(part, values);
      else
        step(part, hn::PromoteTo(kept, values));
    } else {
#if HWY_TARGET != HWY_SCALAR  // which has no halves
      const hn::Half<Tag<T>> half;
      step(part * at_once, hn::PromoteTo(kept, hn::LowerHalf(half, values)));
      step(part * at_once + 1, hn::PromoteTo(kept, hn::UpperHalf(half, values)));
#endif
    }
  }
  /// Of all lanes, in a tree.
  HWY_INLINE Kept total() const {
    Vector<Kept> left[count];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < count; ++i) left[i] = all[i];
#pragma GCC unroll 4
    for (std::size_t many = count / 2; many > 0; many /= 2) {
#pragma GCC unroll 8
      for (std::size_t i = 0; i < many; ++i) {
        const Vector<Kept> both[] = {left[i], left[many + i]};
        left[i] = Rule::Step::of(kept, both);
      }
    }
    return joined(kept, left[0]);
  }

 private:
  /// Of a vector's lanes: its halves, those of what they make, and so on.
  template <class D>
  static HWY_INLINE Kept joined([[maybe_unused]] D d, hn::Vec<D> values) {
#if HWY_TARGET != HWY_SCALAR  // which has no halves
    if constexpr (hn::MaxLanes(d) > 1) {
      const hn::Half<D> half;
      const hn::Vec<hn::Half<D>> both[] = {hn::LowerHalf(half, values),
                                           hn::UpperHalf(half, values)};
      return joined(half, Rule::Step::of(half, both));
    }
#endif
    return hn::GetLane(values);
  }
  HWY_INLINE void step(std::size_t i, Vector<Kept> values) {
    const Vector<Kept> both[] = {all[i % count], values};
    all[i % count] = Rule::Step::of(kept, both);
  }
  static HWY_INLINE Vector<Kept> promoted(const T* values) {
    if constexpr (std::is_same_v<T, Kept>) {
      return hn::LoadU(kept, values);
    } else {
      return hn::PromoteTo(kept, hn::LoadU(hn::Rebind<T, Tag<Kept>>(), values));
    }
  }
};

}  // namespace arenite::expr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
