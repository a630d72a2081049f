#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

struct Options {
  double momentum = 0, weight_decay = 0;
};

/// torch.optim.SGD, in double.
void reference(std::vector<double>& weight, std::vector<double>& velocity,
               const std::vector<double>& gradient, double rate, Options options) {
  for (std::size_t i = 0; i < weight.size(); ++i) {
    double g = gradient[i];
    if (options.weight_decay != 0) g += options.weight_decay * weight[i];
    if (options.momentum != 0) g = velocity[i] = options.momentum * velocity[i] + g;
    weight[i] -= rate * g;
  }
}

TEST(Sgd, FollowsPyTorchForManySteps) {
  OpHarness h(23);
  int number = 0;
  for (const Shape& shape :
       {Shape{1}, Shape{63}, Shape{64}, Shape{65}, Shape{3, 3, 5, 7}, Shape{700, 3}, Shape{0}}) {
    for (Options options : {Options{}, {0.9, 0}, {0, 0.01}, {0.9, 5e-4}}) {
      const std::string tag = std::to_string(number++);
      const auto w = h.random("w" + tag, shape), g = h.random("g" + tag, shape),
                 lr = h.random("lr" + tag, {1});
      const auto v = h.declare("v" + tag, DType::float32, shape);
      auto weight = as_doubles(h.read<float>(w));
      std::vector<double> velocity(weight.size());
      auto operands = std::vector{w, g, lr};
      operands.push_back(options.momentum != 0 ? v : graph::ValueId{});
      EXPECT_TRUE(h.op("sgd", operands,
                       {{"momentum", options.momentum}, {"weight_decay", options.weight_decay}})
                      .empty());
      for (int step = 0; step < 10; ++step) {
        const float rate = 0.1f / static_cast<float>(1 + step);  // data, so it may change
        h.write<float>(lr, {rate});
        reference(weight, velocity, as_doubles(h.read<float>(g)), static_cast<double>(rate),
                  options);
        ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
      }
      expect_close(h.read<float>(w), weight, 2e-6, "weight " + tag);
      if (options.momentum != 0) expect_close(h.read<float>(v), velocity, 2e-6, "velocity " + tag);
    }
  }
}

TEST(Sgd, TheVelocityMayBeLeftOut) {
  OpHarness h;
  const auto w = h.random("w", {5}), g = h.random("g", {5}), lr = h.random("lr", {1});
  const auto before = h.read<float>(w), gradient = h.read<float>(g);
  const float rate = h.read<float>(lr).front();
  h.op("sgd", {w, g, lr});
  h.run("plain");
  const auto after = h.read<float>(w);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(after[i], before[i] - rate * gradient[i], 1e-7);
}

TEST(Sgd, NaNAndInfinityStayWhereTheyAre) {
  OpHarness h;
  const auto w = h.random("w", {3}), g = h.declare("g", DType::float32, {3}),
             lr = h.declare("lr", DType::float32, {1});
  h.write<float>(w, {std::numeric_limits<float>::infinity(), 1, 2});
  h.write<float>(g, {0, std::numeric_limits<float>::quiet_NaN(), 1});
  h.write<float>(lr, {1});
  h.op("sgd", {w, g, lr});
  h.run("plain");
  const auto after = h.read<float>(w);
  EXPECT_TRUE(std::isinf(after[0]));
  EXPECT_TRUE(std::isnan(after[1]));
  EXPECT_EQ(after[2], 1);
}

TEST(Sgd, ChangesWeightAndVelocityOnly) {
  const auto definition = operators().at("sgd");
  EXPECT_EQ(definition->effect(0), graph::Effect::read_write);
  EXPECT_EQ(definition->effect(1), graph::Effect::read);
  EXPECT_EQ(definition->effect(2), graph::Effect::read);
  EXPECT_EQ(definition->effect(3), graph::Effect::read_write);
  EXPECT_FALSE(definition->gradient);
}

TEST(Sgd, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto w = h.random("w", {2, 3}), g = h.random("g", {2, 3}), lr = h.random("lr", {1}),
             v = h.random("v", {2, 3}), flat = h.random("flat", {6}), two = h.random("two", {2});
  expect_error(
      [&] {
        h.op("sgd", {w, g, lr}, {{"momentum", 0.9}});
      },
      "sgd: momentum=0.9 without a velocity; expected operand 'velocity', float32 of shape [2, 3]");
  expect_error(
      [&] {
        h.op("sgd", {w, g, lr, v});
      },
      "sgd: momentum=0.0 with a velocity; expected no velocity (hint: leave the operand out: "
      "without momentum "
      "it would only take memory)");
  expect_error(
      [&] {
        h.op("sgd", {w, g, lr, flat}, {{"momentum", 0.9}});
      },
      "sgd: operand 'velocity' (flat) of shape [6]; expected [2, 3], the shape of 'weight'");
  expect_error(
      [&] {
        h.op("sgd", {w, flat, lr});
      },
      "sgd: operand 'gradient' (flat) of shape [6]; expected [2, 3], the shape of 'weight'");
  expect_error(
      [&] {
        h.op("sgd", {w, g, two});
      },
      "sgd: operand 'learning_rate' (two) of shape [2]; expected [1], one number");
  expect_error(
      [&] {
        h.op("sgd", {w, g, lr}, {{"momentum", -0.5}});
      },
      "sgd: momentum=-0.5; expected a number of at least 0");
  expect_error(
      [&] {
        h.op("sgd", {w, g, lr}, {{"weight_decay", std::nan("")}});
      },
      "sgd: weight_decay=nan; expected a number of at least 0");
}

}  // namespace
}  // namespace arenite::codelets::testing
