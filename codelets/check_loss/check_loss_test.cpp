#include "codelets/check_loss/check_loss.hpp"

#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

TEST(CheckLoss, ReportsSumsThatAreNotFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity(),
                  most = std::numeric_limits<float>::max();
  struct Case {
    std::vector<float> losses;
    std::uint32_t code;
  };
  const auto code = [](LossFault fault) { return static_cast<std::uint32_t>(fault); };
  OpHarness h;
  const auto rate = h.declare("rate", DType::float32, {1}),
             one = h.declare("one", DType::float32, {1}),
             other = h.declare("other", DType::float32, {});
  h.op("check_loss", {rate, one, other});
  for (const Case& each :
       {Case{{1, -2}, 0}, Case{{most, -most}, 0}, Case{{std::nanf(""), 0}, code(LossFault::nan)},
        Case{{infinity, -infinity}, code(LossFault::nan)},
        Case{{0, infinity}, code(LossFault::infinite)},
        Case{{most, most}, code(LossFault::infinite)},
        Case{{-infinity, 3}, code(LossFault::below)}}) {
    h.write<float>(rate, {0.25f});
    h.write<float>(one, {each.losses[0]});
    h.write<float>(other, {each.losses[1]});
    EXPECT_EQ(runtime::StatusWord::code_of(h.run("plain")), each.code);
    EXPECT_EQ(h.read<float>(rate), std::vector<float>{0.25f});
  }
}

TEST(CheckLoss, HandsOnNothingWithoutARate) {
  OpHarness h;
  const auto rate = h.declare("rate", DType::float32, {1}),
             one = h.declare("one", DType::float32, {1}),
             other = h.declare("other", DType::float32, {});
  const auto looked_at = h.op("check_loss", {{}, one}).front();
  EXPECT_EQ(h.graph()[looked_at].shape, Shape{0});
  h.write<float>(one, {2});
  EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
  h.write<float>(one, {std::nanf("")});
  EXPECT_EQ(runtime::StatusWord::code_of(h.run("plain")),
            static_cast<std::uint32_t>(LossFault::nan));

  // The other op looks at what it is given beside that alone.
  h.op("check_loss", {rate, looked_at, other});
  h.write<float>(rate, {0.25f});
  h.write<float>(other, {1});
  EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
  EXPECT_EQ(h.read<float>(rate), std::vector<float>{0.25f});
  h.write<float>(other, {std::numeric_limits<float>::infinity()});
  EXPECT_EQ(runtime::StatusWord::code_of(h.run("plain")),
            static_cast<std::uint32_t>(LossFault::infinite));
}

TEST(CheckLoss, RefusesWhatIsNoLoss) {
  OpHarness h;
  const auto rate = h.random("rate", {1}), two = h.random("two", {2});
  expect_error(
      [&] {
        h.op("check_loss", {rate, two});
      },
      "check_loss: operand 'loss' (two) of shape [2]; expected one number");
  expect_error(
      [&] {
        h.op("check_loss", {two, rate});
      },
      "check_loss: operand 'learning_rate' (two) of shape [2]; expected [1], the learning "
      "rate");
  expect_error([&] { h.op("check_loss", std::vector(66, rate)); },
               "check_loss: 65 losses; expected at most 64");
}

}  // namespace
}  // namespace arenite::codelets::testing
