#include "codelets/draw/draw.hpp"
#include "codelets/testing.hpp"
#include "src/base/element.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

using runtime::StatusWord;

template <class T>
std::vector<T> random_data(OpHarness& h, std::int64_t elements) {
  std::vector<T> data(static_cast<std::size_t>(elements));
  std::uniform_int_distribution<int> number(0, 255);
  for (T& one : data) one = static_cast<T>(number(h.engine()));
  return data;
}

/// A data set with a shuffled order.
template <class T>
struct Data {
  OpHarness& h;
  Shape shape;
  ValueId data, order, cursor;
  std::vector<T> elements;
  std::vector<std::int32_t> indices;

  Data(OpHarness& harness, Shape of, std::int64_t entries, const std::string& tag = "")
      : h(harness), shape(of), elements(random_data<T>(harness, of.elements())) {
    data = h.declare("data" + tag, dtype_of<T>, shape);
    order = h.declare("order" + tag, DType::int32, {entries});
    cursor = h.declare("cursor" + tag, DType::int64, {1});
    std::uniform_int_distribution<int> index(0, static_cast<int>(shape[0]) - 1);
    indices.resize(static_cast<std::size_t>(entries));
    for (auto& v : indices) v = index(h.engine());
    h.write(data, elements);
    h.write(order, indices);
  }

  ValueId draw(std::int64_t count, std::int64_t begin, graph::Attributes more = {}) {
    more.set("count", count);
    more.set("begin", begin);
    return h.op("draw", {data, order, cursor}, more).front();
  }

  void move_to(std::int64_t position) { h.write<std::int64_t>(cursor, {position}); }

  template <class To>
  void expect_sample(ValueId y, std::size_t j, std::size_t entry, double scale = 1) {
    const auto size = static_cast<std::size_t>(shape.elements() / shape[0]);
    const auto values = h.read<To>(y);
    const auto row = static_cast<std::size_t>(indices.at(entry));
    for (std::size_t i = 0; i < size; ++i) {
      const auto expected = static_cast<double>(elements[row * size + i]) * scale;
      ASSERT_FLOAT_EQ(static_cast<float>(values[j * size + i]), static_cast<float>(expected));
    }
  }
};

TEST(Draw, TakesTheSamplesOfItsLane) {
  OpHarness h(31);
  std::uniform_int_distribution<int> size(1, 9), halo(0, 2);
  for (int round = 0; round < 30; ++round) {
    const Shape shape{size(h.engine()), size(h.engine()), size(h.engine()), size(h.engine())};
    SCOPED_TRACE(to_string(shape));
    Data<std::uint8_t> data(h, shape, 50, std::to_string(round));
    const std::int64_t count = size(h.engine()), begin = size(h.engine());
    const ValueId y = data.draw(count, begin, {{"scale", 1.0 / 255}});
    h.set_halo(y, halo(h.engine()));
    for (std::int64_t position : {std::int64_t{0}, std::int64_t{7}, 50 - begin - count}) {
      data.move_to(position);
      ASSERT_EQ(h.run("plain"), StatusWord::ok);
      for (std::int64_t j = 0; j < count; ++j) {
        data.expect_sample<float>(y, static_cast<std::size_t>(j),
                                  static_cast<std::size_t>(position + begin + j), 1.0 / 255);
      }
      if (h.graph()[y].layout.halo > 0) {
        EXPECT_TRUE(h.halo_is_zero(y));
      }
    }
  }
}

TEST(Draw, OfEveryTypeAsEveryTypeOfAnyRank) {
  constexpr std::array all{DType::float32, DType::float64, DType::int64, DType::int32,
                           DType::uint8};
  for (const DType from : all) {
    for (const DType to : all) {
      with_element(from, [&](auto of) {
        with_element(to, [&](auto as) {
          if constexpr (can_draw<decltype(of), decltype(as)>) {
            for (const Shape& shape : {Shape{6}, Shape{6, 37}, Shape{6, 3, 200}, Shape{6, 0}}) {
              SCOPED_TRACE(std::string(to_string(from)) + to_string(shape) + " as " +
                           std::string(to_string(to)));
              OpHarness h;
              Data<decltype(of)> data(h, shape, 9);
              const ValueId y = data.draw(4, 2, {{"type", std::string(to_string(to))}});
              data.move_to(3);
              ASSERT_EQ(h.graph()[y].type, to);
              ASSERT_EQ(h.run("plain"), StatusWord::ok);
              for (std::size_t j = 0; j < 4; ++j)
                data.template expect_sample<decltype(as)>(y, j, 5 + j);
            }
          }
        });
      });
    }
  }
}

TEST(Draw, ScalesAsAsked) {
  OpHarness h;
  Data<std::uint8_t> bytes(h, {3, 5, 7, 1}, 10, "bytes");
  Data<double> doubles(h, {3, 2}, 10, "doubles");
  const ValueId x = bytes.draw(10, 0, {{"scale", 2.0}});
  h.run("plain");
  const ValueId y = doubles.draw(10, 0, {{"scale", 0.5}, {"type", std::string("float64")}});
  h.run("plain");
  for (std::size_t j = 0; j < 10; ++j) {
    bytes.expect_sample<float>(x, j, j, 2.0);
    doubles.expect_sample<double>(y, j, j, 0.5);
  }
}

TEST(Draw, ACursorOutsideTheOrderGivesZerosAndAReport) {
  OpHarness h;
  Data<std::uint8_t> data(h, {3, 4, 5, 2}, 10);
  const ValueId y = data.draw(4, 2);
  h.set_halo(y, 1);
  for (std::int64_t position :
       {std::int64_t{5}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    data.move_to(position);
    const std::uint64_t status = h.run("plain");
    EXPECT_EQ(StatusWord::op_of(status), 0u);
    EXPECT_EQ(StatusWord::code_of(status), static_cast<std::uint32_t>(DrawFault::cursor));
    EXPECT_EQ(h.read<float>(y), std::vector<float>(4 * 4 * 5 * 2, 0));
    EXPECT_TRUE(h.halo_is_zero(y));
  }
}

TEST(Draw, AnIndexOutsideTheDataGivesAZeroSampleAndAReport) {
  OpHarness h;
  Data<std::uint8_t> data(h, {3, 4, 5, 2}, 4);
  const ValueId y = data.draw(4, 0);
  data.move_to(0);
  for (std::int32_t bad : {3, -1, std::numeric_limits<std::int32_t>::max(),
                           std::numeric_limits<std::int32_t>::min()}) {
    auto order = data.indices;
    order[2] = bad;
    h.write(data.order, order);
    const std::uint64_t status = h.run("plain");
    EXPECT_EQ(StatusWord::code_of(status), static_cast<std::uint32_t>(DrawFault::index));
    const auto values = h.read<float>(y);
    for (std::size_t i = 80; i < 120; ++i) EXPECT_EQ(values[i], 0);
    for (std::size_t j : {0u, 1u, 3u}) data.expect_sample<float>(y, j, j);
  }
}

TEST(Draw, AnIntegerThatTheTypeDoesNotHoldIsReported) {
  OpHarness h;
  Data<std::int64_t> data(h, {3, 20}, 3);
  const ValueId y = data.draw(3, 0, {{"type", std::string("int32")}});
  data.move_to(0);
  h.write(data.order, std::vector<std::int32_t>{0, 1, 2});
  for (const std::int64_t bad :
       {std::int64_t{1} << 31, -(std::int64_t{1} << 31) - 1, (std::int64_t{1} << 32) + 3}) {
    auto elements = data.elements;
    elements[27] = bad;
    h.write(data.data, elements);
    EXPECT_EQ(StatusWord::code_of(h.run("plain")), static_cast<std::uint32_t>(DrawFault::value));
    EXPECT_EQ(h.read<std::int32_t>(y)[27], 0);
  }
  const ValueId bytes = data.draw(3, 0, {{"type", std::string("uint8")}});
  auto elements = data.elements;
  elements[59] = -1;
  h.write(data.data, elements);
  EXPECT_EQ(StatusWord::code_of(h.run("plain")), static_cast<std::uint32_t>(DrawFault::value));
  EXPECT_EQ(h.read<std::uint8_t>(bytes)[59], 0);
}

TEST(Draw, HasNoGradient) { EXPECT_FALSE(operators().at("draw")->gradient); }

TEST(Draw, RefusesWhatDoesNotMatch) {
  OpHarness h;
  Data<std::uint8_t> data(h, {3, 4, 5, 2}, 10);
  expect_error([&] { data.draw(0, 0); }, "draw: count=0; expected at least one sample");
  expect_error([&] { data.draw(1, -1); }, "draw: begin=-1; expected a position of at least 0");
  expect_error([&] { data.draw(8, 3); },
               "draw: begin=3 and count=8 in an order of 10 entries; expected a batch no longer "
               "than the order");
  expect_error([&] { data.draw(std::numeric_limits<std::int64_t>::max(), 1); },
               "draw: begin=1 and count=9223372036854775807 in an order of 10 entries; expected a "
               "batch no longer than the order");
  expect_error(
      [&] {
        data.draw(1, 0, {{"scale", HUGE_VAL}});
      },
      "draw: scale=inf; expected a finite number");
  expect_error(
      [&] {
        data.draw(1, 0, {{"scale", 2.0}, {"type", std::string("int32")}});
      },
      "draw: scale=2.0; expected 1, of samples of integers");
  Data<float> floats(h, {3, 4}, 10, "floats");
  expect_error(
      [&] {
        floats.draw(1, 0, {{"type", std::string("int32")}});
      },
      "draw: operand 'data' (datafloats) of type float32 drawn as int32; expected float32 "
      "or float64, or a data set of integers");
}

}  // namespace
}  // namespace arenite::codelets::testing
