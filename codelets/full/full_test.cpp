#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

template <class T>
void check(const std::string& type, const std::vector<std::int64_t>& shape) {
  for (const double value : {0.0, 3.0}) {
    OpHarness h;
    const auto y = h.op("full", {}, {{"shape", shape}, {"value", value}, {"type", type}}).front();
    EXPECT_EQ(h.run("tiles"), runtime::StatusWord::ok);
    const auto elements = static_cast<std::size_t>(Shape(shape).elements());
    EXPECT_EQ(h.read<T>(y), std::vector<T>(elements, static_cast<T>(value))) << type;
  }
}

TEST(Full, OfEveryTypeAndShape) {
  for (const auto& shape :
       std::vector<std::vector<std::int64_t>>{{}, {1}, {7}, {3, 5}, {2, 3, 4, 5}, {0, 4}, {1000}}) {
    check<float>("float32", shape);
    check<double>("float64", shape);
    check<std::int64_t>("int64", shape);
    check<std::int32_t>("int32", shape);
    check<std::uint8_t>("uint8", shape);
  }
}

TEST(Full, IsZerosUnlessSaidOtherwise) {
  OpHarness h;
  const auto y = h.op("full", {}, {{"shape", std::vector<std::int64_t>{5}}}).front();
  h.run("tiles");
  EXPECT_EQ(h.read<float>(y), std::vector<float>(5, 0));
}

TEST(Full, LeavesZerosInTheHalo) {
  OpHarness h;
  const auto y =
      h.op("full", {}, {{"shape", std::vector<std::int64_t>{2, 3, 3, 4}}, {"value", 0.5}}).front();
  h.set_halo(y, 1);
  h.run("tiles");
  EXPECT_EQ(h.read<float>(y), std::vector<float>(2 * 3 * 3 * 4, 0.5f));
  EXPECT_TRUE(h.halo_is_zero(y));
}

void expect_refused(double value, const std::string& type, const std::string& message) {
  OpHarness h;
  const std::vector<std::int64_t> one{1};
  expect_error(
      [&] {
        h.op("full", {}, {{"shape", one}, {"value", value}, {"type", type}});
      },
      message);
}

TEST(Full, RefusesUnknownTypesAndShapes) {
  OpHarness h;
  const std::vector<std::int64_t> negative{2, -1};
  expect_error(
      [&] {
        h.op("full", {}, {{"shape", negative}});
      },
      "full: dimension 1 is -1; expected a size of at least 0");
  expect_refused(0, "half",
                 "full: unknown element type 'half'; expected one of float32, float64, int64, "
                 "int32, uint8");
}

TEST(Full, RefusesNumbersThatTheTypeDoesNotHave) {
  expect_refused(0.5, "int32",
                 "full: value=0.5 of type int32; expected an integer from -2147483648 to "
                 "2147483647");
  expect_refused(256, "uint8",
                 "full: value=256.0 of type uint8; expected an integer from 0 to 255");
  expect_refused(-1, "uint8", "full: value=-1.0 of type uint8; expected an integer from 0 to 255");
  expect_refused(1e300, "int64",
                 "full: value=1e+300 of type int64; expected an integer from -9007199254740992 to "
                 "9007199254740992");
}

}  // namespace
}  // namespace arenite::codelets::testing
