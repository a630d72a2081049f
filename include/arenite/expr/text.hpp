// The text form of expressions: what people write, and what one is saved as.
//
//   yield $1 / (1 + exp(-$1))
//
//   m = fma($2, 0.1, $3 * 0.9);   # names are read below where they are defined
//   v = fma($2 * $2, 0.001, $4 * 0.999);
//   yield $1 - 0.01 * m / (sqrt(v) + 1e-8), m, v
//
//   body       := { name '=' expression ';' } 'yield' expression { ',' expression } [';']
//               | expression                                 as if behind yield
//   expression := '$' number                                 an operand, from $1 on
//               | name                                       each is defined once, and read
//               | number                                     2, 0.5, 1e-8, inf, nan
//               | function '(' expression { ',' expression } ')'
//               | type '(' expression ')'                    a cast: float32($1)
//               | 'index' '(' number ')'                     the place along an axis
//               | '(' expression ')'
//               | ('-' | '!' | '~') expression               '~' is '!'
//               | expression operator expression             all from left to right:
//                   * / %   + -   << >>   < <= > >=   == !=   &   ^   |
//
// Operators that stand first bind closest. A number takes the type of what it meets, as in
// builder.hpp; + - * / of numbers alone are done while they are read, in double, but for sums and
// products of integers that 64 bits hold: 1 / 2 is 0.5. White space is free, `#` starts a comment.
//
// All functions are pure and safe to call from any thread.
#pragma once

#include <arenite/expr/expression.hpp>

#include <string>
#include <variant>

namespace arenite::expr {

/// Reads a text for operands of these types, each of which some result has to need. Throws Error
/// whose `where` is "expression:LINE:COLUMN" on whatever is wrong with it. Time and memory are
/// bounded by the length of the text, whatever its bytes; it may nest 200 deep and make 100,000
/// nodes.
Expression parse(std::string_view text, std::span<const Type> operands);

/// What a text reads by a name: an operand of this type, or a number.
struct Parameter {
  std::string name;
  std::variant<Type, double> is;
};

/// The same of parameters, each of which has to be read; operands are numbered among themselves.
/// What float64 parameters and numbers alone make is rounded where it meets a float32; where all
/// parameters are float64, a float32 is widened instead. Functions of numbers alone are done in
/// float64. Throws Error on a name that no text could
/// define.
Expression parse_named(std::string_view text, std::span<const Parameter> parameters);

/// The largest number behind a '$': how many operands a text is for. Throws Error on bytes that are
/// no part of any text, and on numbers above 100,000.
std::size_t operand_count(std::string_view text);

/// In one line, with no more parentheses than needed, and names for what is read more than once.
/// Equal expressions print alike, and `parse(print(e), e.operands()) == e` if it has no more nodes
/// than parse makes.
std::string print(const Expression& expression);

}  // namespace arenite::expr
