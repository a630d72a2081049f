#include "src/expr/parse_words.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/characters.hpp"

namespace arenite::expr {

const FunctionInfo* function_named(std::string_view name, std::size_t sources) noexcept {
  const FunctionInfo* found = nullptr;
  for (const FunctionInfo& f : all_functions()) {
    if (f.name != name || f.sources == 0 || f.function == Function::cast) continue;
    if (found == nullptr || f.sources == sources) found = &f;
  }
  return found;
}

std::span<const Composed> all_composed() noexcept {
  static constexpr Composed composed[] = {
      {"all", all}, {"any", any}, {"logsumexp", logsumexp}, {"mean", mean}, {"variance", variance}};
  return composed;
}

const FunctionInfo* function_of(const Token& token, int sources) noexcept {
  if (token.kind != TokenKind::symbol) return nullptr;
  const std::string_view symbol = token.is(">")    ? "<"
                                  : token.is(">=") ? "<="
                                  : token.is("~")  ? "!"
                                                   : token.text;
  const auto all = all_functions();
  const auto found = std::ranges::find_if(
      all, [&](const FunctionInfo& f) { return f.symbol == symbol && f.sources == sources; });
  return found == all.end() ? nullptr : &*found;
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

bool is_reserved(std::string_view name) noexcept {
  return name == "yield" || name == "inf" || name == "nan" || type_named(name) ||
         std::ranges::any_of(all_functions(), [&](const auto& f) { return f.name == name; }) ||
         std::ranges::any_of(all_composed(), [&](const auto& f) { return f.name == name; });
}

Term real_number(double real) noexcept {
  return std::isnan(real) ? std::numeric_limits<double>::quiet_NaN() : real;
}

std::optional<Term> of_numbers(Function function, std::span<const Term> x) noexcept {
  const Term a = x[0], b = x[x.size() - 1];
  const bool integers = a.is_integer() && b.is_integer();
  std::int64_t exact = 0;
  switch (function) {
    case Function::negate:
      if (integers && !__builtin_sub_overflow(std::int64_t{0}, a.integer(), &exact)) return exact;
      return real_number(-a.real());
    case Function::add:
      if (integers && !__builtin_add_overflow(a.integer(), b.integer(), &exact)) return exact;
      return real_number(a.real() + b.real());
    case Function::subtract:
      if (integers && !__builtin_sub_overflow(a.integer(), b.integer(), &exact)) return exact;
      return real_number(a.real() - b.real());
    case Function::multiply:
      if (integers && !__builtin_mul_overflow(a.integer(), b.integer(), &exact)) return exact;
      return real_number(a.real() * b.real());
    case Function::divide:
      return real_number(a.real() / b.real());
    default:
      return std::nullopt;
  }
}

}  // namespace arenite::expr
