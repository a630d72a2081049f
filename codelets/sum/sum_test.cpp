#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

/// The tree that the operator promises, one element.
template <class T>
T tree(const std::vector<T>& terms, std::size_t from, std::size_t to) {
  if (to - from == 1) return terms[from];
  const std::size_t middle = from + (to - from) / 2;
  return tree(terms, from, middle) + tree(terms, middle, to);
}

template <class T>
void check(OpHarness& h, DType type, const Shape& shape, std::size_t count, const std::string& tag,
           bool in_place) {
  SCOPED_TRACE(to_string(shape) + " x" + std::to_string(count) + " " +
               std::string(to_string(type)));
  std::uniform_int_distribution<int> value(-1000, 1000), halo(0, shape.rank() == 4 ? 2 : 0);
  std::vector<ValueId> operands;
  std::vector<std::vector<T>> terms;
  const int first_halo = halo(h.engine());
  for (std::size_t t = 0; t < count; ++t) {
    operands.push_back(h.declare("t" + tag + "." + std::to_string(t), type, shape,
                                 t == 0 ? first_halo : halo(h.engine())));
    std::vector<T> values(static_cast<std::size_t>(shape.elements()));
    for (T& v : values) v = static_cast<T>(value(h.engine())) / static_cast<T>(3);
    h.write(operands.back(), values);
    terms.push_back(std::move(values));
  }
  const auto y = h.op("sum", operands).front();
  h.set_halo(y, in_place ? first_halo : halo(h.engine()));
  if (in_place) h.in_place(0, 0);
  ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
  const auto out = h.read<T>(y);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::vector<T> at;
    for (const auto& term : terms) at.push_back(term[i]);
    ASSERT_EQ(out[i], tree(at, 0, count)) << i;  // the same bits, not only a near value
  }
}

TEST(Sum, AddsInABalancedTreeForEveryType) {
  OpHarness h(29);
  std::uniform_int_distribution<int> size(1, 9);
  int number = 0;
  for (std::size_t count : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 13u, 64u}) {
    for (bool in_place : {false, true}) {
      std::vector<Shape> shapes{{1}, {257}, {3, 300}, {0, 4}};
      shapes.push_back({size(h.engine()), size(h.engine()), size(h.engine()), size(h.engine())});
      for (const Shape& shape : shapes) {
        const std::string tag = std::to_string(number++);
        check<float>(h, DType::float32, shape, count, "f" + tag, in_place);
        check<double>(h, DType::float64, shape, count, "d" + tag, in_place);
        check<std::int64_t>(h, DType::int64, shape, count, "l" + tag, in_place);
        check<std::int32_t>(h, DType::int32, shape, count, "i" + tag, in_place);
      }
    }
  }
}

TEST(Sum, WritesItsHalo) {
  OpHarness h;
  const auto a = h.random("a", {2, 3, 4, 5}, -1, 1, 1), b = h.random("b", {2, 3, 4, 5});
  const auto y = h.op("sum", {a, b}).front();
  h.set_halo(y, 2);
  h.run("tiles");
  EXPECT_TRUE(h.halo_is_zero(y));
}

TEST(Sum, AValueMayBeItsOwnPartner) {
  OpHarness h;
  for (std::size_t count : {2u, 3u, 5u}) {
    const std::string tag = std::to_string(count);
    const auto x = h.random("x" + tag, {600});
    const auto before = h.read<float>(x);
    const auto y = h.op("sum", std::vector<ValueId>(count, x)).front();
    h.in_place(0, 0);
    h.run("tiles");
    const auto after = h.read<float>(y);
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_FLOAT_EQ(after[i], static_cast<float>(count) * before[i]);
    }
  }
}

TEST(Sum, GradientIsTheSameForEveryTerm) {
  OpHarness h;
  const auto a = h.random("a", {4}), b = h.random("b", {4}), c = h.random("c", {4}),
             g = h.random("g", {4});
  h.op("sum", {a, b, c});
  const std::size_t ops = h.graph().op_count();
  const auto gradients = h.gradient({g}, {true, false, true});
  EXPECT_EQ(gradients[0], g);
  EXPECT_FALSE(gradients[1]);
  EXPECT_EQ(gradients[2], g);
  EXPECT_EQ(h.graph().op_count(), ops);
}

TEST(Sum, GradientAgreesWithCentralDifferences) {
  OpHarness h;
  const Shape shape{2, 5};
  const auto a = h.random("a", shape), b = h.random("b", shape), g = h.random("g", shape);
  h.op("sum", {a, b, a});
  const auto gradients = h.gradient({g}, {true, true, true});
  const std::vector<float> one = h.read<float>(a), other = h.read<float>(b);
  // Each slot by itself: a's whole gradient is that of its two together.
  for (std::size_t slot = 0; slot < 3; ++slot) {
    const auto y = [&](const std::vector<double>& moved) {
      std::vector<double> sums = moved;
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] += slot == 1 ? 2 * double{one[i]} : double{one[i]} + double{other[i]};
      return sums;
    };
    expect_close(
        h.read<float>(gradients[slot]),
        numeric_gradient(y, as_doubles(slot == 1 ? other : one), as_doubles(h.read<float>(g))),
        1e-6);
  }
}

TEST(Sum, NaNAndOverflow) {
  OpHarness h;
  const auto a = h.declare("a", DType::int32, {1}), f = h.declare("f", DType::float32, {2});
  h.write<std::int32_t>(a, {std::numeric_limits<std::int32_t>::max()});
  const auto twice = h.op("sum", {a, a}).front();
  h.run("tiles");
  EXPECT_EQ(h.read<std::int32_t>(twice).front(), -2);
  h.write<float>(f, {std::numeric_limits<float>::quiet_NaN(), 1});
  const auto y = h.op("sum", {f, f, f}).front();
  h.run("tiles");
  EXPECT_TRUE(std::isnan(h.read<float>(y)[0]));
  EXPECT_EQ(h.read<float>(y)[1], 3);
}

TEST(Sum, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto a = h.random("a", {2, 3}), b = h.random("b", {3, 2});
  const auto d = h.declare("d", DType::float64, {2, 3}), u = h.declare("u", DType::uint8, {2});
  expect_error(
      [&] {
        h.op("sum", {a, a, b});
      },
      "sum: operand 2 (b) of float32 [3, 2]; expected float32 [2, 3] like operand 0 (a)");
  expect_error(
      [&] {
        h.op("sum", {a, d});
      },
      "sum: operand 1 (d) of float64 [2, 3]; expected float32 [2, 3] like operand 0 (a)");
  expect_error(
      [&] {
        h.op("sum", {u, u});
      },
      "sum: operand 'terms' (u) of type uint8; expected float32, float64, int64 or int32");
  expect_error([&] { h.op("sum", {}); }, "sum: 0 operands; expected 1 (terms, …)");
}

}  // namespace
}  // namespace arenite::codelets::testing
