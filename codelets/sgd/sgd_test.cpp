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
      operands.push_back(options.momentum != 0 ? v : ValueId{});
      h.op("sgd", operands,
           {{"momentum", options.momentum}, {"weight_decay", options.weight_decay}});
      for (int step = 0; step < 10; ++step) {
        const float rate = 0.1f / static_cast<float>(1 + step);  // data, so it may change
        h.write<float>(lr, {rate});
        reference(weight, velocity, as_doubles(h.read<float>(g)), static_cast<double>(rate),
                  options);
        ASSERT_EQ(h.run(step % 2 != 0 ? "tiles" : "fused"), runtime::StatusWord::ok);
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
  h.run("fused");
  const auto after = h.read<float>(w);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(after[i], before[i] - rate * gradient[i], 1e-7);
}

/// Nor does a decay that is 0 as a float reach them.
TEST(Sgd, NaNAndInfinityStayWhereTheyAre) {
  for (const double decay : {0.0, 1e-60}) {
    OpHarness h;
    const auto w = h.random("w", {3}), g = h.declare("g", DType::float32, {3}),
               lr = h.declare("lr", DType::float32, {1});
    h.write<float>(w, {std::numeric_limits<float>::infinity(), 1, 2});
    h.write<float>(g, {0, std::numeric_limits<float>::quiet_NaN(), 1});
    h.write<float>(lr, {1});
    h.op("sgd", {w, g, lr}, {{"weight_decay", decay}});
    h.run("fused");
    const auto after = h.read<float>(w);
    EXPECT_TRUE(std::isinf(after[0]));
    EXPECT_TRUE(std::isnan(after[1]));
    EXPECT_EQ(after[2], 1);
  }
}

/// Of versions that lie elsewhere: the same, and what was there stays.
TEST(Sgd, LeavesOldVersionsThatLieElsewhere) {
  for (const bool velocity : {false, true}) {
    OpHarness h;
    h.updates_in_place = false;
    const auto w = h.random("w", {130}), g = h.random("g", {130}), lr = h.random("lr", {1}),
               v = h.random("v", {130});
    std::vector<double> weight = as_doubles(h.read<float>(w)),
                        moving = as_doubles(h.read<float>(v));
    const auto old_weight = h.read<float>(w), old_velocity = h.read<float>(v);
    const Options options{.momentum = velocity ? 0.9 : 0, .weight_decay = 0.01};
    const graph::Attributes attributes{{"momentum", options.momentum},
                                       {"weight_decay", options.weight_decay}};
    for (const bool many : {false, true}) {
      const auto last = velocity ? v : ValueId{};
      const auto made = many ? h.op("multi_sgd", {lr, w, g, last}, attributes)
                             : h.op("sgd", {w, g, lr, last}, attributes);
      ASSERT_EQ(made.size(), velocity ? 2u : 1u);
      h.run(many ? "plain" : "fused");
      auto expected = weight, momentum = moving;
      reference(expected, momentum, as_doubles(h.read<float>(g)),
                static_cast<double>(h.read<float>(lr).front()), options);
      expect_close(h.read<float>(made[0]), expected, 2e-6, "weight");
      if (velocity) expect_close(h.read<float>(made[1]), momentum, 2e-6, "velocity");
      EXPECT_EQ(h.read<float>(w), old_weight);
      EXPECT_EQ(h.read<float>(v), old_velocity);
    }
  }
  EXPECT_FALSE(operators().at("sgd")->gradient);
}

TEST(Sgd, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto w = h.random("w", {2, 3}), g = h.random("g", {2, 3}), lr = h.random("lr", {1}),
             v = h.random("v", {2, 3}), flat = h.random("flat", {6}), two = h.random("two", {2});
  expect_error(
      [&] {
        h.op("sgd", {w, g, lr}, {{"momentum", 0.9}});
      },
      "sgd: momentum=0.9 without a velocity; expected operand 'velocity'");
  expect_error(
      [&] {
        h.op("sgd", {w, g, lr, v});
      },
      "sgd: momentum=0.0 with a velocity; expected no velocity (hint: leave the operand out: "
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
      "sgd: momentum=-0.5; expected a number from 0 to below 1");
  expect_error(
      [&] {
        h.op("sgd", {w, g, lr}, {{"weight_decay", std::nan("")}});
      },
      "sgd: weight_decay=nan; expected a number of at least 0");
}

TEST(MultiSgd, UpdatesEachAsSgdDoes) {
  for (Options options : {Options{}, {0.9, 0}, {0.9, 5e-4}}) {
    OpHarness h(31);
    const auto lr = h.random("lr", {1});
    const double rate = static_cast<double>(h.read<float>(lr).front());
    struct Item {
      ValueId weight, gradient, velocity;
      std::vector<double> expected, moving;
    };
    std::vector<Item> items;
    std::vector<ValueId> operands{lr};
    // More than one grid's worth; of every third the gradient is a sum of rows.
    for (std::int64_t i = 0; i < 70; ++i) {
      const std::string tag = std::to_string(i);
      const Shape shape = i % 5 == 0 ? Shape{i, 2} : Shape{1 + i};
      Item item{.weight = h.random("w" + tag, shape),
                .gradient = h.random("g" + tag,
                                     i % 3 == 0 && shape.rank() == 1 ? Shape{3, 2, 1 + i} : shape),
                .velocity = {},
                .expected = {},
                .moving = {}};
      if (options.momentum != 0) item.velocity = h.declare("v" + tag, DType::float32, shape);
      item.expected = as_doubles(h.read<float>(item.weight));
      item.moving.resize(item.expected.size());
      operands.insert(operands.end(), {item.weight, item.gradient, item.velocity});
      items.push_back(std::move(item));
    }
    h.op("multi_sgd", operands,
         {{"momentum", options.momentum}, {"weight_decay", options.weight_decay}});
    for (int step = 0; step < 3; ++step) ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
    for (Item& item : items) {
      const auto terms = as_doubles(h.read<float>(item.gradient));
      std::vector<double> gradient(item.expected.size());
      for (std::size_t i = 0; i < terms.size(); ++i) gradient[i % gradient.size()] += terms[i];
      for (int step = 0; step < 3; ++step)
        reference(item.expected, item.moving, gradient, rate, options);
      expect_close(h.read<float>(item.weight), item.expected, 2e-6, "weight");
      if (item.velocity) expect_close(h.read<float>(item.velocity), item.moving, 2e-6, "velocity");
    }
  }
}

TEST(MultiSgd, TheLastVelocityMayBeLeftOut) {
  OpHarness h;
  const auto lr = h.random("lr", {1}), a = h.random("a", {3}), g = h.random("g", {3}),
             b = h.random("b", {3});
  const auto before = h.read<float>(b), gradient = h.read<float>(g);
  const float rate = h.read<float>(lr).front();
  h.op("multi_sgd", {lr, a, g, {}, b, g});
  h.run("plain");
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(h.read<float>(b)[i], before[i] - rate * gradient[i], 1e-7);
  expect_error(
      [&] {
        h.op("multi_sgd", {lr, a, g, {}, b});
      },
      "multi_sgd: 5 operands; expected at least 3 (learning_rate, weight, gradient, velocity?, …), "
      "and "
      "any number of the last 3 again");
}

TEST(MultiSgd, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto lr = h.random("lr", {1}), w = h.random("w", {2, 3}), g = h.random("g", {2, 3}),
             v = h.random("v", {2, 3}), rows = h.random("rows", {5, 3, 2}),
             flat = h.random("flat", {3});
  const ValueId none;
  expect_error(
      [&] {
        h.op("multi_sgd", {lr, w, g, none, w, rows, none});
      },
      "multi_sgd: operand 'gradient' (rows) of shape [5, 3, 2]; expected [2, 3], the shape "
      "of 'weight' (w), or that with axes in front, to be summed over");
  expect_error(
      [&] {
        h.op("multi_sgd", {lr, w, flat, none});
      },
      "multi_sgd: operand 'gradient' (flat) of shape [3]; expected [2, 3], the shape of "
      "'weight' (w), or that with axes in front, to be summed over");
  expect_error(
      [&] {
        h.op("multi_sgd", {lr, w, g, v, v, g, none}, {{"momentum", 0.9}});
      },
      "multi_sgd: momentum=0.9 without a velocity; expected operand 'velocity'");
  expect_error(
      [&] {
        h.op("multi_sgd", {flat, w, g});
      },
      "multi_sgd: operand 'learning_rate' (flat) of shape [3]; expected [1], one number");
}

}  // namespace
}  // namespace arenite::codelets::testing
