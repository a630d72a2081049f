#include <arenite/expr/text.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "src/base/testing.hpp"
#include "src/expr/random_expression.hpp"

namespace arenite::expr {
namespace {

using arenite::testing::error_of;
using arenite::testing::fewer_where_slow;

constexpr Type b = Type::boolean, u8 = Type::uint8, i32 = Type::int32, f32 = Type::float32,
               f64 = Type::float64;

Expression read(std::string_view text, const std::vector<Type>& operands) {
  return parse(text, operands);
}

/// What is printed of what is read; fails where that is another expression.
std::string again(std::string_view text, const std::vector<Type>& operands) {
  const Expression expression = read(text, operands);
  std::string printed = print(expression);
  EXPECT_EQ(parse(printed, operands), expression) << text << "\n" << printed;
  return printed;
}

/// What a text for two float32 is refused with.
std::string error(std::string_view text, const std::vector<Type>& operands = {f32, f32}) {
  return error_of([&] { read(text, operands); });
}

void expect_again(const Expression& expression) {
  const std::string text = print(expression);
  EXPECT_EQ(read(text, {expression.operands().begin(), expression.operands().end()}), expression)
      << text;
}

TEST(ExpressionText, ReadsFormulasAsTheBuilderMakesThem) {
  Builder builder;
  const Value x = builder.operand(f32), y = builder.operand(f32);
  const Expression silu = builder.finish({x / (1 + exp(-x)), fma(x, y, 0.5)});
  EXPECT_EQ(read("yield $1 / (1 + exp(-$1)), fma($1, $2, 0.5)", {f32, f32}), silu);
  EXPECT_EQ(read("# silu\n e = exp(-$1);\nyield $1/(1+e),fma($1,$2,5e-1); # both", {f32, f32}),
            silu);
  EXPECT_EQ(read("$1 * 2", {f32}), read("yield $1 * 2;", {f32}));
}

TEST(ExpressionText, KnowsWhatBindsCloser) {
  const auto same = [](std::string_view plain, std::string_view nested,
                       const std::vector<Type>& operands) {
    EXPECT_EQ(read(plain, operands), read(nested, operands)) << plain;
    again(plain, operands);
  };
  same("$1 + $2 * $3", "$1 + ($2 * $3)", {f32, f32, f32});
  same("$1 - $2 - $3", "($1 - $2) - $3", {f32, f32, f32});
  same("$1 / $2 * $3", "($1 / $2) * $3", {f32, f32, f32});
  same("-$1 * $2", "(-$1) * $2", {f32, f32});
  same("$1 << 2 + $2", "$1 << (2 + $2)", {i32, i32});
  same("$1 | $2 ^ $3 & 7", "$1 | ($2 ^ ($3 & 7))", {i32, i32, i32});
  same("int32($1 < 2 == $2 >= 3)", "int32(($1 < 2) == (3 <= $2))", {i32, i32});
  same("uint8($1 < 1 & $1 != 2 | !($1 > 3))", "uint8((($1 < 1) & ($1 != 2)) | (~(3 < $1)))", {i32});
}

TEST(ExpressionText, PrintsNoMoreThanNeeded) {
  EXPECT_EQ(again("($1) + (($2 * ($1)))", {f32, f32}), "yield $1 + $1 * $2");
  EXPECT_EQ(again("($1 + 2) * 3", {f32}), "yield ($1 + 2) * 3");
  EXPECT_EQ(again("$1 - ($2 - 3)", {f32, f32}), "yield $1 - ($2 - 3)");
  EXPECT_EQ(again("($1 - $2) - 3", {f32, f32}), "yield $1 - $2 - 3");
  EXPECT_EQ(again("$1 + ($2 + exp($3))", {f32, f32, f32}), "yield $2 + exp($3) + $1");
  EXPECT_EQ(again("$1 * ($2 / $3)", {f32, f32, f32}), "yield $2 / $3 * $1");
  EXPECT_EQ(again("-($1 - 2)", {f32}), "yield -($1 - 2)");
  EXPECT_EQ(again("-abs($1) - -2", {f32}), "yield -abs($1) - -2");
  EXPECT_EQ(again("select($1 >= $2, float32(1), 0)", {f32, f32}),
            "yield select($2 <= $1, float32(1), 0)");
}

TEST(ExpressionText, NamesWhatIsReadMoreThanOnce) {
  EXPECT_EQ(again("x = exp($1); y = x / $2; yield x - y, y, $2", {f32, f32}),
            "a = exp($1); b = a / $2; yield a - b, b, $2");
  EXPECT_EQ(again("yield index(1) * index(1), $1, $1", {f32}), "yield index(1) * index(1), $1, $1");
  std::string many = "yield $1";
  for (int i = 1; i <= 53; ++i) {
    const std::string part = "log(" + std::to_string(i) + " - $1)";
    many += ", " + part + " / " + part;
  }
  const std::string printed = again(many, {f32});
  EXPECT_NE(printed.find("z = log(26 - $1); a1 = log(27 - $1); "), std::string::npos) << printed;
  EXPECT_NE(printed.find("z1 = log(52 - $1); a2 = log(53 - $1); "), std::string::npos) << printed;
}

TEST(ExpressionText, ReadsAgainWhatItPrints) {
  again("0.5 * $1 * (1 + erf($1 * 0.7071067811865476))", {f32});
  again("$1 * sigmoid(1.702 * $1)", {f64});
  again("0.5 * $1 * (1 + tanh(0.7978845608028654 * ($1 + 0.044715 * $1 * $1 * $1)))", {f32});
  again(
      "m = fma($2, 0.1, $3 * 0.9); v = fma($2 * $2, 0.001, $4 * 0.999);"
      "yield $1 - 0.01 * m / (sqrt(v) + 1e-8), m, v",
      {f32, f32, f32, f32});
  again("d = $1 - $2; yield select(abs(d) < 1, 0.5 * d * d, abs(d) - 0.5)", {f32, f32});
  again("h = $1 ^ $1 >> 16; yield h * -1640531535 ^ h << 3, int64(h) % 97", {i32});
  again("keep = float32(index(0) * 31 % 17) >= $2; yield select(keep, $1, 0), uint8(keep)",
        {f32, f32});
  again("uint8($1 == ($2 != 0) & $3)", {b, i32, b});
  again("c = float32($1) / 255; yield c, bfloat16(c), uint8(min(max(c * 255, 0), 255))", {u8});
  again("select($1 ^ $2, int64($3), -9223372036854775808)", {b, b, u8});
}

TEST(ExpressionText, KeepsConstantsBitForBit) {
  for (const std::string_view number :
       {"float32(2)", "float32(0)", "float32(-0.0)", "float32(inf)", "float32(-inf)",
        "float32(nan)", "float32(0.1)", "float32(1e-45)", "float32(3.4028235e+38)",
        "float32(1e+20)", "float32(16777216)", "float64(0.1)", "float64(5e-324)",
        "float64(1.7976931348623157e+308)", "float64(1.2345678901234567e+19)", "int32(-2147483648)",
        "int64(9223372036854775807)", "int64(-9223372036854775808)", "uint8(255)"}) {
    EXPECT_EQ(again(number, {}), "yield " + std::string(number));
  }
  EXPECT_EQ(again("int32(bool(1)) + $1", {i32}), "yield $1 + 1");
  EXPECT_EQ(again("uint8($1 == bool(1))", {b}), "yield uint8($1 == 1)");
  EXPECT_EQ(again("$1 * -0.0 + -nan", {f32}), "yield $1 * -0.0 + nan");
  EXPECT_EQ(again("-float32(1e-40) - exp(float32(2))", {}),
            "yield -float32(1e-40) - exp(float32(2))");
  EXPECT_EQ(again("int32(float32(nan))", {}), "yield int32(float32(nan))");
  EXPECT_EQ(again("pow(float32(2), 3)", {}), "yield pow(float32(2), 3)");
}

TEST(ExpressionText, PrintsEveryFloatSoThatADoubleReadsIt) {
  std::mt19937 random(7);
  for (int i = fewer_where_slow(20'000); i > 0; --i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (value != value) continue;
    Builder builder;
    expect_again(builder.finish({builder.constant(f32, value)}));
  }
}

TEST(ExpressionText, ComputesNumbersAlone) {
  EXPECT_EQ(read("$1 + (2 * 3 - 1)", {i32}), read("$1 + 5", {i32}));
  EXPECT_EQ(read("half = 1 / 2; yield $1 * half + $2 * -half", {f32, f32}),
            read("$1 * 0.5 + $2 * -0.5", {f32, f32}));
  EXPECT_EQ(read("x = 0.1; yield float32($2) * x, $2 * x, $1 * x", {f32, f64}),
            read("yield float32($2) * 0.1, $2 * 0.1, $1 * 0.1", {f32, f64}));
  EXPECT_EQ(read("int64(9007199254740992 + 1)", {}), read("int64(9007199254740993)", {}));
  EXPECT_EQ(read("float64(9223372036854775807 + 1)", {}),
            read("float64(9223372036854775808.0)", {}));
  EXPECT_EQ(read("float32(0 / 0)", {}), read("float32(nan)", {}));
  EXPECT_EQ(read("float32(-(0.0))", {}), read("float32(-0.0)", {}));
}

TEST(ExpressionText, CountsOperands) {
  EXPECT_EQ(operand_count("yield $2 + $11 # $40"), 11u);
  EXPECT_EQ(operand_count("float32(2)"), 0u);
  EXPECT_EQ(operand_count(""), 0u);
  EXPECT_EQ(error_of([] { operand_count("$1 +\n @"); }),
            "expression:2:2: unexpected character '@'; expected an operand, a number, a name or an "
            "operator");
  EXPECT_EQ(error_of([] { operand_count("$100001"); }),
            "expression:1:1: '$100001'; expected operands up to $100000");
}

TEST(ExpressionText, RefusesWhatIsNoText) {
  EXPECT_EQ(error(""),
            "expression:1:1: the end of the expression; expected an operand, a number, a name or "
            "'('");
  EXPECT_EQ(error("yield $1 +\n  * $2"),
            "expression:2:3: '*'; expected an operand, a number, a name or '('");
  EXPECT_EQ(error("yield $1 $2"), "expression:1:10: '$2'; expected an operator, ',' or the end");
  EXPECT_EQ(error("$1, $2"), "expression:1:3: ','; expected an operator or the end");
  EXPECT_EQ(error("yield ($1 + $2"),
            "expression:1:15: the end of the expression; expected ')' after what stands in "
            "parentheses");
  EXPECT_EQ(error("yield max($1, $2;"),
            "expression:1:17: ';'; expected ')' after the arguments of 'max'");
  EXPECT_EQ(error("x = $1 yield x"),
            "expression:1:8: 'yield'; expected ';' after the definition of 'x'");
  EXPECT_EQ(
      error("x = $1; x * $2"),
      "expression:1:9: 'x'; expected a definition, as in x = $1 * 2;, or 'yield' (hint: yield "
      "says what the results are)");
  EXPECT_EQ(error("$1 && $2"),
            "expression:1:5: '&'; expected an operand, a number, a name or '(' (hint: booleans are "
            "joined by a single '&')");
  EXPECT_EQ(error("$1 ? $2 : 0"),
            "expression:1:4: unexpected character '?'; expected an operand, a number, a name or an "
            "operator (hint: select(condition, yes, no) chooses)");
  EXPECT_EQ(error("$1 × $2"),
            "expression:1:4: unexpected character '\\xc3\\x97'; expected an operand, a number, a "
            "name or an operator");
  EXPECT_EQ(
      error(std::string_view("$1\0", 3)),
      "expression:1:3: unexpected character '\\x00'; expected an operand, a number, a name or "
      "an operator");
}

TEST(ExpressionText, RefusesWrongNumbers) {
  EXPECT_EQ(error("2x"), "expression:1:1: '2x'; expected a number");
  EXPECT_EQ(error("$1 * 1e999"),
            "expression:1:6: '1e999'; expected a number that a double can hold");
  const std::string integer =
      "; expected an integer of at most 64 bits (hint: others are written as 1e20)";
  EXPECT_EQ(error("$1 * 99999999999999999999"), "expression:1:6: '99999999999999999999'" + integer);
  EXPECT_EQ(error("$1 * 9223372036854775808"), "expression:1:6: '9223372036854775808'" + integer);
  EXPECT_EQ(error("$1 + 0.5", {i32}),
            "expression:1:4: the number 0.5 in '+'; expected an integer of int32");
  EXPECT_EQ(error("exp(2)"),
            "expression:1:1: numbers alone in 'exp'; expected a value among them, or a number with "
            "a type, as float32(2)");
  EXPECT_EQ(error("x = 2; yield $1, x + 1"),
            "expression:1:18: a number without a type; expected a result of some type (hint: "
            "float32(…) gives it one)");
}

TEST(ExpressionText, RefusesUnknownNames) {
  EXPECT_EQ(error("$1 + $3"), "expression:1:6: unknown operand '$3'; expected $1 to $2");
  EXPECT_EQ(error("$0", {f32}), "expression:1:1: unknown operand '$0'; expected $1, the only one");
  EXPECT_EQ(error("$1", {}),
            "expression:1:1: unknown operand '$1'; expected no operand, as none is given");
  EXPECT_EQ(error("$ + 1"),
            "expression:1:1: '$'; expected '$' and the number of an operand, as in $1");
  EXPECT_EQ(error("1 + ecp($1)"),
            "expression:1:5: unknown function 'ecp'; expected a function, or a type to cast to "
            "(hint: did you mean 'exp'?)");
  EXPECT_EQ(error("float($1)"),
            "expression:1:1: unknown function 'float'; expected a function, or a type to cast to "
            "(hint: did you mean 'floor'?)");
  EXPECT_EQ(error("cast($1)"),
            "expression:1:1: unknown function 'cast'; expected a function, or a type to cast to "
            "(hint: a type's name casts: float32(…))");
  EXPECT_EQ(error("gate = $1; yield gaet * $2"),
            "expression:1:18: unknown name 'gaet'; expected a name defined above (hint: did you "
            "mean 'gate'?)");
  EXPECT_EQ(error("x"),
            "expression:1:1: unknown name 'x'; expected a name defined above (hint: operands are "
            "$1, $2, …)");
  EXPECT_EQ(error("exp $1"),
            "expression:1:1: 'exp'; expected an operand, a number or a name (hint: a call has "
            "parentheses: exp(…))");
}

TEST(ExpressionText, RefusesNamesThatAreTakenOrUnused) {
  EXPECT_EQ(error("exp = $1; yield exp"),
            "expression:1:1: a definition of 'exp'; expected a name of its own (hint: 'exp' has a "
            "meaning already)");
  EXPECT_EQ(error("x = $1;\nx = $2; yield x"),
            "expression:2:1: a second definition of 'x'; expected a name of its own (hint: the "
            "first is at expression:1:1)");
  EXPECT_EQ(error("x = $1; y = 2; yield x + $2"),
            "expression:1:9: the name 'y', which nothing reads; expected names that are read "
            "(hint: leave it out)");
}

TEST(ExpressionText, SaysWhereTheBuilderRefuses) {
  EXPECT_EQ(error("1 +\n exp($1)", {i32}),
            "expression:2:2: values of type int32 in 'exp'; expected float32 or float64");
  EXPECT_EQ(error("$1 * $2", {f32, i32}),
            "expression:1:4: argument 2 of type int32 in '*'; expected float32, as the others "
            "(hint: float32(…) casts)");
  EXPECT_EQ(error("fma($1, $2)"), "expression:1:1: 2 arguments in 'fma'; expected 3");
  EXPECT_EQ(error("float32($1, $2)"), "expression:1:1: 2 arguments of 'float32'; expected 1");
  EXPECT_EQ(error("$1 + float32(index($2))"),
            "expression:1:14: 'index' of no axis; expected an axis from 0 to 7, as in index(0)");
  EXPECT_EQ(error("index(8)"), "expression:1:1: index(8); expected an axis from 0 to 7");
  EXPECT_EQ(error("yield $1 + $2,\n $1 < $2"),
            "expression:2:2: a result of type bool; expected a number (hint: select(…, 1, 0), or a "
            "cast, as in uint8(…))");
  EXPECT_EQ(error("yield $1"),
            "expression:1:1: operand $2, which no result needs; expected operands that some result "
            "needs");
}

TEST(ExpressionText, BoundsDepthAndSize) {
  const auto nested = [](std::size_t levels, const std::string& open) {
    std::string text;
    for (std::size_t i = 0; i < levels; ++i) text += open;
    text += "$1";
    for (std::size_t i = 0; i < levels && open.back() == '('; ++i) text += ")";
    return text;
  };
  for (const std::string open : {"(", "-", "exp(", "1 | 2 ^ 3 & 4 == 5 < 6 << 7 + 8 * (", "!(-"}) {
    for (const std::size_t levels : {1'000, 1'000'000}) {
      EXPECT_ERROR("an expression more than 200 levels deep; expected fewer parentheses",
                   read(nested(levels, open), {f32}));
    }
  }
  EXPECT_EQ(read(nested(200, "("), {f32}), read("$1", {f32}));
  std::string sum = "$1";
  for (int i = 0; i < 40'000; ++i) sum += " + exp($1)";
  EXPECT_EQ(print(read(sum, {f32})).substr(0, 34), "a = exp($1); b = $1 + a + a + a + ");
  for (int i = 0; i < 70'000; ++i) sum += " + $1";
  EXPECT_ERROR("more than 100,000 nodes; expected a smaller expression", read(sum, {f32}));
}

TEST(ExpressionText, NamesPartsOfDeepChains) {
  Builder builder;
  Value x = builder.operand(f32);
  for (int i = 0; i < 49'990; ++i) {
    x = i % 3 == 0 ? exp(x) : i % 3 == 1 ? -x : 1.5 - x;
  }
  expect_again(builder.finish({x}));
  for (int i = 0; i < 100'000; ++i) x = sin(x);
  const Expression larger = builder.finish({x});
  EXPECT_ERROR("more than 100,000 nodes", read(print(larger), {f32}));
}

TEST(ExpressionText, ReadsAgainWhateverExpressionItPrints) {
  const unsigned cases = fewer_where_slow(2'000u);
  for (unsigned seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    expect_again(testing::RandomExpression(seed).make());
    if (HasFailure()) break;
  }
}

TEST(ExpressionText, SurvivesAnyBytes) {
  const std::vector<Type> operands{f32, f32, i32, i32};
  const std::string texts[] = {
      "m = fma($2, 0.1, $1 * 0.9); yield $1 - 0.01 * m / (sqrt(m) + 1e-8), m, $3 + $4 # all",
      "yield select($1 < $2 & $3 >= 4, -$1, inf), ~$3 << 2 | $4 ^ 7 % -9223372036854775808",
      "a = int32(float32(index(0)) * 3.5e-2); yield float64($1) / a, uint8($2), $3 + (a - $4)"};
  constexpr std::string_view likely = "$0129.e+-*/%<>=&|^!~(),;#xyield \n\xff";
  std::mt19937 random(11);
  const auto pick = [&](std::size_t below) { return random() % below; };
  int read_well = 0;
  for (int i = fewer_where_slow(6'000); i > 0; --i) {
    std::string text = texts[pick(std::size(texts))];
    for (std::size_t edits = 1 + pick(4); edits > 0; --edits) {
      const std::size_t at = pick(text.size());
      const char byte =
          pick(4) ? likely[pick(likely.size())] : static_cast<char>(static_cast<int>(pick(256)));
      switch (pick(4)) {
        case 0:
          text.erase(at, 1 + pick(5));
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        case 2:
          text.insert(at, text.substr(pick(text.size()), pick(20)));
          break;
        default:
          text[at] = byte;
      }
      if (text.empty()) text = "$1";
    }
    try {
      expect_again(read(text, operands));
      ++read_well;
    } catch (const Error& error) {
      EXPECT_TRUE(error.text().where.starts_with("expression:")) << error.what();
    }
  }
  EXPECT_GT(read_well, 10);
}

}  // namespace
}  // namespace arenite::expr
