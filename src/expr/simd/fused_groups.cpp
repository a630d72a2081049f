#include "src/expr/simd/fused_groups.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/expr/simd/fused_groups.cpp"
#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "src/expr/formulas.hpp"
#include "src/expr/simd/folds-inl.hpp"
#include "src/expr/simd/isa.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE {
namespace groups {

constexpr std::size_t most_folds = 4;
constexpr std::size_t lanes = hn::MaxLanes(Tag<float>()), parts = fold_lanes / lanes;
/// What a loop does in one go, where that many elements are left.
constexpr std::size_t at_once = HWY_TARGET == HWY_SCALAR ? 1 : 4;

enum class Rule : std::uint8_t { sum, least, greatest };

/// What a formula asks for, in the order in which it does.
struct Outline {
  struct Fold {
    Rule rule;
    int sweep;  ///< in which its values are there
  };
  std::array<Fold, most_folds> folds{};
  std::size_t count = 0, kept = 0;
  bool keeps_first = false;  ///< something in the first sweep
  int sweeps = 0;            ///< before the last one, which makes the result
};

/// Of a formula that is only looked at.
namespace outline {

struct Lanes {
  int sweep = 0;
  Outline* of = nullptr;

  constexpr Lanes(int when, Outline* outline) : sweep(when), of(outline) {}
  constexpr Lanes(double) {}  // NOLINT: as in 1 + x
};
using Truths = Lanes;

template <class F, class... X>
constexpr Lanes applied(X... x) {
  Lanes made(0, nullptr);
  ((made.of = x.of != nullptr ? x.of : made.of, made.sweep = std::max(made.sweep, x.sweep)), ...);
  return made;
}
#define ARENITE_OF_LANES constexpr
#include "src/expr/simd/lanes.inc"
constexpr Lanes select(Truths where, Lanes yes, Lanes no) { return applied<Copy>(where, yes, no); }

constexpr Lanes folded(Lanes x, Rule rule) {
  x.of->folds[x.of->count++] = {rule, x.sweep};
  return {x.sweep + 1, x.of};
}
constexpr Lanes sum(Lanes x) { return folded(x, Rule::sum); }
constexpr Lanes min(Lanes x) { return folded(x, Rule::least); }
constexpr Lanes max(Lanes x) { return folded(x, Rule::greatest); }
constexpr Lanes mean(Lanes x) { return sum(x); }
constexpr Lanes keep(Lanes x) {
  ++x.of->kept;
  x.of->keeps_first |= x.sweep == 0;
  return x;
}

constexpr std::array<Lanes, 1> several(Lanes one) { return {{one}}; }
template <std::size_t count>
constexpr std::array<Lanes, count> several(const std::array<Lanes, count>& all) {
  return all;
}

}  // namespace outline

template <class F, std::size_t... operand, std::size_t... number>
constexpr Outline outline_of(std::index_sequence<operand...>, std::index_sequence<number...>) {
  Outline made;
  for (const outline::Lanes& result : outline::several(
           F::template of<outline::Lanes>((static_cast<void>(operand), outline::Lanes(0, &made))...,
                                          (static_cast<void>(number), 1.0)...)))
    made.sweeps = std::max(made.sweeps, result.sweep);
  return made;
}

/// A group while it is swept: all but numbers is known to the compiler.
struct Group {
  int sweep = 0;                          ///< those before it are done
  bool is_last = false, is_whole = true;  ///< else some lanes lack elements
  hn::Mask<Tag<float>> is_there;
  std::size_t left = 0;            ///< that are there
  std::size_t part = 0;            ///< of the lanes that totals are taken in
  std::size_t turn = 0;            ///< of those that go on at once
  std::size_t fold = 0, kept = 0;  ///< those that the formula has asked for so far
  std::size_t elements = 0;
  Vector<float> count;  ///< of them
  const double* numbers = nullptr;
  const std::size_t* moving = nullptr;  ///< by operand: all bits, or none
  float* place = nullptr;               ///< of what is kept, where this part's is
  std::size_t stride = 0;               ///< from one kept value to the next
  Vector<float> known[most_folds];
  Held<float, Sum<float, Function::sum>> sums[most_folds];
  // In whatever order they are taken.
  Held<float, Extreme<float, Function::least>, at_once> least[most_folds];
  Held<float, Extreme<float, Function::greatest>, at_once> greatest[most_folds];
};

/// What formulas compute with: known before the sweep of that number, and made in it.
struct Lanes {
  Vector<float> raw;
  Group* group = nullptr;
  int sweep = 0;

  HWY_INLINE Lanes(Vector<float> x, Group* of, int when) : raw(x), group(of), sweep(when) {}
  /// Member by member: as a whole it would be copied in memory.
  HWY_INLINE Lanes(const Lanes& of) : raw(of.raw), group(of.group), sweep(of.sweep) {}
  HWY_INLINE Lanes(double x)
      : raw(hn::Set(Tag<float>(), static_cast<float>(x))) {}  // NOLINT: as in 1 + x
};
struct Truths {
  hn::Mask<Tag<float>> raw;
  Group* group;
  int sweep;
};

template <class F, class... X>
HWY_INLINE auto applied(X... x) {
  const Vector<float> sources[] = {x.raw...};
  Group* group = nullptr;
  int sweep = 0;
  ((group = x.group != nullptr ? x.group : group, sweep = x.sweep > sweep ? x.sweep : sweep), ...);
  const auto made = F::of(Tag<float>(), sources);
  if constexpr (std::is_same_v<decltype(made), const Vector<float>>) {
    return Lanes(made, group, sweep);
  } else {
    return Truths{made, group, sweep};
  }
}

#define ARENITE_OF_LANES HWY_INLINE
#include "src/expr/simd/lanes.inc"
HWY_INLINE Lanes select(Truths where, Lanes yes, Lanes no) {
  const Vector<float> made = hn::IfThenElse(where.raw, yes.raw, no.raw);
  Lanes all = applied<Add>(yes, no);
  all.raw = made;
  all.sweep = std::max(all.sweep, where.sweep);
  all.group = where.group != nullptr ? where.group : all.group;
  return all;
}

template <class Fold>
HWY_INLINE Lanes folded(Lanes x, Fold (Group::*folds)[most_folds], float none) {
  Group& group = *x.group;
  const std::size_t i = group.fold++;
  const int next = x.sweep + 1;
  if (x.sweep < group.sweep || group.is_last) return {group.known[i], &group, next};
  if (x.sweep == group.sweep) {
    const Vector<float> value =
        group.is_whole ? x.raw : hn::IfThenElse(group.is_there, x.raw, hn::Set(Tag<float>(), none));
    (group.*folds)[i].add(group.turn * parts + group.part, value);
  }
  return {hn::Zero(Tag<float>()), &group, next};
}

HWY_INLINE Lanes sum(Lanes x) { return folded(x, &Group::sums, 0); }
HWY_INLINE Lanes min(Lanes x) {
  return folded(x, &Group::least, std::numeric_limits<float>::infinity());
}
HWY_INLINE Lanes max(Lanes x) {
  return folded(x, &Group::greatest, -std::numeric_limits<float>::infinity());
}
HWY_INLINE Lanes mean(Lanes x) { return sum(x) / Lanes(x.group->count, x.group, 0); }

HWY_INLINE Lanes keep(Lanes x) {
  Group& group = *x.group;
  float* const place = group.place + group.kept++ * group.stride;
  if (x.sweep < group.sweep || group.is_last)
    return {hn::LoadU(Tag<float>(), place), &group, x.sweep};
  if (x.sweep == group.sweep) hn::StoreU(x.raw, Tag<float>(), place);
  return x;
}

namespace of {
#define ARENITE_FORMULA_INLINE constexpr HWY_INLINE
#include "src/expr/formulas.def"
}  // namespace of

template <class F>
struct Signature;
template <class Made, class... Given>
struct Signature<Made (*)(Given...)> {
  using Result = Made;
  static constexpr std::size_t operands = (std::is_same_v<Given, Lanes> + ...);
  static constexpr std::size_t numbers = sizeof...(Given) - operands;
};

template <class F>
struct Loop {
  using Given = Signature<decltype(&F::template of<Lanes>)>;
  static constexpr std::size_t count = Given::operands;
  using All = std::make_index_sequence<count>;
  using Numbers = std::make_index_sequence<Given::numbers>;
  static constexpr Outline outline = outline_of<F>(All(), Numbers());
  static_assert(!outline.keeps_first, "the group before still needs what it keeps");
  static constexpr std::size_t results =
      std::tuple_size_v<decltype(vectors_of(std::declval<typename Given::Result>()))>;

  /// Where a group is, told apart from what is stored to results.
  struct Places {
    const float* from[count];
    float *to[results], *kept;
  };

  /// What a part of the lanes makes. Where all operands move (`all_move`), no place is worked out
  /// for each.
  template <bool all_move, std::size_t... operand, std::size_t... number>
  static HWY_INLINE auto at(Group& group, const Places& places, std::size_t place,
                            std::index_sequence<operand...>, std::index_sequence<number...>) {
    group.fold = group.kept = 0;
    group.place = places.kept + place;
    return vectors_of(F::template of<Lanes>(
        Lanes(hn::LoadU(Tag<float>(),
                        places.from[operand] + (all_move ? place : place & group.moving[operand])),
              &group, 0)...,
        group.numbers[number]...));
  }

  /// So many elements as there are lanes of totals.
  template <bool all_move, bool is_last>
  static HWY_INLINE void block(Group& group, const Places& places, std::size_t place) {
#pragma GCC unroll 4
    for (std::size_t part = 0; part < parts; ++part) {
      group.part = part;
      if (!group.is_whole)
        group.is_there =
            hn::FirstN(Tag<float>(), group.left > part * lanes ? group.left - part * lanes : 0);
      const auto made = at<all_move>(group, places, place + part * lanes, All(), Numbers());
      if constexpr (is_last) store(made, places.to, place + part * lanes);
    }
  }

  /// All elements once; those that fill no lanes are copied.
  template <int sweep, bool is_last, bool all_move>
  static HWY_INLINE void go(Group& group, const Places& places) {
    group.sweep = sweep;
    group.is_last = is_last;
    group.is_whole = true;
    std::size_t i = 0;
    for (; all_move && i + at_once * fold_lanes <= group.elements; i += at_once * fold_lanes) {
#pragma GCC unroll 4
      for (std::size_t turn = 0; turn < at_once; ++turn) {
        group.turn = turn;
        block<all_move, is_last>(group, places, i + turn * fold_lanes);
      }
    }
    group.turn = 0;
    for (; i + fold_lanes <= group.elements; i += fold_lanes)
      block<all_move, is_last>(group, places, i);
    if (i == group.elements) return;
    const std::size_t left = group.elements - i;
    float rest[count][fold_lanes] = {}, last[results][fold_lanes];
    Places copied;
    copied.kept = places.kept + i;
    for (std::size_t v = 0; v < count; ++v) {
      std::memcpy(rest[v], places.from[v] + (i & group.moving[v]),
                  (group.moving[v] == 0 ? fold_lanes : left) * sizeof(float));
      copied.from[v] = rest[v];
    }
    for (std::size_t r = 0; r < results; ++r) copied.to[r] = last[r];
    group.is_whole = false;
    group.left = left;
    block<true, is_last>(group, copied, 0);
    for (std::size_t r = 0; is_last && r < results; ++r)
      std::memcpy(places.to[r] + i, last[r], left * sizeof(float));
  }

  /// The totals of a sweep: f(totals, which).
  template <int sweep, std::size_t i = 0, class Do>
  static HWY_INLINE void each_of(Group& group, const Do& f) {
    if constexpr (i < outline.count) {
      if constexpr (outline.folds[i].sweep == sweep) {
        if constexpr (outline.folds[i].rule == Rule::sum) f(group.sums[i], i);
        if constexpr (outline.folds[i].rule == Rule::least) f(group.least[i], i);
        if constexpr (outline.folds[i].rule == Rule::greatest) f(group.greatest[i], i);
      }
      each_of<sweep, i + 1>(group, f);
    }
  }

  /// Sweeps that take totals, from one on.
  template <int sweep, int end, bool all_move>
  static HWY_INLINE void take(Group& group, const Places& places) {
    if constexpr (sweep < end) {
      each_of<sweep>(group, [](auto& held, std::size_t) { held.fill(); });
      go<sweep, false, all_move>(group, places);
      each_of<sweep>(group, [&](const auto& held, std::size_t i) {
        group.known[i] = hn::Set(Tag<float>(), static_cast<float>(held.total()));
      });
      take<sweep + 1, end, all_move>(group, places);
    }
  }

  template <bool all_move>
  static HWY_INLINE void finish(Group& group, const Places& places, bool is_one) {
    if (!is_one) return go<outline.sweeps, true, all_move>(group, places);
    group.is_last = true;
    float made[lanes];
    hn::StoreU(at<all_move>(group, places, 0, All(), Numbers())[0], Tag<float>(), made);
    *places.to[0] = made[0];
  }

  /// The first sweep of a group goes before the others of the group before it: what one waits for
  /// is made while the other runs.
  template <bool all_move>
  static void all_of(const GroupCall& call) {
    Places places{}, before{};
    places.kept = call.kept;
    Group group{};
    std::size_t moving[count];
    for (std::size_t i = 0; i < count; ++i) {
      places.from[i] = static_cast<const float*>(call.operands[i]);
      moving[i] = (call.splats >> i & 1) != 0 ? 0 : ~std::size_t{0};
    }
    for (std::size_t i = 0; i < results; ++i) places.to[i] = static_cast<float*>(call.results[i]);
    double numbers[Given::numbers + 1];
    std::copy_n(call.numbers, Given::numbers, numbers);
    group.moving = moving;
    group.numbers = numbers;
    group.elements = call.count;
    group.count = hn::Set(Tag<float>(), static_cast<float>(call.count));
    group.stride = (call.count + fold_lanes - 1) / fold_lanes * fold_lanes;
    const bool is_one = call.is_one;
    std::int64_t steps[count + results];
    std::copy_n(call.steps, count + results, steps);
    Group next = group;
    for (std::size_t done = 0, groups = call.groups;; ++done) {
      if (done < groups) take<0, 1, all_move>(next, places);
      if (done > 0) {
        take<1, outline.sweeps, all_move>(group, before);
        finish<all_move>(group, before, is_one);
      }
      if (done == groups) return;
      each_of<0>(group, [&](const auto&, std::size_t i) { group.known[i] = next.known[i]; });
      before = places;
      for (std::size_t i = 0; i < count; ++i) places.from[i] += steps[i];
      for (std::size_t i = 0; i < results; ++i) places.to[i] += steps[count + i];
    }
  }

  static void run(const GroupCall& call) {
    at_once > 1 && call.splats == 0 ? all_of<at_once != 1>(call) : all_of<false>(call);
  }
};

}  // namespace groups

/// A formula's loop, and how much it keeps.
std::pair<GroupLoop, std::size_t> group_loop(std::size_t formula) {
  using namespace groups;
  static constexpr std::pair<GroupLoop, std::size_t> loops[] = {
#define ARENITE_FORMULA(...) {nullptr, 0},
#define ARENITE_ROWS(NAME, ...) {&Loop<of::NAME>::run, Loop<of::NAME>::outline.kept},
#include "src/expr/formulas.def"
  };
  return loops[formula];
}

}  // namespace arenite::expr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite::expr {
HWY_EXPORT(group_loop);

std::optional<FusedGroups> find_fused_groups(const Expression& expression) {
  apply_isa();
  auto found = find_formula(expression);
  if (!found) return std::nullopt;
  const auto [loop, kept] = HWY_DYNAMIC_DISPATCH(group_loop)(found->formula);
  if (loop == nullptr) return std::nullopt;
  return FusedGroups{.loop = loop,
                     .kept = kept,
                     .is_one = !expression.varying()[expression.results()[0]],
                     .numbers = std::move(found->numbers)};
}

}  // namespace arenite::expr
#endif
