#include <arenite/expr/builder.hpp>
#include <arenite/expr/text.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include "src/base/testing.hpp"
#include "src/expr/random_expression.hpp"

namespace arenite::expr {
namespace {

using arenite::testing::error_of;
using arenite::testing::fewer_where_slow;

constexpr Type b = Type::boolean, u8 = Type::uint8, i32 = Type::int32, i64 = Type::int64,
               f32 = Type::float32, f64 = Type::float64;
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class T>
constexpr Type type_of = std::is_same_v<T, bool>           ? b
                         : std::is_same_v<T, std::uint8_t> ? u8
                         : std::is_same_v<T, std::int32_t> ? i32
                         : std::is_same_v<T, std::int64_t> ? i64
                         : std::is_same_v<T, float>        ? f32
                                                           : f64;

bool is_constant(Value value) {
  return value.builder()[value.node()].function == Function::constant;
}

// ---- One form ----------------------------------------------------------------------------------

TEST(Expression, IsEqualWhateverWayItWasBuilt) {
  const auto build = [](auto formula) {
    Builder builder;
    const Value x = builder.operand(f32), y = builder.operand(f32), z = builder.operand(f32);
    return builder.finish({formula(x, y, z)});
  };
  using V = Value;
  const Expression first = build([](V x, V y, V z) { return x * y + z; });
  const Expression second = build([](V x, V y, V z) { return z + y * x; });
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.hash(), second.hash());
  for (const Expression& other : {build([](V x, V y, V z) { return x * z + y; }),
                                  build([](V x, V y, V z) { return fma(x, y, z); }),
                                  build([](V x, V y, V z) { return x * y - z; })}) {
    EXPECT_NE(first, other);
    EXPECT_NE(first.hash(), other.hash());
  }
  EXPECT_EQ(build([](V x, V y, V z) { return fma(x, y, z); }),
            build([](V x, V y, V z) { return fma(y, x, z); }));
  EXPECT_EQ(build([](V x, V y, V z) { return select(x > y, z, 0); }),
            build([](V x, V y, V z) { return select(y < x, z, 0); }));
}

/// The same again: nodes in another order, what commutes exchanged, and nodes that nothing needs.
Expression shuffled(const Expression& expression, std::mt19937_64& engine) {
  Builder builder;
  std::vector<Value> operands;
  for (const Type type : expression.operands()) operands.push_back(builder.operand(type));
  std::vector<std::optional<Value>> made(expression.nodes().size());
  for (std::size_t left = made.size(); left > 0;) {
    const auto id = static_cast<NodeId>(engine() % made.size());
    const Node& node = expression[id];
    std::vector<Value> sources;
    for (const NodeId source : sources_of(node)) {
      if (made[source]) sources.push_back(*made[source]);
    }
    if (made[id] || sources.size() < sources_of(node).size()) continue;
    if (info(node.function).is(commutes) && engine() % 2 == 0) std::swap(sources[0], sources[1]);
    made[id] =
        node.function == Function::operand ? operands[node.payload] : builder.copy(node, sources);
    builder.constant(i64, static_cast<std::int64_t>(engine()));
    --left;
  }
  std::vector<Value> results;
  for (const NodeId result : expression.results()) results.push_back(*made[result]);
  return builder.finish(results);
}

TEST(Expression, HasOneFormInWhateverOrderItsNodesAreMade) {
  const unsigned cases = fewer_where_slow(1'000u);
  std::mt19937_64 engine(5);
  for (unsigned seed = 0; seed < cases && !HasFailure(); ++seed) {
    const Expression expression = testing::RandomExpression(seed).make();
    const Expression again = shuffled(expression, engine);
    EXPECT_EQ(again, expression) << print(expression) << "\n" << print(again);
    EXPECT_EQ(again.hash(), expression.hash());
  }
}

TEST(Expression, HasOnlyWhatResultsNeed) {
  Builder builder;
  const Value x = builder.operand(f32);
  const Value e = exp(x);
  log(x);
  const Expression expression = builder.finish({e + exp(x), exp(x)});
  EXPECT_EQ(expression.nodes().size(), 3u);
  EXPECT_EQ(expression.results().size(), 2u);
  EXPECT_EQ(expression.results()[1], 1u);
  EXPECT_EQ(expression.operands().size(), 1u);
}

// ---- Numbers -----------------------------------------------------------------------------------

TEST(Builder, NumbersTakeTheTypeOfWhatTheyMeet) {
  Builder builder;
  for (const Type type : {i32, i64, f32, f64}) {
    const Value x = builder.operand(type);
    EXPECT_EQ((1 + x).type(), type);
    EXPECT_EQ((1 + x).node(), (x + builder.constant(type, 1)).node());
    EXPECT_EQ((x * 2.0).type(), type);
    EXPECT_EQ((x < 2).type(), b);
    EXPECT_EQ(select(x < 2, 0, x).type(), type);
  }
  const Value flag = builder.operand(b);
  EXPECT_EQ((flag & 1).type(), b);
  EXPECT_EQ(builder.cast(u8, 200).type(), u8);
}

TEST(Builder, RefusesNumbersThatATypeDoesNotHold) {
  Builder builder;
  const Value i = builder.operand(i32);
  EXPECT_EQ(error_of([&] { 0.5 + i; }), "the number 0.5; expected an integer of int32");
  EXPECT_EQ(error_of([&] { i + 3'000'000'000; }),
            "the number 3000000000; expected an integer of int32");
  EXPECT_EQ(error_of([&] { i + nan; }), "the number nan; expected an integer of int32");
  EXPECT_EQ(error_of([&] { builder.constant(u8, 256); }),
            "the number 256; expected an integer from 0 to 255");
  EXPECT_EQ(error_of([&] { builder.constant(u8, -1); }),
            "the number -1; expected an integer from 0 to 255");
  EXPECT_EQ(error_of([&] { (i < 1) & 2; }), "the number 2; expected 0 or 1");
}

TEST(Builder, FoldsWhatIsExact) {
  Builder builder;
  const auto number = [&](auto value) { return builder.constant(type_of<decltype(value)>, value); };
  EXPECT_EQ((number(2.0F) * 3).node(), number(6.0F).node());
  EXPECT_EQ((number(0.1F) + number(0.2F)).node(), number(0.1F + 0.2F).node());
  EXPECT_EQ(sqrt(number(2.0)).node(), number(std::sqrt(2.0)).node());
  EXPECT_EQ((number(1.0F) / 0).node(), number(inf).node());
  EXPECT_EQ((number(7) / 0).node(), number(0).node());
  EXPECT_EQ(cast(u8, number(300)).node(), number(std::uint8_t{255}).node());
  EXPECT_EQ(cast(f32, number(true)).node(), number(1.0F).node());
  EXPECT_EQ((number(1) < 2).node(), number(true).node());
  // Not what another machine may round otherwise, nor what has to do with NaN or denormals.
  for (const Value value :
       {exp(number(1.0F)), pow(number(2.0F), 2), number(0.0F) / 0, number(inf) - inf,
        number(nan) + 1, cast(i32, number(nan)), number(1e-40F) * 2, cast(f64, number(1e-40F)),
        number(1e-30F) * 1e-10F, cast(f32, number(1e-40)), number(1e-40F) < 1})
    EXPECT_FALSE(is_constant(value));
}

TEST(Builder, LeavesOutWhatChangesNothing) {
  Builder builder;
  const Value x = builder.operand(f32), i = builder.operand(i32);
  const Value flag = x < 1;
  for (const Value same : {1 * x, x * 1, x / 1, x - 0, -(-x), cast(f32, x), select(flag, x, x),
                           select(builder.constant(b, 1), x, 2)})
    EXPECT_EQ(same.node(), x.node());
  for (const Value same : {i + 0, 0 + i, i - 0, i * 1, i / 1, ~~i, -(-i)})
    EXPECT_EQ(same.node(), i.node());
  EXPECT_EQ((!!flag).node(), flag.node());
  // −0 + 0 is 0, and so is −0 − −0; inf · 0 is NaN.
  for (const Value other : {x + 0, x - -0.0, x * 0, x - x, x / x, 1 / x})
    EXPECT_FALSE(is_constant(other) || other.node() == x.node());
}

// ---- What is refused ---------------------------------------------------------------------------

TEST(Builder, RefusesWrongTypes) {
  Builder builder;
  const Value x = builder.operand(f32), i = builder.operand(i32), byte = builder.operand(u8),
              wide = builder.operand(f64);
  EXPECT_EQ(error_of([&] { x + i; }),
            "add: argument 2 of type int32; expected float32, as the others (hint: float32(…) "
            "casts)");
  EXPECT_EQ(error_of([&] { select(x < 1, x, wide); }),
            "select: argument 3 of type float64; expected float32, as the others (hint: "
            "float32(…) casts)");
  EXPECT_EQ(error_of([&] { select(i, x, 0); }),
            "select: argument 1 of type int32; expected bool (hint: bool(…) casts)");
  EXPECT_EQ(error_of([&] { byte + 1; }),
            "add: values of type uint8; expected float32, float64, int32 or int64 (hint: cast "
            "them first: float32(…))");
  EXPECT_EQ(error_of([&] { return byte == 1; }),
            "equal: values of type uint8; expected another type than uint8 (hint: cast them "
            "first: float32(…))");
  EXPECT_EQ(error_of([&] { exp(i); }), "exp: values of type int32; expected float32 or float64");
  EXPECT_EQ(error_of([&] { x % 2; }), "remainder: values of type float32; expected int32 or int64");
  EXPECT_EQ(error_of([&] { x & 1; }),
            "bit_and: values of type float32; expected int32, int64 or bool");
  EXPECT_EQ(error_of([&] { bfloat16(wide); }),
            "bfloat16: a value of type float64; expected float32");
}

TEST(Builder, RefusesNumbersAlone) {
  EXPECT_EQ(error_of([] { fma(1, 2, 3); }), "fma: numbers alone; expected a value among them");
  Builder builder;
  const Value x = builder.operand(f32);
  EXPECT_EQ(error_of([&] { select(x < 1, 1, 0); }),
            "select: numbers alone; expected a value among them, or a number with a type, as "
            "float32(2)");
  const std::vector<Term> one{x};
  EXPECT_EQ(error_of([&] { builder.apply(Function::add, one); }), "add: 1 arguments; expected 2");
}

TEST(Builder, RefusesWhatIsNoExpression) {
  Builder builder, other;
  const Value x = builder.operand(f32), y = builder.operand(f32), z = other.operand(f32);
  EXPECT_EQ(error_of([&] { builder.finish({}); }), "no result; expected at least one");
  EXPECT_EQ(error_of([&] { builder.finish({x < y}); }),
            "a result of type bool; expected a number (hint: select(…, 1, 0), or a cast, as in "
            "uint8(…))");
  EXPECT_EQ(error_of([&] { builder.finish({x}); }),
            "operand $2, which no result needs; expected operands that some result needs");
  EXPECT_EQ(error_of([&] { builder.finish({y}); }),
            "operand $1, which no result needs; expected operands that some result needs");
  EXPECT_EQ(error_of([&] { builder.finish({z}); }),
            "a value of another builder; expected one of "
            "this");
  EXPECT_EQ(error_of([&] { x + z; }), "a value of another builder; expected one of this");
  EXPECT_EQ(error_of([&] { builder.index(8); }), "index(8); expected an axis from 0 to 7");
  // The builder may go on.
  const Expression made = builder.finish({x * y});
  EXPECT_EQ(made.nodes().size(), 3u);
}

// ---- Parts -------------------------------------------------------------------------------------

TEST(Builder, LeavesOutOperandsThatNothingNeeds) {
  Builder builder;
  std::vector<Value> x;
  for (int i = 0; i < 4; ++i) x.push_back(builder.operand(f32));
  const std::vector<Value> results{exp(x[3]) * x[1] + x[3]};
  const Reduced reduced = builder.finish_reduced(results);
  EXPECT_EQ(reduced.operands, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(reduced.expression, parse("exp($2) * $1 + $2", std::vector{f32, f32}));
  const std::vector<Value> numbers{builder.constant(f32, 2)};
  EXPECT_TRUE(builder.finish_reduced(numbers).operands.empty());
}

TEST(Builder, InsertsExpressions) {
  const Expression outer = parse("yield $1 * $2, $2 - 1", std::vector{f32, f32});
  const Expression inner = parse("exp($1) + 1", std::vector{f32});
  Builder builder;
  const std::vector<Value> x{builder.operand(f32)};
  const Value first = builder.insert(inner, x)[0];
  const std::vector<Value> both{first, x[0]}, twice{x[0], x[0]};
  EXPECT_EQ(builder.finish(builder.insert(outer, both)),
            parse("yield (exp($1) + 1) * $1, $1 - 1", std::vector{f32}));
  EXPECT_EQ(error_of([&] { builder.insert(outer, x); }), "1 operands; expected 2");
  const std::vector<Value> wrong{x[0], cast(f64, x[0])};
  EXPECT_EQ(error_of([&] { builder.insert(outer, wrong); }),
            "operand $2 of type float64; expected float32");
  Builder other;
  EXPECT_EQ(error_of([&] { other.insert(outer, twice); }),
            "a value of another builder; expected one of this");
}

TEST(Builder, InsertsWhatEvaluatesAsOneAfterTheOther) {
  const unsigned cases = fewer_where_slow(500u);
  for (unsigned seed = 0; seed < cases && !HasFailure(); ++seed) {
    testing::RandomExpression random(seed, {.axes = 0}), next(seed + cases, {.axes = 0});
    const Expression inner = random.make(), outer = next.make();
    Builder builder;
    std::vector<Value> operands, between;
    std::vector<std::uint64_t> given, passed;
    for (const Type type : inner.operands()) {
      operands.push_back(builder.operand(type));
      given.push_back(random.payload(type));
    }
    const std::vector<Value> made = builder.insert(inner, operands);
    const auto inner_results = evaluate(inner, given);
    for (std::size_t i = 0; i < outer.operands().size(); ++i) {
      const Type from = inner.result_type(i % made.size()), to = outer.operands()[i];
      between.push_back(builder.cast(to, made[i % made.size()]));
      passed.push_back(cast_payload(inner_results[i % made.size()], from, to));
    }
    const Reduced both = builder.finish_reduced(builder.insert(outer, between));
    std::vector<std::uint64_t> needed;
    for (const std::size_t i : both.operands) needed.push_back(given[i]);
    const auto found = evaluate(both.expression, needed), expected = evaluate(outer, passed);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(testing::same_bits(outer.result_type(i), found[i], expected[i])) << seed;
  }
}

}  // namespace
}  // namespace arenite::expr
