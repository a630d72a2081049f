#include <arenite/expr/builder.hpp>
#include <arenite/expr/text.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include "src/expr/random_expression.hpp"

namespace arenite::expr {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
template <class T>
constexpr T lowest = std::numeric_limits<T>::min();
template <class T>
constexpr T highest = std::numeric_limits<T>::max();

template <class T>
constexpr Type type_of = std::is_same_v<T, bool>           ? Type::boolean
                         : std::is_same_v<T, std::uint8_t> ? Type::uint8
                         : std::is_same_v<T, std::int32_t> ? Type::int32
                         : std::is_same_v<T, std::int64_t> ? Type::int64
                         : std::is_same_v<T, float>        ? Type::float32
                                                           : Type::float64;

/// What a function makes of values, as the evaluator does it.
template <class To, class... From>
To made_by(Function function, From... x) {
  Builder builder;
  const std::vector<Term> sources{builder.operand(type_of<From>)...};
  const Value value = function == Function::cast ? builder.cast(type_of<To>, sources[0])
                                                 : builder.apply(function, sources);
  const Type stored = value.type() == Type::boolean ? Type::uint8 : value.type();
  const Expression expression = builder.finish({cast(stored, value)});
  return value_of<To>(evaluate(expression, std::vector{payload_of(x)...})[0]);
}

TEST(Evaluate, SaturatesCasts) {
  const auto to_int = [](auto x) { return made_by<std::int32_t>(Function::cast, x); };
  const auto to_long = [](auto x) { return made_by<std::int64_t>(Function::cast, x); };
  const auto to_byte = [](auto x) { return made_by<std::uint8_t>(Function::cast, x); };
  EXPECT_EQ(to_int(-2.9F), -2);
  EXPECT_EQ(to_int(nan), 0);
  EXPECT_EQ(to_int(3e9F), highest<std::int32_t>);
  EXPECT_EQ(to_int(-inf), lowest<std::int32_t>);
  EXPECT_EQ(to_int(2147483647.9), highest<std::int32_t>);
  EXPECT_EQ(to_int(-2147483648.9), lowest<std::int32_t>);
  EXPECT_EQ(to_int(std::int64_t{1} << 40), highest<std::int32_t>);
  EXPECT_EQ(to_long(inf), highest<std::int64_t>);
  EXPECT_EQ(to_long(9223372036854775808.0), highest<std::int64_t>);
  EXPECT_EQ(to_long(-1e300), lowest<std::int64_t>);
  EXPECT_EQ(to_long(9007199254740991.0), 9007199254740991);
  EXPECT_EQ(to_byte(255.9F), 255);
  EXPECT_EQ(to_byte(256.0F), 255);
  EXPECT_EQ(to_byte(-0.9F), 0);
  EXPECT_EQ(to_byte(-7.0), 0);
  EXPECT_EQ(to_byte(300), 255);
  EXPECT_EQ(to_byte(std::int64_t{-5}), 0);
  EXPECT_EQ(to_byte(true), 1);
  EXPECT_TRUE(made_by<bool>(Function::cast, 0.25F));
  EXPECT_TRUE(made_by<bool>(Function::cast, nan));
  EXPECT_FALSE(made_by<bool>(Function::cast, -0.0F));
  EXPECT_EQ(made_by<float>(Function::cast, 1e300), inf);
  EXPECT_EQ(made_by<float>(Function::cast, std::uint8_t{200}), 200.0F);
  EXPECT_EQ(made_by<float>(Function::cast, 16777217), 16777216.0F);
}

template <class T>
void expect_integers_without_traps() {
  constexpr T low = lowest<T>, high = highest<T>;
  const auto made = [](Function function, auto... x) { return made_by<T>(function, T{x}...); };
  EXPECT_EQ(made(Function::add, high, T{1}), low);
  EXPECT_EQ(made(Function::subtract, low, T{1}), high);
  EXPECT_EQ(made(Function::multiply, high, T{2}), -2);
  EXPECT_EQ(made(Function::negate, low), low);
  EXPECT_EQ(made(Function::abs, low), low);
  EXPECT_EQ(made(Function::divide, T{7}, T{0}), 0);
  EXPECT_EQ(made(Function::divide, low, T{-1}), low);
  EXPECT_EQ(made(Function::divide, T{-7}, T{2}), -3);
  EXPECT_EQ(made(Function::remainder, T{7}, T{0}), 0);
  EXPECT_EQ(made(Function::remainder, low, T{-1}), 0);
  EXPECT_EQ(made(Function::remainder, T{-7}, T{2}), -1);
  constexpr T bits = sizeof(T) * 8;
  EXPECT_EQ(made(Function::shift_left, T{3}, T{bits + 1}), 6);
  EXPECT_EQ(made(Function::shift_left, T{1}, T{-1}), low);
  EXPECT_EQ(made(Function::shift_right, T{-8}, T{bits + 1}), -4);
  EXPECT_EQ(made(Function::shift_right, low, T{-1}), -1);
  EXPECT_EQ(made(Function::invert, T{0}), -1);
}

TEST(Evaluate, IntegersWrapAndNeverTrap) {
  expect_integers_without_traps<std::int32_t>();
  expect_integers_without_traps<std::int64_t>();
}

/// The first words are the authors' known answers; the others are of their algorithm, written
/// again.
TEST(Evaluate, DrawsThePhiloxThatOthersDraw) {
  const auto drawn = [](std::int64_t element, std::int64_t key) {
    return made_by<std::int64_t>(Function::philox, element, key);
  };
  EXPECT_EQ(drawn(0, 0), 0x6627e8d5);
  EXPECT_EQ(drawn(16, 0), 0xe169c58d);
  EXPECT_EQ(drawn(32, 0), 0xbc57ac4c);
  EXPECT_EQ(drawn(48, 0), 0x9b00dbd8);
  EXPECT_EQ(drawn(64 * 5 + 7, 0x123456789abcdef0), 0x36db5bae);
  EXPECT_EQ(drawn(64 * 5 + 16 + 7, 0x123456789abcdef0), 0xf66b1f40);
  EXPECT_EQ(drawn(-1, -1), 0x3915061c);
  EXPECT_EQ(made_by<std::int32_t>(Function::philox, 0, 0), 0x6627e8d5);
  EXPECT_EQ(made_by<std::int32_t>(Function::philox, 16, 0), static_cast<std::int32_t>(0xe169c58d));
}

TEST(Evaluate, KnowsNanAndSignsOfZero) {
  const auto min = [](float x, float y) { return made_by<float>(Function::min, x, y); };
  const auto max = [](float x, float y) { return made_by<float>(Function::max, x, y); };
  EXPECT_TRUE(std::isnan(min(nan, 1)) && std::isnan(min(1, nan)));
  EXPECT_TRUE(std::isnan(max(nan, 1)) && std::isnan(max(-inf, nan)));
  EXPECT_TRUE(std::signbit(min(0.0F, -0.0F)) && std::signbit(min(-0.0F, 0.0F)));
  EXPECT_FALSE(std::signbit(max(0.0F, -0.0F)) || std::signbit(max(-0.0F, 0.0F)));
  EXPECT_TRUE(std::signbit(made_by<float>(Function::round, -0.4F)));
  EXPECT_EQ(made_by<float>(Function::round, 2.5F), 2);
  EXPECT_EQ(made_by<float>(Function::bfloat16, 1 + 0x1p-8F), 1);
  EXPECT_EQ(made_by<float>(Function::bfloat16, 1 + 0x3p-8F), 1 + 0x4p-8F);
  EXPECT_TRUE(std::isnan(made_by<float>(Function::bfloat16, nan)));
  EXPECT_FALSE(made_by<bool>(Function::equal, nan, nan));
  EXPECT_TRUE(made_by<bool>(Function::not_equal, nan, nan));
  EXPECT_FALSE(made_by<bool>(Function::less_equal, nan, nan));
  EXPECT_EQ(made_by<float>(Function::fma, 1 + 0x1p-12F, 1 + 0x1p-12F, -1.0F), 0x1p-11F + 0x1p-24F);
}

// For formulas of plain numbers.
template <std::floating_point T>
T min(T x, T y) {
  return x != x || y != y ? x + y : x < y || (x == y && std::signbit(x)) ? x : y;
}
template <std::floating_point T>
T max(T x, T y) {
  return x != x || y != y ? x + y : x > y || (x == y && !std::signbit(x)) ? x : y;
}
template <std::floating_point T>
T select(bool condition, T yes, T no) {
  return condition ? yes : no;
}
using std::abs, std::floor, std::fma, std::sqrt;

/// A formula of two values: as an expression, and as C++ has it.
template <class T, class F>
void expect_native(F formula) {
  Builder builder;
  const Value x = builder.operand(type_of<T>), y = builder.operand(type_of<T>);
  const Expression expression = builder.finish({formula(x, y)});
  testing::RandomExpression random(3);
  for (int i = 0; i < 500; ++i) {
    T at[2];
    for (T& value : at) {
      value = value_of<T>(random.payload(type_of<T>));
      if constexpr (std::is_integral_v<T>) value %= 1000;  // C++ does not wrap
    }
    const auto found = evaluate(expression, std::vector{payload_of(at[0]), payload_of(at[1])})[0];
    const T expected = formula(at[0], at[1]);
    EXPECT_TRUE(testing::same_bits(type_of<T>, found, payload_of(expected)))
        << print(expression) << " of " << at[0] << ", " << at[1] << ": " << value_of<T>(found)
        << ", not " << expected;
  }
}

template <class T>
void expect_native_floats() {
  // No product is added to: a compiler may fuse that.
  expect_native<T>([](auto x, auto y) { return (x + y) * x / 3 - y; });
  expect_native<T>([](auto x, auto y) { return select(x <= y, x - y, -(y / x)); });
  expect_native<T>([](auto x, auto y) { return min(abs(x), max(y, x)) / sqrt(abs(y)); });
  expect_native<T>([](auto x, auto y) { return floor(fma(x, y, x)) - floor(x / y); });
}

TEST(Evaluate, DoesWhatPlainFormulasDo) {
  expect_native_floats<float>();
  expect_native_floats<double>();
  expect_native<std::int32_t>([](auto x, auto y) { return (x * 31 + y) % 97 ^ (x >> 3); });
  expect_native<std::int64_t>([](auto x, auto y) { return (x & ~y) * 5 - (x | y) / 7; });
}

TEST(Evaluate, KnowsItsPlace) {
  const Expression expression = parse("index(0) * 10 + index(2)", {});
  const std::vector<std::int64_t> place{3, 5, 7};
  EXPECT_EQ(value_of<std::int64_t>(evaluate(expression, {}, place)[0]), 37);
}

}  // namespace
}  // namespace arenite::expr
