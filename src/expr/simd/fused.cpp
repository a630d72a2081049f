#include "src/expr/simd/fused.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/expr/simd/fused.cpp"
#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "src/expr/simd/functions-inl.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "src/expr/formulas.hpp"
#include "src/expr/simd/isa.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE {

/// What formulas compute with.
struct Lanes {
  Vector<float> raw;

  HWY_INLINE Lanes(Vector<float> x) : raw(x) {}
  HWY_INLINE Lanes(double x)
      : raw(hn::Set(Tag<float>(), static_cast<float>(x))) {}  // NOLINT: as in 1 + x
};
struct Truths {
  hn::Mask<Tag<float>> raw;
};

template <class F, class... X>
HWY_INLINE auto applied(X... x) {
  const Vector<float> sources[] = {x.raw...};
  const auto made = F::of(Tag<float>(), sources);
  if constexpr (std::is_same_v<decltype(made), const Vector<float>>) {
    return Lanes(made);
  } else {
    return Truths{made};
  }
}

#define ARENITE_OF_LANES HWY_INLINE
#include "src/expr/simd/lanes.inc"
HWY_INLINE Lanes select(Truths where, Lanes yes, Lanes no) {
  return hn::IfThenElse(where.raw, yes.raw, no.raw);
}

namespace {
namespace of {
#define ARENITE_FORMULA_INLINE HWY_INLINE
#include "src/expr/formulas.def"
}  // namespace of

/// What it takes, by the type of a function.
template <class F>
struct Signature;
template <class Made, class... Given>
struct Signature<Made (*)(Given...)> {
  static constexpr std::size_t operands = (std::is_same_v<Given, Lanes> + ...);
  static constexpr std::size_t numbers = sizeof...(Given) - operands;
};

/// A formula's operands: those that are the same everywhere are read at the first place. Where
/// there are none (`all_move`), no place is worked out for each.
template <class F, std::size_t count, bool all_move = false>
struct Operands {
  const float* from[count];
  std::size_t moving[count];  // all bits, or none

  Operands(const void* const* operands, std::uint64_t splats) {
    for (std::size_t i = 0; i < count; ++i) {
      from[i] = static_cast<const float*>(operands[i]);
      moving[i] = (splats >> i & 1) != 0 ? 0 : ~std::size_t{0};
    }
  }

  template <std::size_t... operand, std::size_t... number>
  HWY_INLINE auto at(std::size_t place, const double* numbers, std::index_sequence<operand...>,
                     std::index_sequence<number...>) const {
    return vectors_of(F::template of<Lanes>(
        Lanes(hn::LoadU(Tag<float>(),
                        from[operand] + (all_move ? place : place & moving[operand])))...,
        numbers[number]...));
  }
};

/// The elements that fill no vector are copied: nothing outside is touched.
template <class F>
void loop(void* const* targets, const void* const* sources, std::uint64_t splats, std::size_t count,
          const double* given) {
  using S = Signature<decltype(&F::template of<Lanes>)>;
  constexpr std::size_t lanes = hn::MaxLanes(Tag<float>());
  constexpr std::make_index_sequence<S::operands> operands;
  constexpr std::make_index_sequence<S::numbers> indices;
  // Where stores to results do not make them anew.
  double numbers[S::numbers + 1];
  std::copy_n(given, S::numbers, numbers);
  const Operands<F, S::operands> from(sources, splats);
  constexpr std::size_t results =
      std::tuple_size_v<decltype(from.at(0, numbers, operands, indices))>;
  float* to[results];
  for (std::size_t i = 0; i < results; ++i) to[i] = static_cast<float*>(targets[i]);
  std::size_t place = 0;
  if (splats == 0) {
    const Operands<F, S::operands, true> all(sources, 0);
    constexpr std::size_t at_once = 4;
    for (; place + at_once * lanes <= count; place += at_once * lanes) {
#pragma GCC unroll 4
      for (std::size_t i = 0; i < at_once; ++i) {
        const std::size_t at = place + i * lanes;
        store(all.at(at, numbers, operands, indices), to, at);
      }
    }
  }
  for (; place + lanes <= count; place += lanes)
    store(from.at(place, numbers, operands, indices), to, place);
  const std::size_t left = count - place;
  if (left == 0) return;
  float rest[S::operands][lanes] = {}, made[results][lanes];
  const void* at_rest[S::operands];
  for (std::size_t i = 0; i < S::operands; ++i) {
    const bool is_splat = from.moving[i] == 0;
    std::memcpy(rest[i], from.from[i] + (is_splat ? 0 : place),
                (is_splat ? lanes : left) * sizeof(float));
    at_rest[i] = rest[i];
  }
  float* last[results];
  for (std::size_t i = 0; i < results; ++i) last[i] = made[i];
  store(Operands<F, S::operands>(at_rest, 0).at(0, numbers, operands, indices), last, 0);
  for (std::size_t i = 0; i < results; ++i)
    std::memcpy(to[i] + place, made[i], left * sizeof(float));
}

}  // namespace

FusedLoop fused_loop(std::size_t formula) {
  static constexpr FusedLoop loops[] = {
#define ARENITE_FORMULA(NAME, ...) &loop<of::NAME>,
#define ARENITE_ROWS(...) nullptr,
#include "src/expr/formulas.def"
  };
  return loops[formula];
}

}  // namespace arenite::expr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite::expr {
HWY_EXPORT(fused_loop);

Fused find_fused(const Expression& expression) {
  apply_isa();
  auto found = find_formula(expression);
  if (!found) return {};
  return {HWY_DYNAMIC_DISPATCH(fused_loop)(found->formula), std::move(found->numbers)};
}

}  // namespace arenite::expr
#endif
