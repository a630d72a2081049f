// What the parser of expressions knows of words and numbers.
#pragma once

#include <arenite/expr/builder.hpp>

#include <optional>
#include <string_view>

#include "src/expr/functions.hpp"
#include "src/expr/lexer.hpp"

namespace arenite::expr {

/// The one that takes as many sources, or, where none does, another of that name.
const FunctionInfo* function_named(std::string_view name, std::size_t sources = 1) noexcept;

/// A symbol's function; none where no such one takes as many sources.
const FunctionInfo* function_of(const Token& token, int sources) noexcept;

/// What is made of other functions.
struct Composed {
  std::string_view name;
  Value (*make)(Value);
};
std::span<const Composed> all_composed() noexcept;

/// As the lexer reads a name: [A-Za-z_][A-Za-z0-9_]*
bool is_name(std::string_view text) noexcept;
/// Names that no text defines.
bool is_reserved(std::string_view name) noexcept;

/// All NaNs are one.
Term real_number(double real) noexcept;

/// What is done of numbers alone, as it is read.
std::optional<Term> of_numbers(Function function, std::span<const Term> sources) noexcept;

}  // namespace arenite::expr
