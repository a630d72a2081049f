// Shards: the same bits for any number of workers and of shards under way, remainders included.
#include <arenite/arenite.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "src/base/testing.hpp"

#include "tests/optimizers.hpp"

namespace arenite {
namespace {

/// A convolution whose gradients are sums of shards, and a layer whose weight's gradient all shards
/// add to at once, as it is larger than what makes it.
nn::Layer network() {
  return nn::sequential(nn::conv2d({.channels = 4, .kernel = 3}), nn::relu(),
                        nn::max_pool2d({.kernel = 2}), nn::flatten(), nn::dense(70), nn::relu(),
                        nn::dense(10));
}

const data::ImageData& images() {
  static const data::ImageData data = data::synthetic({.seed = 4, .train = 43, .test = 21});
  return data;
}

struct Outcome {
  std::string weights;
  double loss = 0, tested = 0;
  std::int64_t bytes = 0;  ///< of a step's transient values

  friend bool operator==(const Outcome& a, const Outcome& b) {
    return a.weights == b.weights && a.loss == b.loss && a.tested == b.tested;
  }
};

Outcome train(int workers, const train::TrainerOptions& options) {
  runtime::Session session({.workers = workers});
  train::Trainer trainer(session, network(), images().shape(), options);
  const train::EpochReport report =
      trainer.fit(images().train, {.epochs = 2, .validation = &images().test});
  Outcome outcome{trainer.weights_sha256(), report.train.loss, report.validation->loss};
  for (const plan::Plan& packing : trainer.step_plan().packings) outcome.bytes += packing.peak;
  return outcome;
}

TEST(Shards, GiveTheSameBitsWhateverIsUnderWay) {
  for (const int shards : {1, 2, 4, 8}) {
    for (const std::int64_t batch : {16, 13}) {  // both leave a remainder, of 11 and 4 samples
      const train::TrainerOptions options{.batch = batch, .shards = shards, .lanes = 1};
      const Outcome expected = train(1, options);
      for (const int at_once : {1, 2, 3, 8}) {
        for (const int workers : {1, 2}) {
          train::TrainerOptions other = options;
          other.shards_at_once = at_once;
          EXPECT_EQ(train(workers, other), expected)
              << shards << " shards of " << batch << ", " << at_once << " at once, " << workers;
        }
      }
    }
  }
}

/// With a schedule and gradients that are cut, which both ask for more of a step.
TEST(Shards, GiveTheSameBitsWithAnyOptimizer) {
  for (const optim::Optimizer& optimizer : testing::optimizers()) {
    train::TrainerOptions options{.batch = 16, .optimizer = optimizer, .shards = 4};
    options.optimizer.schedule = optim::schedule("cosine", {{"steps", std::int64_t{6}}});
    options.optimizer.clip_norm = 0.5;
    options.shards_at_once = 1;
    const Outcome expected = train(1, options);
    for (const int workers : {2, 4}) {
      options.shards_at_once = workers;
      EXPECT_EQ(train(workers, options), expected)
          << optimizer.optimizer->name << " with " << workers;
    }
  }
}

TEST(Shards, AreCutInLanes) {
  const train::TrainerOptions options{.batch = 16, .shards = 2, .lanes = 2, .shards_at_once = 2};
  const Outcome expected = train(2, options);
  train::TrainerOptions other = options;
  other.shards_at_once = 1;
  EXPECT_EQ(train(1, other), expected);
  other.lanes = 1;
  EXPECT_FALSE(train(1, other) == expected);  // another order of sums
}

TEST(Shards, ThatFollowOthersNeedFewerBytes) {
  std::vector<std::int64_t> bytes;
  for (const int at_once : {1, 2, 4})
    bytes.push_back(train(1, {.batch = 32, .shards = 4, .shards_at_once = at_once}).bytes);
  EXPECT_LT(bytes[0], bytes[1]);
  EXPECT_LT(bytes[1], bytes[2]);
  // As many as there are workers, unless somebody says.
  EXPECT_EQ(train(1, {.batch = 32, .shards = 4}).bytes, bytes[0]);
  EXPECT_EQ(train(2, {.batch = 32, .shards = 4}).bytes, bytes[1]);
}

TEST(Shards, AreMoreThanSamplesAtMostOnce) {
  runtime::Session session({.workers = 1});
  const train::Trainer trainer(session, network(), images().shape(), {.batch = 3, .shards = 8});
  EXPECT_EQ(trainer.shards(), 3);
  EXPECT_EQ(trainer.shards_at_once(), 1);
  EXPECT_EQ(trainer.lanes(), 1);
}

TEST(Shards, RefuseNumbersThatThereAreNot) {
  runtime::Session session({.workers = 1});
  const auto refused = [&](const train::TrainerOptions& options) {
    return testing::error_of(
        [&] { const train::Trainer trainer(session, network(), images().shape(), options); });
  };
  EXPECT_EQ(refused({.shards = 65}), "65 shards; expected 1 to 64, or 0 to choose");
  EXPECT_EQ(refused({.lanes = -1}), "-1 lanes; expected 1 to 64, or 0 to choose");
  EXPECT_EQ(refused({.shards_at_once = 65}), "65 shards at once; expected 1 to 64, or 0 to choose");
  EXPECT_EQ(refused({.shards = 16, .lanes = 8}),
            "16 shards of 8 lanes; expected at most 64 lanes in all");
}

TEST(Shards, LeaveABatchOfOneSampleAlone) {
  runtime::Session session({.workers = 1});
  Model model(session,
              graph::parse(R"(
      $1 = InputTensor(x, float32, [1, 5]);
      $2 = ParameterTensor(w, float32, [5, 1]);
      $3 = dense($1, $2);
      train($3, optimizer=sgd, learning_rate=0.1, parameters=[$2]);
      result = $3;)",
                           operators()),
              {}, {.shards = 4});
  EXPECT_TRUE(model.is_trainable());
}

}  // namespace
}  // namespace arenite
