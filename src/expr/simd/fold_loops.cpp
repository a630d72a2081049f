#include "src/expr/simd/folds.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/expr/simd/fold_loops.cpp"
#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>

#include "src/expr/scalar.hpp"
#include "src/expr/simd/folds-inl.hpp"
#include "src/expr/simd/isa.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE {
namespace {

template <class T, class Rule>
struct Loops {
  using Kept = typename Rule::Kept;

  static void begin(void* totals, std::size_t places) noexcept {
    std::fill_n(static_cast<Kept*>(totals), places, Rule::none);
  }

  static void add(void* totals, std::size_t places, const void* elements, std::size_t count,
                  std::int64_t first, std::int64_t row) noexcept {
    auto* total = static_cast<Kept*>(totals);
    const auto* value = static_cast<const T*>(elements);
    // Whatever tiles there are, an element's number says where it goes.
    if (const std::size_t at = static_cast<std::size_t>(first * row) % places; at > 0) {
      const std::size_t some = std::min(count, places - at);
      take(total + at, value, some);
      value += some, count -= some;
    }
    const std::size_t whole = count / places * places;
    std::size_t from = 0;
    if constexpr (std::is_floating_point_v<T>) {
      for (; from + fold_lanes <= places; from += fold_lanes) {
        Held<T, Rule> held;
        held.load(total + from);
        for (std::size_t i = from; i < whole; i += places) held.add(value + i);
        held.store(total + from);
      }
    }
    for (std::size_t i = from; i < whole; i += places) take(total + from, value + i, places - from);
    take(total, value + whole, count - whole);
  }

  static void take(Kept* total, const T* value, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i)
      total[i] = Rule::join(total[i], static_cast<Kept>(value[i]));
  }

  static void join(void* totals, std::size_t places, std::size_t count) noexcept {
    auto* total = static_cast<Kept*>(totals);
    if (places == fold_lanes && count == 1) {
      for (std::size_t left = fold_lanes / 2; left > 0; left /= 2) {
        for (std::size_t i = 0; i < left; ++i) total[i] = Rule::join(total[i], total[left + i]);
      }
      return;
    }
    for (std::size_t from = count; from < places; from += count) {
      for (std::size_t i = 0; i < count; ++i) total[i] = Rule::join(total[i], total[from + i]);
    }
  }

  static void end(const void* totals, std::size_t count, void* values) noexcept {
    const auto* total = static_cast<const Kept*>(totals);
    auto* value = static_cast<T*>(values);
    for (std::size_t i = 0; i < count; ++i) value[i] = static_cast<T>(total[i]);
  }

  static constexpr FoldLoops all{begin, add, join, end};
};

/// Where the least or greatest element is: behind the values, by place, their numbers in the group.
template <class T, Function function>
struct Places {
  static constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::max();

  static T* values(void* totals) noexcept { return static_cast<T*>(totals); }
  static std::int64_t* numbers(void* totals, std::size_t places) noexcept {
    return reinterpret_cast<std::int64_t*>(static_cast<std::byte*>(totals) + places * 8);
  }

  /// A NaN comes before all, and of equals the first.
  static bool comes_before(T a, std::int64_t at, T b, std::int64_t other) noexcept {
    if (other == nowhere || at == nowhere) return other == nowhere && at != nowhere;
    const bool a_nan = a != a, b_nan = b != b;
    if (a_nan != b_nan) return a_nan;
    if (a_nan || a == b) return at < other;
    return function == Function::first_least ? a < b : a > b;
  }

  static void begin(void* totals, std::size_t places) noexcept {
    std::fill_n(values(totals), places, T{});
    std::fill_n(numbers(totals, places), places, nowhere);
  }

  static void add(void* totals, std::size_t places, const void* elements, std::size_t count,
                  std::int64_t first, std::int64_t row) noexcept {
    const auto* value = static_cast<const T*>(elements);
    T* best = values(totals);
    std::int64_t* number = numbers(totals, places);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = i % places;
      const std::int64_t own = first + static_cast<std::int64_t>(i) / row;
      if (!comes_before(value[i], own, best[place], number[place])) continue;
      best[place] = value[i];
      number[place] = own;
    }
  }

  /// Numbers stay where they are.
  static void join(void* totals, std::size_t places, std::size_t count) noexcept {
    T* best = values(totals);
    std::int64_t* number = numbers(totals, places);
    for (std::size_t i = count; i < places; ++i) {
      const std::size_t into = i % count;
      if (!comes_before(best[i], number[i], best[into], number[into])) continue;
      best[into] = best[i];
      number[into] = number[i];
    }
    std::copy_n(number, count, numbers(totals, count));
  }

  static void end(const void* totals, std::size_t count, void* values) noexcept {
    const std::int64_t* number = numbers(const_cast<void*>(totals), count);
    std::copy_n(number, count, static_cast<std::int64_t*>(values));
  }

  static constexpr FoldLoops all{begin, add, join, end};
};

template <class T>
const FoldLoops& loops_of(Function function) {
  switch (function) {
    case Function::sum:
      return Loops<T, Sum<T, Function::sum>>::all;
    case Function::product:
      return Loops<T, Sum<T, Function::product>>::all;
    case Function::least:
      return Loops<T, Extreme<T, Function::least>>::all;
    case Function::greatest:
      return Loops<T, Extreme<T, Function::greatest>>::all;
    case Function::first_least:
      return Places<T, Function::first_least>::all;
    default:
      return Places<T, Function::first_greatest>::all;
  }
}

}  // namespace

const FoldLoops* loops_for(Function function, Type type) {
  if (type == Type::boolean) {
    return function == Function::least ? &Loops<std::uint32_t, Truth<Function::least>>::all
                                       : &Loops<std::uint32_t, Truth<Function::greatest>>::all;
  }
  return with_value(type, [&]<class T>(T) { return &loops_of<T>(function); });
}

}  // namespace arenite::expr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite::expr {
HWY_EXPORT(loops_for);

std::size_t fold_bytes(Function function, std::size_t places) noexcept {
  const bool is_place = function == Function::first_least || function == Function::first_greatest;
  return places * (is_place ? 16 : 8);
}

const FoldLoops& fold_loops(Function function, Type type) {
  apply_isa();
  return *HWY_DYNAMIC_DISPATCH(loops_for)(function, type);
}

}  // namespace arenite::expr
#endif
