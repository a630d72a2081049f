#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

template <class T>
void check(const std::string& type, const std::vector<std::int64_t>& shape) {
  OpHarness h;
  const auto y = h.op("zeros", {}, {{"shape", shape}, {"type", type}}).front();
  EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
  const auto elements = static_cast<std::size_t>(Shape(shape).elements());
  EXPECT_EQ(h.read<T>(y), std::vector<T>(elements, 0)) << type;
}

TEST(Zeros, OfEveryTypeAndShape) {
  for (const auto& shape :
       std::vector<std::vector<std::int64_t>>{{}, {1}, {7}, {3, 5}, {2, 3, 4, 5}, {0, 4}, {1000}}) {
    check<float>("float32", shape);
    check<double>("float64", shape);
    check<std::int64_t>("int64", shape);
    check<std::int32_t>("int32", shape);
    check<std::uint8_t>("uint8", shape);
  }
}

TEST(Zeros, FillTheHaloToo) {
  OpHarness h;
  const auto y = h.op("zeros", {}, {{"shape", std::vector<std::int64_t>{2, 3, 3, 4}}}).front();
  h.set_halo(y, 1);
  h.run("plain");
  EXPECT_EQ(h.read<float>(y), std::vector<float>(2 * 3 * 3 * 4, 0));
  EXPECT_TRUE(h.halo_is_zero(y));
}

TEST(Zeros, RefuseUnknownTypesAndShapes) {
  OpHarness h;
  const std::vector<std::int64_t> negative{2, -1};
  expect_error(
      [&] {
        h.op("zeros", {}, {{"shape", negative}});
      },
      "zeros: dimension 1 is -1; expected a size of at least 0");
  const std::vector<std::int64_t> one{1};
  expect_error(
      [&] {
        h.op("zeros", {}, {{"shape", one}, {"type", std::string("half")}});
      },
      "zeros: unknown element type 'half'; expected one of float32, float64, int64, int32, "
      "uint8");
}

}  // namespace
}  // namespace arenite::codelets::testing
