#include "codelets/testing.hpp"

#include <numeric>

namespace arenite::codelets::testing {
namespace {

using Axes = std::vector<std::int64_t>;

/// y[index] = x[index permuted], each element by itself.
template <class T>
std::vector<T> reference(const std::vector<T>& x, const Shape& shape, const Axes& dims) {
  std::vector<T> y;
  Axes index(dims.size());
  for (std::int64_t count = 0; count < shape.elements(); ++count) {
    std::int64_t rest = count, from = 0;
    for (std::size_t i = dims.size(); i-- > 0;) {
      const std::int64_t size = shape[static_cast<int>(dims[i])];
      index[static_cast<std::size_t>(dims[i])] = rest % size;
      rest /= size;
    }
    for (std::size_t i = 0; i < dims.size(); ++i)
      from = from * shape[static_cast<int>(i)] + index[i];
    y.push_back(x[static_cast<std::size_t>(from)]);
  }
  return y;
}

template <class T>
ValueId numbered(OpHarness& h, const Shape& shape) {
  const auto id = h.declare("v" + std::to_string(h.graph().value_count()), dtype_of<T>, shape);
  std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  // Of bytes, whose numbers repeat, neighbours differ all the same.
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i % 251);
  if (sizeof(T) > 1) std::iota(values.begin(), values.end(), T{1});
  h.write(id, values);
  return id;
}

template <class T>
void check(OpHarness& h, const Shape& shape, const Axes& dims) {
  SCOPED_TRACE(to_string(shape) + " by " + graph::to_string(graph::AttributeValue(dims)) + " of " +
               std::string(to_string(dtype_of<T>)));
  const auto x = numbered<T>(h, shape);
  const auto y = h.op("permute", {x}, {{"dims", dims}}).front();
  ASSERT_EQ(h.graph()[y].type, dtype_of<T>);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    ASSERT_EQ(h.graph()[y].shape[static_cast<int>(i)], shape[static_cast<int>(dims[i])]);
  }
  for (const std::string& kernel : h.cpu_kernels()) {
    ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
    EXPECT_EQ(h.read<T>(y), reference(h.read<T>(x), shape, dims));
  }
  if (dtype_of<T> != DType::float32 && dtype_of<T> != DType::float64) return;
  // The gradient y brings x back.
  const auto back = h.gradient({y}, {true}).front();
  EXPECT_EQ(h.graph()[back].shape, shape);
  EXPECT_EQ(h.read<T>(back), h.read<T>(x));
}

void check_types(OpHarness& h, const Shape& shape, const Axes& dims) {
  check<float>(h, shape, dims);
  check<double>(h, shape, dims);
  check<std::int64_t>(h, shape, dims);
  check<std::int32_t>(h, shape, dims);
  check<std::uint8_t>(h, shape, dims);
}

TEST(Permute, MovesAxesOfEveryType) {
  OpHarness h;
  check_types(h, {}, {});
  check_types(h, {7}, {0});
  check_types(h, {3, 5}, {0, 1});
  check_types(h, {33, 50}, {1, 0});
  check_types(h, {2, 17, 16}, {0, 2, 1});
  check_types(h, {5, 4, 6}, {1, 0, 2});
  check_types(h, {1, 4, 1, 6}, {2, 3, 1, 0});
  check_types(h, {2, 5, 7, 3}, {0, 3, 1, 2});
  check_types(h, {2, 3, 5, 7}, {0, 2, 3, 1});
}

TEST(Permute, TakesEveryOrderOfFourAxes) {
  OpHarness h;
  Axes dims{0, 1, 2, 3};
  do check<float>(h, {3, 4, 2, 5}, dims);
  while (std::next_permutation(dims.begin(), dims.end()));
}

TEST(Permute, MatchesTheReferenceForRandomShapes) {
  OpHarness h(5);
  std::uniform_int_distribution<int> rank(0, Shape::max_rank);
  for (int round = 0; round < 200; ++round) {
    Axes dims(static_cast<std::size_t>(rank(h.engine()))), sizes;
    std::iota(dims.begin(), dims.end(), 0);
    std::shuffle(dims.begin(), dims.end(), h.engine());
    // Few long axes, or many short ones.
    const int longest = dims.size() <= 3 ? 40 : dims.size() <= 5 ? 7 : 4;
    std::uniform_int_distribution<int> size(1, longest);
    for (std::size_t i = 0; i < dims.size(); ++i) sizes.push_back(size(h.engine()));
    round % 2 == 0 ? check<float>(h, Shape(sizes), dims)
                   : check<std::uint8_t>(h, Shape(sizes), dims);
  }
}

TEST(Permute, OfNothingIsNothing) {
  OpHarness h;
  check_types(h, {0}, {0});
  check_types(h, {3, 0, 4}, {2, 0, 1});
  check_types(h, {0, 5}, {1, 0});
}

TEST(Permute, GradientAgreesWithCentralDifferences) {
  OpHarness h;
  const Shape shape{2, 3, 4};
  const Axes dims{2, 0, 1};
  const auto x = h.random("x", shape), g = h.random("g", {4, 2, 3});
  const auto xs = as_doubles(h.read<float>(x)), gs = as_doubles(h.read<float>(g));
  h.op("permute", {x}, {{"dims", dims}});
  const auto got = h.gradient({g}, {true}).front();
  const auto expected = numeric_gradient(
      [&](const std::vector<double>& v) { return reference(v, shape, dims); }, xs, gs);
  expect_close(h.read<float>(got), expected, 1e-6);
}

TEST(Permute, RefusesWhatIsNoPermutation) {
  OpHarness h;
  const auto scalar = h.random("scalar", {}), x = h.random("x", {2, 3});
  const auto refuse = [&](ValueId value, const Axes& dims, const std::string& message) {
    expect_error([&] { h.op("permute", {value}, {{"dims", dims}}); }, "permute: dims=" + message);
  };
  const std::string expected = "; expected each of the 2 axes of x [2, 3] once, counted from 0";
  refuse(x, {}, "[]" + expected);
  refuse(x, {0}, "[0]" + expected);
  refuse(x, {0, 0}, "[0, 0]" + expected);
  refuse(x, {0, 2}, "[0, 2]" + expected);
  refuse(x, {0, -1}, "[0, -1]" + expected);
  refuse(x, {0, 1, 2}, "[0, 1, 2]" + expected);
  refuse(scalar, {0}, "[0]; expected each of the 0 axes of x [] once, counted from 0");
}

}  // namespace
}  // namespace arenite::codelets::testing
