// Samples that count as their weights say.
#include <gtest/gtest.h>

#include "tests/houses.hpp"

namespace arenite {
namespace {

using namespace testing;

constexpr std::int64_t count = 40;

struct Weighted {
  std::vector<float> sizes, weights;
  std::vector<std::int32_t> kinds;

  Weighted() {
    std::mt19937 engine(3);
    std::uniform_real_distribution<float> size(-1, 1);
    for (std::int64_t i = 0; i < count; ++i) {
      for (int k = 0; k < 3; ++k) sizes.push_back(size(engine));
      kinds.push_back(static_cast<std::int32_t>(i % 4));
      weights.push_back(i % 5 == 0 ? 0 : static_cast<float>(i % 3) + 0.5f);
    }
  }
  Samples rows(std::int64_t begin, std::int64_t rows) const {
    const auto at = static_cast<std::size_t>(begin);
    return {{{"sizes", sizes.data() + 3 * at, DType::float32, {rows, 3}},
             {"kinds", kinds.data() + at, DType::int32, {rows}},
             {"weights", weights.data() + at, DType::float32, {rows}}}};
  }
};

train::Objective kind(ModelBuilder& model, std::int64_t batch) {
  const ValueId sizes = model.input("sizes", {batch, 3}),
                kinds = model.input("kinds", {batch}, DType::int32),
                weights = model.input("weights", {batch}),
                logits = nn::dense(4)(model, dense_relu(model, sizes, 8));
  const nn::LossValues loss = nn::weighted_cross_entropy(model, logits, kinds, weights, batch);
  return {.loss = loss.value, .metrics = {{"loss", loss.statistics}}, .predictions = logits};
}

TEST(SampleWeights, MultiplyLosses) {
  const Weighted all;
  runtime::Session session({.workers = 2});
  for (const int shards : {1, 4}) {
    train::TrainerOptions how = options(16);
    how.shards = shards;
    train::Trainer trainer(session, kind, how);
    last_of(trainer, 3, all.rows(0, count));
    double sum = 0;  // of each alone, with its weight
    for (std::int64_t i = 0; i < count; ++i) {
      const double one = trainer.evaluate(all.rows(i, 1)).loss;
      const float weight = all.weights[static_cast<std::size_t>(i)];
      EXPECT_EQ(one == 0, weight == 0) << i;
      sum += one;
    }
    EXPECT_NEAR(trainer.evaluate(all.rows(0, count)).loss, sum / count, 1e-5);
  }
}

TEST(SampleWeights, OfZeroTrainNothing) {
  Weighted all;
  all.weights.assign(count, 0);
  all.kinds.assign(count, -7);  // which nobody looks at
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, kind, options(16));
  const auto values = [&] {
    std::vector<float> found;
    for (const auto& parameter : trainer.parameters())
      found.insert(found.end(), parameter.values.begin(), parameter.values.end());
    return found;
  };
  trainer.evaluate(all.rows(0, count));  // which builds it
  const std::vector<float> before = values();
  EXPECT_EQ(last_of(trainer, 2, all.rows(0, count)).loss, 0);
  EXPECT_EQ(values(), before);
}

}  // namespace
}  // namespace arenite
