// The whole way through the house: train, evaluate, count, compare.
#include <arenite/arenite.hpp>

#include "src/base/testing.hpp"
#include "src/runtime/idle.hpp"
#include "src/runtime/starpu.hpp"
#include "src/train/compiled_step.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <thread>

namespace arenite {
namespace {

const data::ImageData& small_set() {
  // No multiples of any batch below: remainders everywhere.
  static const data::ImageData data =
      data::synthetic({.seed = 3, .train = ARENITE_CHECKED ? 141 : 333, .test = 77});
  return data;
}

train::TrainerOptions options(std::int64_t batch, int lanes,
                              plan::ArenaLayout layout = plan::ArenaLayout::overlay) {
  return {.batch = batch,
          .optimizer = optim::sgd({.lr = 0.02f, .momentum = 0.9f}),
          .init = {.seed = 5, .range = {}},
          .lanes = lanes,
          .layout = layout};
}

struct Outcome {
  train::EpochReport report;
  std::string sha256;
  std::int64_t peak = 0;  ///< bytes of a training step's transient values
};

Outcome train_once(const std::string& model, int workers, const train::TrainerOptions& how,
                   int epochs = 1) {
  runtime::Session session({.workers = workers});
  train::Trainer trainer(session, nn::model(model).layers, small_set().shape(), how);
  const auto report =
      trainer.fit(small_set().train, {.epochs = epochs, .validation = &small_set().test});
  std::int64_t peak = 0;
  for (const plan::Plan& packing : trainer.step_plan().packings) peak += packing.peak;
  return {report, trainer.weights_sha256(), peak};
}

/// Plain kernels under sanitizers would take minutes for the larger two.
std::vector<const char*> networks() {
  if (ARENITE_PLAIN_KERNELS) return {"mlp", "cnn1"};
  return {"mlp", "cnn1", "lenet5", "cnn2"};
}

/// Ops of an operator in a training step: `slice` takes rows of a weight or its velocity.
std::ptrdiff_t count(const char* op, const char* model, const train::TrainerOptions& how) {
  plan::StateLayout state;
  const auto step = train::compile_step(nn::model(model).layers, how.loss, how.optimizer,
                                        {.name = "step",
                                         .batch = how.batch,
                                         .dataset = how.batch,
                                         .image = small_set().shape(),
                                         .how = {.lanes = how.lanes, .target = how.target}},
                                        &state);
  const graph::Graph& graph = step.spec.graph;
  return std::ranges::count_if(graph[graph::Graph::body].ops,
                               [&](graph::OpId id) { return graph[id].name() == op; });
}

class Training : public ::testing::TestWithParam<const char*> {};

TEST_P(Training, LearnsTheSyntheticSet) {
  const bool deep = std::string(GetParam()) == "lenet5" || std::string(GetParam()) == "cnn2";
  const int epochs = (deep ? 5000 : 2000) / static_cast<int>(small_set().train.count);
  const Outcome outcome = train_once(GetParam(), 2, options(16, 2), epochs);
  EXPECT_EQ(outcome.report.train.samples,
            small_set().train.count);  // the remainder is used, not dropped
  EXPECT_EQ(outcome.report.validation->samples, small_set().test.count);
  EXPECT_GT(outcome.report.validation->accuracy, 0.5);
  EXPECT_LT(outcome.report.train.loss, 1.5);
}

TEST_P(Training, HasTheSameBitsForAnyNumberOfWorkersAndEitherLayout) {
  const Outcome one = train_once(GetParam(), 1, options(16, 2));
  // More workers than cores have another scheduler.
  for (int workers : {2, 3, 4})
    EXPECT_EQ(train_once(GetParam(), workers, options(16, 2)).sha256, one.sha256) << workers;
  EXPECT_EQ(train_once(GetParam(), 2, options(16, 2, plan::ArenaLayout::two)).sha256, one.sha256);
  // Another order of the same sums shows: the comparison is no empty one.
  EXPECT_NE(train_once(GetParam(), 1, options(16, 1)).sha256, one.sha256);
}

TEST_P(Training, RoundsFactorsAlikeForAnyNumberOfWorkers) {
  train::TrainerOptions rounded = options(16, 2);
  rounded.compute = runtime::Compute::bfloat16;
  const Outcome one = train_once(GetParam(), 1, rounded),
                unrounded = train_once(GetParam(), 1, options(16, 2));
  for (int workers : {2, 3}) {
    EXPECT_EQ(train_once(GetParam(), workers, rounded).sha256, one.sha256) << workers;
  }
  EXPECT_NE(unrounded.sha256, one.sha256);
  EXPECT_NEAR(one.report.train.loss, unrounded.report.train.loss,
              0.02 * unrounded.report.train.loss);
}

TEST_P(Training, LanesChangeRoundingOnly) {
  const Outcome one = train_once(GetParam(), 1, options(32, 1)),
                three = train_once(GetParam(), 1, options(32, 3));
  EXPECT_NEAR(one.report.train.loss, three.report.train.loss, 1e-3 * one.report.train.loss);
}

TEST_P(Training, FusionChangesRoundingOnlyAndSavesMemory) {
  train::TrainerOptions apart = options(32, 2);
  apart.fuse = false;
  const Outcome fused = train_once(GetParam(), 2, options(32, 2)),
                unfused = train_once(GetParam(), 2, apart);
  EXPECT_NEAR(fused.report.train.loss, unfused.report.train.loss, 1e-3 * unfused.report.train.loss);
  EXPECT_LT(fused.peak, unfused.peak);
  // Dense layers may happen to round alike.
  if (std::string(GetParam()) != "mlp") {
    EXPECT_NE(fused.sha256, unfused.sha256);
  }
}

TEST(TrainingStep, SplittingLargeUpdatesKeepsTheBits) {
  for (const char* model : networks()) {
    train::TrainerOptions split = options(64, 2), whole = split;
    split.target.task_microseconds = 1;  // all that has two tiles
    whole.target.task_microseconds = whole.target.meeting_microseconds = 1e9;
    // Updates alone: weights go from lane to lane in no time.
    split.target.handover_gigabytes = whole.target.handover_gigabytes = 1e9;
    EXPECT_GT(count("slice", model, split), 0) << model;
    EXPECT_EQ(count("slice", model, whole), 0) << model;
    const std::string expected = train_once(model, 1, whole).sha256;
    for (int workers : {1, 2, 4})
      EXPECT_EQ(train_once(model, workers, split).sha256, expected) << model << " " << workers;
  }
}

TEST(TrainingStep, LanesThatKeepPartsOfWeightsChangeRoundingOnly) {
  for (int batch : {10, 64}) {
    train::TrainerOptions parts = options(batch, 2), whole = parts;
    parts.target.meeting_microseconds = 0;
    whole.target.meeting_microseconds = 1e9;
    for (const char* model : networks()) {
      SCOPED_TRACE(model);
      // What has few samples and many outputs.
      const bool split = batch == 10 ? std::string(model) != "cnn1" : std::string(model) == "mlp";
      EXPECT_EQ(count("stack_columns", model, parts) > 0, split);
      EXPECT_EQ(count("stack_columns", model, whole), 0);
      const Outcome expected = train_once(model, 1, whole), one = train_once(model, 1, parts);
      EXPECT_NEAR(one.report.train.loss, expected.report.train.loss,
                  1e-3 * expected.report.train.loss);
      if (split) {
        EXPECT_NE(one.sha256, expected.sha256);
      }
      for (int workers : {2, 4})
        EXPECT_EQ(train_once(model, workers, parts).sha256, one.sha256) << workers;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Training, ::testing::ValuesIn(networks()));

TEST(TrainingStep, PrintsThePlanBeforeTheFirstStep) {
  runtime::Session session;
  train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(), options(16, 2));
  std::ostringstream before, after;
  before << trainer.plan();
  EXPECT_NE(before.str().find("not yet"), std::string::npos);
  trainer.prepare(&small_set().train, &small_set().test);
  after << trainer.plan();
  for (const char* word :
       {"forward", "backward", "max-live bound", "separately", "pinned", "input.1"}) {
    EXPECT_NE(after.str().find(word), std::string::npos) << word << "\n" << after.str();
  }
}

TEST(TrainingStep, ReportsALabelOutOfRange) {
  data::ImageData data = data::synthetic({.seed = 1, .train = 64, .test = 10});
  std::vector<std::uint8_t> labels(data.train.labels.begin(), data.train.labels.end());
  labels[40] = 11;
  data::Split broken = data.train;
  broken.labels = labels;
  runtime::Session session;
  train::Trainer trainer(session, nn::model("mlp").layers, data.shape(), options(16, 1));
  const auto error = [&] {
    return arenite::testing::error_of(
        [&] { trainer.fit(broken, {.epochs = 1, .shuffle = false}); });
  };
  EXPECT_EQ(error(), "label 11 of training image 40; expected 0 to 9, one of 10 classes");
  EXPECT_EQ(trainer.steps(), 0);
  // A set that claims 12 classes: the model's ten logits cannot hold label 11.
  broken.classes = 12;
  EXPECT_EQ(
      error(),
      "program 'train', step 2, softmax_cross_entropy 'loss1' (lane 0): label 11 of sample 8; "
      "expected 0 to 9, one of 10 classes");
  EXPECT_GE(trainer.steps(), 3);  // a step that fails counts too: its masks aren't drawn again
  EXPECT_NO_THROW(trainer.fit(data.train, {.epochs = 1}));  // the trainer is still usable
}

TEST(TrainingStep, KeepsParametersWhenANewSplitIsSeen) {
  runtime::Session session;
  train::Trainer trainer(session, nn::model("mlp").layers, small_set().shape(), options(16, 2));
  trainer.fit(small_set().train, {.epochs = 1});
  const std::string before = trainer.weights_sha256();
  const auto a = trainer.evaluate(small_set().test);  // a new program over the same blocks
  EXPECT_EQ(trainer.weights_sha256(), before);
  const auto b = trainer.evaluate(small_set().test);
  EXPECT_EQ(a.loss, b.loss);  // persistent buffers hold nothing over from the first evaluation
  EXPECT_EQ(a.accuracy, b.accuracy);
}

/// Says whether an action throws an Error that holds `words`.
template <class Action>
::testing::AssertionResult refuses(Action action, const std::string& words) {
  try {
    action();
  } catch (const Error& error) {
    if (std::string(error.what()).find(words) != std::string::npos)
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << error.what();
  }
  return ::testing::AssertionFailure() << "no error";
}

struct Trained : ::testing::Test {
  runtime::Session session{{.workers = 1}};
  train::Trainer trainer{session, nn::model("mlp").layers, small_set().shape(), options(16, 2)};
  const data::Split& train = small_set().train;
  const data::Split& test = small_set().test;
};

TEST_F(Trained, MayBeEvaluatedFirst) {
  const auto untrained = trainer.evaluate(test);
  EXPECT_EQ(untrained.samples, small_set().test.count);
  const auto report = trainer.fit(train, {.epochs = 1, .validation = &test});
  EXPECT_EQ(report.train.samples, small_set().train.count);
  train::Trainer fresh(session, nn::model("mlp").layers, small_set().shape(), options(16, 2));
  fresh.fit(train, {.epochs = 1, .validation = &test});
  EXPECT_EQ(trainer.weights_sha256(), fresh.weights_sha256());
}

TEST_F(Trained, KeepsMomentumWhenANewSplitIsSeen) {
  train::Trainer whole(session, nn::model("mlp").layers, small_set().shape(), options(16, 2));
  whole.fit(train, {.epochs = 2});
  trainer.fit(train, {.epochs = 1});
  trainer.evaluate(test);
  trainer.fit(train, {.epochs = 1});
  EXPECT_EQ(trainer.weights_sha256(), whole.weights_sha256());
}

TEST_F(Trained, IsAsItWasAfterARefusedSplit) {
  data::Split shape = test, labels = test, images = test, empty = test, none = test, many = test;
  shape.width = 27;
  labels.labels = labels.labels.first(70);
  images.images = images.images.first(images.images.size() - 1);
  empty.count = 0;
  none = {};
  many.count = std::int64_t{1} << 40;
  const auto refuse_all = [&] {
    for (const data::Split* bad : {&shape, &labels, &images, &empty, &none, &many}) {
      EXPECT_THROW(trainer.evaluate(*bad), Error);
      EXPECT_THROW(trainer.fit(train, {.epochs = 1, .validation = bad}), Error);
      EXPECT_THROW(trainer.fit(*bad, {.epochs = 1}), Error);
    }
  };
  refuse_all();  // before it saw any data
  EXPECT_TRUE(refuses([&] { trainer.evaluate(labels); }, "70 test labels; expected 77"));
  EXPECT_TRUE(
      refuses([&] { trainer.evaluate(images); }, "bytes of test images; expected 77 images"));
  EXPECT_TRUE(refuses([&] { trainer.evaluate(empty); }, "0 test images"));
  EXPECT_EQ(trainer.fit(train, {.epochs = 1}).train.samples, small_set().train.count);
  const std::string before = trainer.weights_sha256();
  refuse_all();
  EXPECT_EQ(trainer.weights_sha256(), before);
  trainer.fit(train, {.epochs = 1});
  train::Trainer whole(session, nn::model("mlp").layers, small_set().shape(), options(16, 2));
  whole.fit(train, {.epochs = 2});
  EXPECT_EQ(trainer.weights_sha256(), whole.weights_sha256());
}

TEST_F(Trained, MayBeEvaluatedBetweenEpochsAndWithinOne) {
  int evaluated = 0;
  train::FitOptions how{.epochs = 2};
  how.on_epoch = [&](const train::EpochReport&) {
    // A split that is new each time: the programs are built again under the running `fit`.
    EXPECT_EQ(trainer.evaluate(test.first(20 + evaluated)).samples, 20 + evaluated);
    ++evaluated;
  };
  EXPECT_EQ(trainer.fit(train, how).train.samples, small_set().train.count);
  EXPECT_EQ(evaluated, 2);

  train::FitOptions within{.epochs = 1, .progress_seconds = 0};
  within.on_progress = [&](const train::Progress&) { trainer.evaluate(test); };
  const train::Metrics last = trainer.fit(train, within).train;
  train::Trainer whole(session, nn::model("mlp").layers, small_set().shape(), options(16, 2));
  const train::Metrics expected = whole.fit(train, {.epochs = 3}).train;
  EXPECT_EQ(last.samples, small_set().train.count);
  EXPECT_EQ(last.values, expected.values);
  EXPECT_EQ(trainer.weights_sha256(), whole.weights_sha256());
}

TEST_F(Trained, ReportsAValidationWhenItIsStopped) {
  std::atomic<bool> stop = false;
  train::FitOptions how{.epochs = 3, .validation = &test, .progress_seconds = 0};
  how.on_progress = [&](const train::Progress&) { stop = true; };
  how.stop = &stop;
  const auto report = trainer.fit(train, how);
  EXPECT_EQ(report.epoch, 0);
  EXPECT_EQ(report.train.samples, 16);
  EXPECT_TRUE(report.validation);
}

TEST_F(Trained, EndsWithinAStepOfBeingStopped) {
  std::atomic<bool> stop = false;
  int after = 0;  // steps that began when `stop` was already true
  train::FitOptions how{.epochs = 1000, .progress_seconds = 0};
  bool seen = false;
  how.on_progress = [&](const train::Progress&) {
    after += seen ? 1 : 0;
    seen = stop;
  };
  how.stop = &stop;
  for (int round = 0; round < 20; ++round) {
    stop = seen = false;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1 + round));
      stop = true;
    });
    trainer.fit(train, how);
    other.join();
    // It may turn true between the callback and the look at it; then nothing begins.
    EXPECT_EQ(after, 0);
  }
  trainer.fit(train, {.epochs = 1});  // what is left of the last one
  how.on_progress = [&](const train::Progress& now) { stop = now.done == 5 * 16; };
  stop = false;
  const long before = trainer.steps();
  EXPECT_EQ(trainer.fit(train, how).train.samples, 5 * 16);
  EXPECT_EQ(trainer.steps(), before + 5);
}

TEST_F(Trained, TakesFiniteLearningRatesOnly) {
  EXPECT_THROW(trainer.set_learning_rate(std::nanf("")), Error);
  trainer.set_learning_rate(0);
  trainer.evaluate(test);  // has no learning rate
  const std::string before = trainer.weights_sha256();
  trainer.fit(train, {.epochs = 1});
  EXPECT_EQ(trainer.weights_sha256(), before);
}

TEST(Registration, AddsAllOrNothing) {
  const auto kernel = [](const char* name) {
    return runtime::Kernel{
        .name = name, .prepare = [](const graph::OpView&) { return runtime::PreparedKernel{}; }};
  };
  const auto definition = [] {
    return graph::OperatorDefinition{.name = "nothing_at_all", .infer = [](const graph::OpView&) {
                                       return std::vector<graph::ResultType>{};
                                     }};
  };
  EXPECT_TRUE(refuses(
      [&] {
        register_operator(definition(), {kernel("a"), {.name = "b"}});
      },
      "without `prepare`"));
  EXPECT_TRUE(refuses(
      [&] {
        register_operator(definition(), {kernel("a"), kernel("a")});
      },
      "registered twice"));
  EXPECT_FALSE(operators().find("nothing_at_all"));
  EXPECT_TRUE(kernels().find("nothing_at_all").empty());
  register_operator(definition(), {kernel("a"), kernel("b")});
  EXPECT_TRUE(operators().find("nothing_at_all"));
  EXPECT_TRUE(refuses([&] { register_operator(definition(), {kernel("c")}); }, "registered twice"));
  EXPECT_EQ(kernels().find("nothing_at_all").size(), 2u);
}

/// Sets a variable of the environment for a scope.
class Variable {
 public:
  Variable(const char* name, const char* text) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, text, 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Session, TakesExplicitWorkersFirst) {
  for (const char* text : {"64", "0", "abc", "", "3"}) {
    const Variable set("STARPU_NCPU", text);
    const Variable other("STARPU_NCUDA", "abc"), scheduler("STARPU_SCHED", "nosuch");
    runtime::Session first({.workers = 1});
    EXPECT_EQ(first.workers(), 1) << text;
    runtime::Session second;  // joins: what the environment says no longer matters
    EXPECT_EQ(second.workers(), 1) << text;
    EXPECT_STREQ(std::getenv("STARPU_NCPU"), text);
    EXPECT_STREQ(std::getenv("STARPU_NCUDA"), "abc");
  }
}

TEST(Session, AsksTheEnvironmentNext) {
  {
    const Variable set("STARPU_NCPU", "3");
    EXPECT_EQ(runtime::Session().workers(), 3);
  }
  for (const char* text : {"0", "-1", "abc", "2x", "99999999999999999999"}) {
    const Variable set("STARPU_NCPU", text);
    EXPECT_TRUE(refuses([] { runtime::Session(); }, std::string("STARPU_NCPU='") + text));
  }
  for (const char* text : {"x", "1-0", "0;1", "-1", "0-x"}) {
    const Variable set("STARPU_WORKERS_CPUID", text);
    EXPECT_TRUE(refuses([] { runtime::Session({.workers = 1}); }, "STARPU_WORKERS_CPUID='"));
  }
  for (const char* text : {"0", "0-", "0 0-0", ""}) {
    const Variable set("STARPU_WORKERS_CPUID", text);
    EXPECT_EQ(runtime::Session({.workers = 1}).workers(), 1) << text;
  }
}

/// The processors that the calling thread may run on.
cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

TEST(Session, KeepsItsWorkersWhereTheProcessMayRun) {
  const cpu_set_t before = affinity();
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &before)) --last;
  cpu_set_t one, worker;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  {
    const Variable workers("STARPU_NCPU", "");
    const runtime::Session session;
    EXPECT_EQ(session.workers(), 1);
    const runtime::IdleWatch::Submission awake(runtime::idle_watch());
    starpu_execute_on_each_worker([](void* set) { *static_cast<cpu_set_t*>(set) = affinity(); },
                                  &worker, STARPU_CPU);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_TRUE(CPU_EQUAL(&worker, &one));
}

TEST(Session, IsOneForTheProcess) {
  runtime::Session first({.workers = 1});
  runtime::Session second;  // joins
  EXPECT_EQ(second.workers(), 1);
  EXPECT_THROW(runtime::Session({.workers = 2}), Error);
  EXPECT_THROW(runtime::Session({.workers = -1}), Error);
}

}  // namespace
}  // namespace arenite
