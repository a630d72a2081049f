// What steps ask of the system once their program is built: nothing, for every network.
//
// Networks whose steps are long make an epoch of them here, and a thousand where ctest's label is
// slow.
#include <arenite/arenite.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/heap_counted.hpp"
#include "tests/networks.hpp"
#include "tests/optimizers.hpp"
#include "tests/passing_layer.hpp"

#include <cstddef>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

namespace arenite {
namespace {

// An epoch is 83 whole batches and a remainder of two images, its evaluation 19 and one.
constexpr data::SyntheticOptions small{.seed = 3, .train = 334, .test = 78};
constexpr long epoch_steps = 84, evaluation_steps = 20;

train::TrainerOptions options() { return {.batch = 4, .lanes = 2}; }

struct NoAllocation : ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(NoAllocation, AfterWarmUp) {
  const auto& [network, workers] = GetParam();
  const data::ImageData data = testing::drawn_images(network, small);
  // Heap calls are not counted where steps are slow, too.
  const bool few = !testing::heap_counted || testing::has_long_steps(network, data.shape());
  const int epochs = few ? 1 : 12;

  runtime::Session session({.workers = workers});
  train::Trainer trainer(session, nn::model(network).layers, data.shape(), options());
  trainer.prepare(&data.train, &data.test);  // all the warm-up there is
  ASSERT_EQ(runtime::heap_calls().has_value(), testing::heap_counted) << "run this through ctest";
  const runtime::Counters before = runtime::counters();
  const long heap = runtime::heap_calls().value_or(0), maps = runtime::map_calls().value_or(0);
  // What lies between the epochs allocates nothing either.
  trainer.fit(data.train, {.epochs = epochs, .validation = &data.test});
  EXPECT_EQ(runtime::heap_calls().value_or(0) - heap, 0);
  EXPECT_EQ(runtime::map_calls().value_or(0) - maps, 0);
  const runtime::Counters after = runtime::counters();
  EXPECT_EQ(after.handles, before.handles);
  EXPECT_EQ(after.blocks, before.blocks);
  EXPECT_EQ(after.pins, before.pins);
  EXPECT_EQ(after.tasks, before.tasks);

  const train::StepCosts costs = trainer.costs();
  EXPECT_EQ(costs.training_steps, epoch_steps * epochs);
  EXPECT_EQ(costs.evaluation_steps, evaluation_steps * epochs);
  EXPECT_EQ(costs.heap_calls.has_value(), testing::heap_counted);
  EXPECT_EQ(costs.heap_calls.value_or(0), 0);
  EXPECT_EQ(costs.map_calls.value_or(0), 0);
}

INSTANTIATE_TEST_SUITE_P(Networks, NoAllocation,
                         ::testing::Combine(::testing::ValuesIn(testing::networks()),
                                            ::testing::Values(1, 2)),
                         [](const auto& one) {
                           return testing::case_name(std::get<0>(one.param)) + "_with_" +
                                  std::to_string(std::get<1>(one.param));
                         });

TEST(Optimizers, AllocateNothing) {
  const data::ImageData data = testing::drawn_images("mlp", small);
  runtime::Session session({.workers = 1});
  for (const optim::Optimizer& optimizer : testing::optimizers()) {
    train::TrainerOptions own = options();
    own.optimizer = optimizer;
    own.optimizer.schedule = optim::schedule("linear", {{"steps", std::int64_t{50}}});
    own.optimizer.clip_norm = 1;
    train::Trainer trainer(session, nn::model("mlp").layers, data.shape(), own);
    trainer.prepare(&data.train, nullptr);
    const long heap = runtime::heap_calls().value_or(0);
    trainer.fit(data.train, {.epochs = 1});
    EXPECT_EQ(runtime::heap_calls().value_or(0) - heap, 0) << optimizer.optimizer->name;
  }
}

// Of other samples each time, too, and between epochs.
TEST(Predictions, AllocateNothingAfterTheFirst) {
  const data::ImageData data = testing::drawn_images("mlp", small);
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, nn::model("mlp").layers, data.shape(), options());
  trainer.prepare(&data.train, &data.test);
  const Samples test = data::samples_of(data.test), train = data::samples_of(data.train);
  const auto bytes = [&](const Samples& samples) {
    return static_cast<std::size_t>(trainer.shape_of_predictions(samples.count()).elements()) *
           sizeof(float);
  };
  std::vector<std::byte> of_test(bytes(test)), of_train(bytes(train));
  trainer.predict(test, of_test);
  const long heap = runtime::heap_calls().value_or(0), maps = runtime::map_calls().value_or(0);
  const runtime::Counters before = runtime::counters();
  trainer.predict(train, of_train);
  trainer.fit(data.train, {.epochs = 1, .validation = &data.test});
  trainer.predict(test, of_test);
  EXPECT_EQ(runtime::heap_calls().value_or(0) - heap, 0);
  EXPECT_EQ(runtime::map_calls().value_or(0) - maps, 0);
  EXPECT_EQ(runtime::counters().handles, before.handles);
}

TEST(Steps, AllocateNothingAfterTheFirstOfTheirSize) {
  const data::ImageData data = testing::drawn_images("mlp", small);
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, nn::model("mlp").layers, data.shape(), options());
  const Samples four = data::samples_of(data.train.first(4)),
                three = data::samples_of(data.test.first(3));
  trainer.step(four);
  trainer.step(three);
  const long heap = runtime::heap_calls().value_or(0), maps = runtime::map_calls().value_or(0);
  for (int i = 0; i < 3; ++i) {
    trainer.step(four);
    trainer.step(three);
  }
  EXPECT_EQ(runtime::heap_calls().value_or(0) - heap, 0);
  EXPECT_EQ(runtime::map_calls().value_or(0) - maps, 0);
}

TEST(MoreWorkersThanCores, MakeAtMostOneHeapCall) {
  // StarPU's central queue has a bitmap of waiting workers that grows once, to eight bytes, when
  // one of them first finds the queue emptied by another.
  const data::ImageData data = data::synthetic(small);
  runtime::Session session({.workers = 4});
  train::Trainer trainer(session, nn::model("cnn1").layers, data.shape(), options());
  trainer.fit(data.train, {.epochs = testing::heap_counted ? 12 : 1});
  EXPECT_LE(trainer.costs().heap_calls.value_or(0), 1);
  EXPECT_EQ(trainer.costs().map_calls.value_or(0), 0);
}

/// Two heap calls and two mappings.
void allocate() {
  void* volatile bytes = std::malloc(64);
  std::free(bytes);
  munmap(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
}

/// A network with one operator that allocates.
struct AllocatingOperator : ::testing::Test {
  void SetUp() override {
    if (!testing::heap_counted) GTEST_SKIP() << "a sanitizer has the heap";
    ASSERT_TRUE(runtime::heap_calls()) << "run this through ctest";
  }
  const data::ImageData data = data::synthetic(small);
  runtime::Session session{{.workers = 2}};
  train::Trainer trainer{
      session,
      nn::sequential(nn::flatten(), nn::dense(16), testing::passing_layer<allocate>("allocating"),
                     nn::relu(), nn::dense(10)),
      data.shape(), options()};
};

TEST_F(AllocatingOperator, IsCountedExactly) {
  long steps = 0;
  for (int epochs : {1, 2}) {
    trainer.fit(data.train, {.epochs = epochs, .validation = &data.test});
    steps += (epoch_steps + evaluation_steps) * epochs;
    const train::StepCosts costs = trainer.costs();
    EXPECT_EQ(costs.training_steps + costs.evaluation_steps, steps);
    EXPECT_EQ(costs.heap_calls, 2 * 2 * steps);  // in either lane
    EXPECT_EQ(costs.map_calls, 2 * 2 * steps);
  }
}

TEST_F(AllocatingOperator, IsToldFromWhatADisplayAllocates) {
  train::FitOptions how{.epochs = 2, .progress_seconds = 0};
  how.on_progress = [](const train::Progress&) { allocate(); };
  how.on_epoch = [](const train::EpochReport&) { allocate(); };
  trainer.fit(data.train, how);
  EXPECT_EQ(trainer.costs().training_steps, 2 * epoch_steps);
  EXPECT_EQ(trainer.costs().heap_calls, 2 * 2 * 2 * epoch_steps);
}

TEST(WarmUp, IsWhenAProgramIsBuilt) {
  const data::ImageData data = data::synthetic(small);
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, nn::model("mlp").layers, data.shape(), options());
  trainer.fit(data.train, {.epochs = 1});
  const runtime::Counters before = runtime::counters();
  trainer.evaluate(data.test);  // not seen before
  const runtime::Counters after = runtime::counters();
  EXPECT_GT(after.handles, before.handles);
  EXPECT_GT(after.blocks, before.blocks);
  EXPECT_GT(after.pins, before.pins);
  EXPECT_GT(after.tasks, before.tasks);
  EXPECT_EQ(trainer.costs().heap_calls.value_or(0), 0);  // but no step of it counts
}

}  // namespace
}  // namespace arenite
