#include "codelets/batch_gather/batch_gather.hpp"
#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

using runtime::StatusWord;

/// A dataset of random bytes with a shuffled order.
struct Data {
  OpHarness& h;
  Shape shape;
  ValueId images, labels, order, cursor;
  std::vector<std::uint8_t> pixels, classes;
  std::vector<std::int32_t> indices;

  Data(OpHarness& harness, Shape image_shape, std::int64_t entries, const std::string& tag)
      : h(harness), shape(image_shape) {
    images = h.declare("images" + tag, DType::uint8, shape);
    labels = h.declare("labels" + tag, DType::uint8, {shape[0]});
    order = h.declare("order" + tag, DType::int32, {entries});
    cursor = h.declare("cursor" + tag, DType::int64, {1});
    std::uniform_int_distribution<int> byte(0, 255), index(0, static_cast<int>(shape[0]) - 1);
    pixels.resize(static_cast<std::size_t>(shape.elements()));
    classes.resize(static_cast<std::size_t>(shape[0]));
    indices.resize(static_cast<std::size_t>(entries));
    for (auto& v : pixels) v = static_cast<std::uint8_t>(byte(h.engine()));
    for (auto& v : classes) v = static_cast<std::uint8_t>(byte(h.engine()));
    for (auto& v : indices) v = index(h.engine());
    h.write(images, pixels);
    h.write(labels, classes);
    h.write(order, indices);
  }

  std::vector<ValueId> gather(std::int64_t count, std::int64_t begin, graph::Attributes more = {}) {
    more.set("count", count);
    more.set("begin", begin);
    return h.op("batch_gather", {images, labels, order, cursor}, more);
  }

  void move_to(std::int64_t position) { h.write<std::int64_t>(cursor, {position}); }

  void expect_sample(ValueId x, ValueId y, std::size_t j, std::size_t entry,
                     double scale = 1.0 / 255) {
    const auto image = static_cast<std::size_t>(shape.elements() / shape[0]);
    const auto values = h.read<float>(x);
    const auto index = static_cast<std::size_t>(indices.at(entry));
    for (std::size_t i = 0; i < image; ++i) {
      ASSERT_FLOAT_EQ(values[j * image + i], static_cast<float>(pixels[index * image + i] * scale));
    }
    EXPECT_EQ(h.read<std::int32_t>(y)[j], classes[index]);
  }
};

TEST(BatchGather, TakesTheSamplesOfItsLane) {
  OpHarness h(31);
  std::uniform_int_distribution<int> size(1, 9), halo(0, 2);
  for (int round = 0; round < 30; ++round) {
    const Shape shape{size(h.engine()), size(h.engine()), size(h.engine()), size(h.engine())};
    SCOPED_TRACE(to_string(shape));
    Data data(h, shape, 50, std::to_string(round));
    const std::int64_t count = size(h.engine()), begin = size(h.engine());
    const auto results = data.gather(count, begin);
    h.set_halo(results[0], halo(h.engine()));
    for (std::int64_t position : {std::int64_t{0}, std::int64_t{7}, 50 - begin - count}) {
      data.move_to(position);
      ASSERT_EQ(h.run("plain"), StatusWord::ok);
      for (std::int64_t j = 0; j < count; ++j) {
        data.expect_sample(results[0], results[1], static_cast<std::size_t>(j),
                           static_cast<std::size_t>(position + begin + j));
      }
      if (h.graph()[results[0]].layout.halo > 0) {
        EXPECT_TRUE(h.halo_is_zero(results[0]));
      }
    }
  }
}

TEST(BatchGather, ScalesAsAsked) {
  OpHarness h;
  Data data(h, {3, 5, 7, 1}, 10, "");
  const auto results = data.gather(10, 0, {{"scale", 2.0}});
  h.run("plain");
  for (std::size_t j = 0; j < 10; ++j) data.expect_sample(results[0], results[1], j, j, 2.0);
}

TEST(BatchGather, ACursorOutsideTheOrderGivesZerosAndAReport) {
  OpHarness h;
  Data data(h, {3, 4, 5, 2}, 10, "");
  const auto results = data.gather(4, 2);
  h.set_halo(results[0], 1);
  for (std::int64_t position :
       {std::int64_t{5}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    data.move_to(position);
    const std::uint64_t status = h.run("plain");
    EXPECT_EQ(StatusWord::op_of(status), 0u);
    EXPECT_EQ(StatusWord::code_of(status), static_cast<std::uint32_t>(GatherFault::cursor));
    EXPECT_EQ(h.read<float>(results[0]), std::vector<float>(4 * 4 * 5 * 2, 0));
    EXPECT_EQ(h.read<std::int32_t>(results[1]), std::vector<std::int32_t>(4, 0));
    EXPECT_TRUE(h.halo_is_zero(results[0]));
  }
}

TEST(BatchGather, AnIndexOutsideTheImagesGivesAZeroSampleAndAReport) {
  OpHarness h;
  Data data(h, {3, 4, 5, 2}, 4, "");
  const auto results = data.gather(4, 0);
  for (std::int32_t bad : {3, -1, std::numeric_limits<std::int32_t>::max(),
                           std::numeric_limits<std::int32_t>::min()}) {
    auto order = data.indices;
    order[2] = bad;
    h.write(data.order, order);
    const std::uint64_t status = h.run("plain");
    EXPECT_EQ(StatusWord::code_of(status), static_cast<std::uint32_t>(GatherFault::index));
    const auto x = h.read<float>(results[0]);
    for (std::size_t i = 80; i < 120; ++i) EXPECT_EQ(x[i], 0);
    EXPECT_EQ(h.read<std::int32_t>(results[1])[2], 0);
    for (std::size_t j : {0u, 1u, 3u}) data.expect_sample(results[0], results[1], j, j);
  }
}

TEST(BatchGather, HasNoGradient) { EXPECT_FALSE(operators().at("batch_gather")->gradient); }

TEST(BatchGather, RefusesWhatDoesNotMatch) {
  OpHarness h;
  Data data(h, {3, 4, 5, 2}, 10, "");
  expect_error([&] { data.gather(0, 0); }, "batch_gather: count=0; expected at least one sample");
  expect_error([&] { data.gather(1, -1); },
               "batch_gather: begin=-1; expected a position of at least 0");
  expect_error([&] { data.gather(8, 3); },
               "batch_gather: begin=3 and count=8 in an order of 10 entries; expected a batch no "
               "longer than the order");
  expect_error([&] { data.gather(std::numeric_limits<std::int64_t>::max(), 1); },
               "batch_gather: begin=1 and count=9223372036854775807 in an order of 10 entries; "
               "expected a batch no "
               "longer than the order");
  expect_error(
      [&] {
        data.gather(1, 0, {{"scale", HUGE_VAL}});
      },
      "batch_gather: scale=inf; expected a finite number");
  const graph::Attributes one{{"count", std::int64_t{1}}, {"begin", std::int64_t{0}}};
  const auto two = h.declare("two", DType::uint8, {2}), floats = h.random("floats", {3, 4, 5, 2});
  expect_error(
      [&] {
        h.op("batch_gather", {data.images, two, data.order, data.cursor}, one);
      },
      "batch_gather: operand 'labels' (two) of shape [2]; expected [3], one label for each of the "
      "images "
      "[3, 4, 5, 2]");
  expect_error(
      [&] {
        h.op("batch_gather", {floats, data.labels, data.order, data.cursor}, one);
      },
      "batch_gather: operand 'images' (floats) of type float32; expected uint8");
}

}  // namespace
}  // namespace arenite::codelets::testing
