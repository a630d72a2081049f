// Functions of integers and booleans, casts and copies: plain loops that the compiler makes vectors
// of, for each set of instructions.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/expr/simd/plain_loops.cpp"
#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "src/expr/simd/philox-inl.hpp"

#include <algorithm>
#include <cstring>

#include "src/expr/functions.hpp"
#include "src/expr/scalar.hpp"
#include "src/expr/simd/isa.hpp"
#include "src/expr/simd/loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE {
namespace {

/// As tiles hold it.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::int32_t, T>;

template <class T>
T loaded(Stored<T> x) noexcept {
  if constexpr (std::is_same_v<T, bool>)
    return x != 0;
  else
    return x;
}
template <class T>
Stored<T> stored(T x) noexcept {
  if constexpr (std::is_same_v<T, bool>)
    return -static_cast<std::int32_t>(x);
  else
    return x;
}

template <Function function, class T>
void loop(void* target, const void* const* sources, std::size_t count) {
  using Made = decltype(of<function>(T{}, T{}));
  const auto* x = static_cast<const Stored<T>*>(sources[0]);
  const auto* y = static_cast<const Stored<T>*>(sources[arity(function) > 1 ? 1 : 0]);
  auto* to = static_cast<Stored<Made>*>(target);
  for (std::size_t i = 0; i < count; ++i)
    to[i] = stored<Made>(of<function>(loaded<T>(x[i]), loaded<T>(y[i])));
}

template <class From, class To>
void cast_loop(void* target, const void* const* sources, std::size_t count) {
  const auto* x = static_cast<const Stored<From>*>(sources[0]);
  auto* to = static_cast<Stored<To>*>(target);
  for (std::size_t i = 0; i < count; ++i) to[i] = stored<To>(cast_value<To>(loaded<From>(x[i])));
}

template <class T>
void copy_loop(void* target, const void* const* sources, std::size_t count) {
  std::memmove(target, sources[0], count * sizeof(Stored<T>));
}

template <class T>
void select_loop(void* target, const void* const* sources, std::size_t count) {
  const auto* mask = static_cast<const std::int32_t*>(sources[0]);
  const auto *yes = static_cast<const Stored<T>*>(sources[1]),
             *no = static_cast<const Stored<T>*>(sources[2]);
  auto* to = static_cast<Stored<T>*>(target);
  for (std::size_t i = 0; i < count; ++i) to[i] = mask[i] != 0 ? yes[i] : no[i];
}

/// The comparison is part of it.
template <Function comparison, class T>
void compare_select_loop(void* target, const void* const* sources, std::size_t count) {
  const auto *x = static_cast<const Stored<T>*>(sources[0]),
             *y = static_cast<const Stored<T>*>(sources[1]),
             *yes = static_cast<const Stored<T>*>(sources[2]),
             *no = static_cast<const Stored<T>*>(sources[3]);
  auto* to = static_cast<Stored<T>*>(target);
  for (std::size_t i = 0; i < count; ++i)
    to[i] = compare<comparison>(loaded<T>(x[i]), loaded<T>(y[i])) ? yes[i] : no[i];
}

/// Of elements one behind the other, as indices number them, all of a block are drawn at once.
template <Function function, class Made>
void draw_loop(void* target, const void* const* sources, std::size_t count) {
  const auto *element = static_cast<const std::int64_t*>(sources[0]),
             *key = static_cast<const std::int64_t*>(sources[1]);
  auto* to = static_cast<Made*>(target);
  constexpr std::size_t worth_a_block = 8;
  std::uint32_t words[philox_block];
  for (std::size_t done = 0; done < count;) {
    const auto first = static_cast<std::uint64_t>(element[done]);
    const std::size_t within = first % philox_block,
                      some = std::min(philox_block - within, count - done);
    std::uint64_t others = 0;
    for (std::size_t i = 0; i < some; ++i) {
      others |= static_cast<std::uint64_t>(element[done + i]) ^ (first + i);
      others |= static_cast<std::uint64_t>(key[done + i] ^ key[done]);
    }
    if (others == 0 && some >= worth_a_block) {
      philox(first - within, static_cast<std::uint64_t>(key[done]), words);
      for (std::size_t i = 0; i < some; ++i) {
        if constexpr (function == Function::uniform)
          to[done + i] = uniform_of(words[within + i]);
        else
          to[done + i] = words[within + i];
      }
    } else {
      for (std::size_t i = 0; i < some; ++i)
        to[done + i] = of<function>(element[done + i], key[done + i]);
    }
    done += some;
  }
}

#define ARENITE_CASE(FUNCTION) \
  case Function::FUNCTION:     \
    return &loop<Function::FUNCTION, T>;

template <class T>
Loop find_select(Function comparison) {
  switch (comparison) {
    case Function::equal:
      return &compare_select_loop<Function::equal, T>;
    case Function::not_equal:
      return &compare_select_loop<Function::not_equal, T>;
    case Function::less:
      return &compare_select_loop<Function::less, T>;
    case Function::less_equal:
      return &compare_select_loop<Function::less_equal, T>;
    default:
      return &select_loop<T>;
  }
}

template <class T>
Loop find_of_integers(Function function) {
  switch (function) {
    ARENITE_CASE(negate)
    ARENITE_CASE(abs)
    ARENITE_CASE(add)
    ARENITE_CASE(subtract)
    ARENITE_CASE(multiply)
    ARENITE_CASE(divide)
    ARENITE_CASE(remainder)
    ARENITE_CASE(min)
    ARENITE_CASE(max)
    ARENITE_CASE(less)
    ARENITE_CASE(less_equal)
    ARENITE_CASE(shift_left)
    ARENITE_CASE(shift_right)
    case Function::philox:
      if constexpr (std::is_same_v<T, std::int64_t>) return &draw_loop<Function::philox, T>;
      return &loop<Function::philox, T>;
    case Function::uniform:
      if constexpr (std::is_same_v<T, std::int64_t>) return &draw_loop<Function::uniform, float>;
      return &loop<Function::uniform, T>;
    default:
      return nullptr;
  }
}

template <class T>
Loop find(const Instruction& instruction) {
  switch (instruction.function) {
    ARENITE_CASE(equal)
    ARENITE_CASE(not_equal)
    ARENITE_CASE(invert)
    ARENITE_CASE(bit_and)
    ARENITE_CASE(bit_or)
    ARENITE_CASE(bit_xor)
    case Function::select:
      return find_select<T>(instruction.comparison);
    default:
      if constexpr (std::is_same_v<T, bool>)
        return nullptr;
      else
        return find_of_integers<T>(instruction.function);
  }
}
#undef ARENITE_CASE

}  // namespace

Loop find_plain(const Instruction& instruction) {
  return with_value(instruction.from, [&]<class From>(From) -> Loop {
    if (instruction.function == Function::operand) return &copy_loop<From>;
    if (instruction.function == Function::cast) {
      return with_value(instruction.to, []<class To>(To) -> Loop { return &cast_loop<From, To>; });
    }
    if constexpr (std::is_floating_point_v<From> || std::is_same_v<From, std::uint8_t>) {
      return nullptr;
    } else {
      return find<From>(instruction);
    }
  });
}

}  // namespace arenite::expr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstdlib>

namespace arenite::expr {
HWY_EXPORT(find_plain);

Loop find_plain_loop(const Instruction& instruction) {
  return HWY_DYNAMIC_DISPATCH(find_plain)(instruction);
}

Loop find_loop(const Instruction& instruction) {
  apply_isa();
  const bool of_floats_alone = is_float(instruction.from) && instruction.function != Function::cast;
  return of_floats_alone ? find_float_loop(instruction) : find_plain_loop(instruction);
}

}  // namespace arenite::expr
#endif
