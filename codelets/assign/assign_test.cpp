#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

template <class T>
void check(OpHarness& h, const Shape& shape, const std::string& tag) {
  const auto target = h.declare("target" + tag, dtype_of<T>, shape),
             value = h.declare("value" + tag, dtype_of<T>, shape);
  std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  for (T& v : values) v = static_cast<T>(h.engine()() % 100);
  h.write(value, values);
  h.op("assign", {target, value});
  EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
  EXPECT_EQ(h.read<T>(target), values);
  EXPECT_EQ(h.read<T>(value), values);
  const auto copy = h.op("identity", {value}).front();
  EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
  EXPECT_EQ(h.read<T>(copy), values);
}

TEST(Assign, CopiesEveryTypeAndShape) {
  OpHarness h(7);
  int number = 0;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{5, 7}, Shape{2, 3, 4, 5}}) {
    const std::string tag = std::to_string(number++);
    check<float>(h, shape, "f" + tag);
    check<double>(h, shape, "d" + tag);
    check<std::int64_t>(h, shape, "l" + tag);
    check<std::int32_t>(h, shape, "i" + tag);
    check<std::uint8_t>(h, shape, "b" + tag);
  }
}

TEST(Identity, HandsItsGradientOn) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), g = h.random("g", {2, 3});
  h.op("identity", {x});
  EXPECT_EQ(h.gradient({g}, {true}).front(), g);
}

TEST(Assign, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto a = h.random("a", {2, 3}), b = h.random("b", {3, 2});
  const auto c = h.declare("c", DType::int32, {2, 3});
  expect_error(
      [&] {
        h.op("assign", {a, b});
      },
      "assign: operand 'value' (b) of shape [3, 2]; expected [2, 3], the shape of 'target'");
  expect_error(
      [&] {
        h.op("assign", {a, c});
      },
      "assign: operand 'value' (c) of type int32; expected float32");
}

}  // namespace
}  // namespace arenite::codelets::testing
