#include <arenite/error.hpp>
#include <arenite/types.hpp>

#include <gtest/gtest.h>

namespace arenite {
namespace {

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape({}).elements(), 1);
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape({2, 0, 4}).elements(), 0);
  EXPECT_EQ(to_string(Shape({64, 28, 28, 1})), "[64, 28, 28, 1]");
}

TEST(Shape, RefusesWhatCannotBeCounted) {
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW(Shape({-1}), Error);
  EXPECT_THROW(Shape({1 << 30, 1 << 30}), Error);
  // A zero hides no overflow, whatever its place.
  EXPECT_EQ(Shape({1 << 30, 1 << 30, 0}).elements(), 0);
}

TEST(Shape, IndexesFromTheEnd) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.at(-1), 5);
  EXPECT_EQ(shape.with(-3, 7), Shape({7, 3, 5}));
  EXPECT_THROW(shape.at(3), Error);
  EXPECT_THROW(shape.at(-4), Error);
}

TEST(DType, NamesRoundTrip) {
  for (DType type : {DType::float32, DType::float64, DType::int64, DType::int32, DType::uint8}) {
    EXPECT_EQ(parse_dtype(to_string(type)), type);
  }
  try {
    parse_dtype("float16");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "unknown element type 'float16'; expected one of float32, float64, int64, int32, uint8");
  }
}

TEST(Space, IsAWholeKey) {
  Space cpu, gpu{.device = DeviceKind::cuda, .memory = MemoryKind::device};
  EXPECT_NE(cpu, gpu);
  Space small = cpu;
  small.capacity = 1 << 20;
  EXPECT_NE(cpu, small);
  EXPECT_EQ(to_string(gpu), "cuda:0/device");
}

}  // namespace
}  // namespace arenite
