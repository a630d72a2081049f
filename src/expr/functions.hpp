// What is known of each function, in one table: all that reads, prints, checks or runs expressions
// goes by it.
#pragma once

#include <arenite/expr/expression.hpp>

#include <optional>

namespace arenite::expr {

/// Sets of types.
enum Types : std::uint8_t {
  floats = 1,
  integers = 2,
  booleans = 4,
  bytes = 8,
  numbers = floats | integers,
  bits = integers | booleans,
  all_types = numbers | booleans,
};

enum Traits : std::uint8_t {
  no_traits = 0,
  predicate = 1,  ///< it makes a boolean; others make what their sources are
  commutes = 2,   ///< its first two sources may be exchanged
  exact = 4,      ///< the same bits on all machines
  places = 8,     ///< it makes an int64
  draws = 16,     ///< it makes a float32
};

struct FunctionInfo {
  Function function;
  std::string_view name;    ///< in text: exp(x)
  std::string_view symbol;  ///< in text: x + y; none: it is written as a call
  int precedence;           ///< of the symbol; larger ones bind closer
  std::uint8_t sources;     ///< how many
  std::uint8_t takes;       ///< Types of the sources, which are of one type, but a select's first
  std::uint8_t traits = 0;  ///< Traits
  std::uint8_t work = 1;    ///< about so many operations, as processors have them for sums

  constexpr bool is(Traits trait) const noexcept { return (traits & trait) != 0; }
  /// Cheaper to make again than to keep.
  constexpr bool is_cheap() const noexcept { return work <= 1; }
};

const FunctionInfo& info(Function function) noexcept;
std::span<const FunctionInfo> all_functions() noexcept;

/// A type by its name: bool, uint8, int32, …
std::optional<Type> type_named(std::string_view name) noexcept;

bool takes(const FunctionInfo& function, Type type) noexcept;

}  // namespace arenite::expr
