// Dropout as training and evaluations run it: in any lanes and shards, and by any number of
// workers, it leaves out the same; and a network with both layers that differ by mode.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/base/testing.hpp"
#include "tests/heap_counted.hpp"
#include "tests/script_in_modes.hpp"

namespace arenite {
namespace {

using testing::Floats;
using testing::random_floats;
using testing::ScriptModel;

constexpr std::size_t drawn_rows = 16, columns = 125;

constexpr const char* dropping = R"(
  $1 = InputTensor(x, float32, [16, 125]);
  $2 = ParameterTensor(weight, float32, [125]);
  $3 = mul($1, $2);
  $4 = dropout($3, 0.2);
  $5 = dropout($3, 0.2);
  $6 = reduce($4, $5, axes=[0, 1]) { sum($1 + $2) };
  train($6, optimizer=sgd, learning_rate=0.001, parameters=[$2]);
  result = $4, $5;)";

struct Dropped {
  std::vector<std::vector<Floats>> steps;  ///< outputs
  std::vector<Floats> weights;             ///< behind each step

  friend bool operator==(const Dropped&, const Dropped&) = default;
};

Dropped drop(int workers, const ModelOptions& options, int steps = 3) {
  runtime::Session session({.workers = workers});
  ScriptModel run(session, dropping, {{"weight", Floats(columns, 1)}}, options);
  EXPECT_EQ(run.model().inputs().size(), 1u);
  Dropped all;
  for (int step = 0; step < steps; ++step) {
    all.steps.push_back(run.train({{"x", Floats(drawn_rows * columns, 1)}}));
    all.weights.push_back(run.state("weight"));
  }
  return all;
}

std::vector<bool> mask(const Floats& values) {
  std::vector<bool> zeros;
  for (const float v : values) zeros.push_back(v == 0);
  return zeros;
}

TEST(Dropout, LeavesOutTheSameInAnyLanesShardsAndByAnyWorkers) {
  const Dropped one = drop(1, {.lanes = 1});
  for (int workers = 1; workers <= 4; ++workers)
    EXPECT_EQ(drop(workers, {.lanes = 1}), one) << workers << " workers";
  const auto masks = [](const Dropped& of) {
    std::vector<std::vector<bool>> all;
    for (const auto& step : of.steps) {
      for (const Floats& output : step) all.push_back(mask(output));
    }
    return all;
  };
  for (const int lanes : {2, 3, 4})
    EXPECT_EQ(masks(drop(2, {.lanes = lanes})), masks(one)) << lanes;
  for (const int shards : {2, 4}) {
    for (const int at_once : {1, 2})
      EXPECT_EQ(masks(drop(2, {.shards = shards, .shards_at_once = at_once})), masks(one))
          << shards;
    EXPECT_EQ(drop(2, {.shards = shards, .shards_at_once = 1}),
              drop(3, {.shards = shards, .shards_at_once = shards}));
  }
}

TEST(Dropout, LeavesOutOthersInEachStepAndLayer) {
  const Dropped found = drop(1, {}, 25);
  std::vector<std::vector<bool>> masks;
  std::size_t zeros = 0, all = 0;
  for (const auto& step : found.steps) {
    for (const Floats& output : step) {
      masks.push_back(mask(output));
      zeros += static_cast<std::size_t>(std::ranges::count(masks.back(), true));
      all += output.size();
    }
  }
  ASSERT_EQ(all, 100'000u);
  // Five standard deviations.
  EXPECT_NEAR(static_cast<double>(zeros) / static_cast<double>(all), 0.2, 0.0064);
  std::ranges::sort(masks);
  EXPECT_EQ(std::ranges::adjacent_find(masks), masks.end());
  // What stays is divided by the rest; in the first step all are 1.
  for (const float v : found.steps.front().front()) EXPECT_TRUE(v == 0 || v == 1.25f) << v;
}

TEST(Dropout, HandsGradientsThroughWhatStays) {
  const Dropped found = drop(1, {.lanes = 2}, 1);
  for (std::size_t c = 0; c < columns; ++c) {
    double slope = 0;
    for (const Floats& output : found.steps.front()) {
      for (std::size_t n = 0; n < drawn_rows; ++n) slope += output[n * columns + c] == 0 ? 0 : 1.25;
    }
    EXPECT_NEAR(static_cast<double>(found.weights.front()[c]), 1 - 0.001 * slope, 1e-6);
  }
}

TEST(Dropout, ChangesNothingInAnEvaluation) {
  runtime::Session session({.workers = 1});
  ScriptModel run(session, dropping, {{"weight", Floats(columns, 2)}});
  const Floats x = random_floats(drawn_rows * columns, 6);
  Floats twice = x;
  for (float& v : twice) v *= 2;
  EXPECT_EQ(run.evaluate({{"x", x}}), (std::vector{twice, twice}));
  // Nor what training draws next.
  ScriptModel other(session, dropping, {{"weight", Floats(columns, 2)}});
  EXPECT_EQ(run.train({{"x", x}}), other.train({{"x", x}}));
}

TEST(Dropout, SayWhatARateIs) {
  EXPECT_EQ(testing::error_of([] {
              graph::parse(
                  "$1 = InputTensor(x, float32, [2, 4]); $2 = dropout($1, 1.5); result = $2;",
                  operators());
            }),
            "<script>:1:44: dropout: rate=1.5; expected a number from 0 to 1");
}

// ---- both layers, by the trainer

nn::Layer network() {
  return nn::sequential(nn::conv2d({.channels = 4, .kernel = 3, .bias = false}), nn::batch_norm(),
                        nn::relu(), nn::max_pool2d(2), nn::flatten(), nn::dense(16), nn::relu(),
                        nn::dropout(0.25), nn::dense(10));
}

struct Trained {
  std::string weights;
  double loss = 0, tested = 0;
};

Trained train_network(const data::ImageData& data, int workers, const train::TrainerOptions& how,
                      int epochs) {
  runtime::Session session({.workers = workers});
  train::Trainer trainer(session, network(), data.shape(), how);
  trainer.prepare(&data.train, &data.test);
  const long heap = runtime::heap_calls().value_or(0);
  const train::EpochReport report =
      trainer.fit(data.train, {.epochs = epochs, .validation = &data.test});
  EXPECT_EQ(runtime::heap_calls().value_or(0) - heap, 0);
  return {trainer.weights_sha256(), report.train.loss, report.validation->loss};
}

TEST(Modes, TrainANetworkOfBothWithoutAllocating) {
  ASSERT_EQ(runtime::heap_calls().has_value(), testing::heap_counted) << "run this through ctest";
  const data::ImageData data = data::synthetic({.seed = 3, .train = 333, .test = 77});
  const train::TrainerOptions how{.batch = 16,
                                  .optimizer = optim::sgd({.lr = 0.02f, .momentum = 0.9f}),
                                  .init = {.seed = 5, .range = {}},
                                  .lanes = 2};
  const int epochs = 12;
  const Trained one = train_network(data, 1, how, epochs);
  EXPECT_LT(one.loss, 1.5);
  EXPECT_LT(one.tested, 1.6);
  EXPECT_EQ(train_network(data, 2, how, epochs).weights, one.weights);
}

}  // namespace
}  // namespace arenite
