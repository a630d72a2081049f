// Networks of any inputs, losses and metrics, trained on samples of any type.
#include <arenite/arenite.hpp>

#include <gtest/gtest.h>

#include "tests/houses.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace arenite {
namespace {

using namespace testing;

TEST(Objectives, TwoInputsAreRegressedOnTheirTargets) {
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, price, options());
  const Samples samples = houses().samples();
  const train::Metrics before = trainer.evaluate(samples);
  const train::Metrics last = last_of(trainer, 60, samples);
  EXPECT_EQ(last.samples, Houses::count);
  EXPECT_GT(before.loss, 1);
  EXPECT_LT(last.loss, 0.01);
  EXPECT_TRUE(std::isnan(last.accuracy));
  const train::Metrics now = trainer.evaluate(samples);
  EXPECT_EQ(now["loss"], now.loss);
  EXPECT_LT(now["mae"], std::sqrt(now.loss) + 1e-6);
  EXPECT_GT(now["near"], 0.8);
  EXPECT_LE(now["near"], 1);
  try {
    static_cast<void>(now["mea"]);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no metric 'mea'; expected loss, mae, near");
  }
}

// By hand, from the parameters that were trained: in whole batches and what is left.
TEST(Objectives, MetricsAreMeansOfAllSamples) {
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, price, options());
  last_of(trainer, 3, houses().samples());
  const train::Metrics found = trainer.evaluate(houses().samples());
  std::vector<std::span<float>> p;
  for (const auto& parameter : trainer.parameters()) p.push_back(parameter.values);
  ASSERT_EQ(p.size(), 6U);
  double loss = 0, mae = 0;
  for (std::size_t i = 0; i < Houses::count; ++i) {
    double guess = p[5][0];
    for (std::size_t h = 0; h < 16; ++h) {
      double of_sizes = p[1][h], of_places = p[3][h];
      for (std::size_t k = 0; k < 3; ++k) of_sizes += houses().sizes[i * 3 + k] * p[0][k * 16 + h];
      for (std::size_t k = 0; k < 2; ++k)
        of_places += houses().places[i * 2 + k] / 255.0 * p[2][k * 16 + h];
      guess += (std::max(of_sizes, 0.0) + std::max(of_places, 0.0)) * p[4][h];
    }
    const double d = guess - houses().prices[i];
    loss += d * d / Houses::count;
    mae += std::abs(d) / Houses::count;
  }
  EXPECT_NEAR(found.loss, loss, 1e-5 * loss);
  EXPECT_NEAR(found["mae"], mae, 1e-5 * mae);
  // So few are copied; a sweep over themselves gives the same bits.
  const Samples all = houses().samples();
  trainer.prepare(nullptr, &all);
  const train::Metrics again = trainer.evaluate(all);
  EXPECT_EQ(again.loss, found.loss);
  EXPECT_EQ(again["mae"], found["mae"]);
  EXPECT_EQ(again.samples, found.samples);
}

TEST(Objectives, HaveTheSameBitsForAnyWorkersAndShardsAtOnce) {
  std::string first;
  for (const int workers : {1, 2, 3}) {
    for (const int at_once : {1, 4}) {
      runtime::Session session({.workers = workers});
      train::TrainerOptions how = options();
      how.shards = 4;
      how.shards_at_once = at_once;
      train::Trainer trainer(session, price, how);
      last_of(trainer, 2, houses().samples());
      EXPECT_TRUE(trainer.undivided().empty()) << trainer.undivided();
      if (first.empty()) first = trainer.weights_sha256();
      EXPECT_EQ(trainer.weights_sha256(), first) << workers << ", " << at_once;
    }
  }
}

TEST(Objectives, GoOnInTheMiddleOfAnEpoch) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("arenite_objective." + std::to_string(getpid()));
  runtime::Session session({.workers = 2});
  train::Trainer whole(session, price, options());
  const train::Metrics expected = last_of(whole, 3, houses().samples());
  train::Trainer stopped(session, price, options());
  std::atomic<bool> stop = false;
  stopped.fit(houses().samples(), {.epochs = 3,
                                   .on_save =
                                       [&] {
                                         stopped.save(file);
                                         stop = true;
                                       },
                                   .save_steps = 10,
                                   .stop = &stop});
  train::Trainer other(session, price, options());
  EXPECT_EQ(other.resume(file), "");
  const train::Metrics found = last_of(other, 2, houses().samples());
  EXPECT_EQ(other.weights_sha256(), whole.weights_sha256());
  EXPECT_EQ(found.values, expected.values);
  std::filesystem::remove(file);
}

// A loop of one's own over events, with evaluations in between, ends in the bits of `fit`.
TEST(Events, LeadThroughEpochsStepByStep) {
  const Samples samples = houses().samples();
  runtime::Session session({.workers = 2});
  train::Trainer whole(session, price, options());
  const train::EpochReport expected = whole.fit(samples, {.epochs = 2, .validation = &samples});
  train::Trainer trainer(session, price, options());
  EXPECT_FALSE(trainer.advance());
  trainer.begin(samples, {.epochs = 2, .validation = &samples});
  std::vector<std::int64_t> done;
  int epochs = 0;
  while (const train::Event event = trainer.advance({.steps = 3})) {
    done.push_back(event.progress.done);
    EXPECT_FALSE(event.stopped);
    if (event.kind == train::Event::Kind::epoch) {
      EXPECT_EQ(event.report.epoch, epochs++);
      EXPECT_TRUE(event.report.validation);
      if (epochs == 2) {
        EXPECT_EQ(event.report.train.values, expected.train.values);
        EXPECT_EQ(event.report.validation->values, expected.validation->values);
      }
    } else {
      static_cast<void>(trainer.evaluate(samples));
    }
  }
  // Six whole batches of 32 and one of 11.
  EXPECT_EQ(done, (std::vector<std::int64_t>{96, 192, 203, 96, 192, 203}));
  EXPECT_EQ(epochs, 2);
  EXPECT_EQ(trainer.weights_sha256(), whole.weights_sha256());
}

// What is due at the end of an epoch is saved before it is validated.
TEST(Events, SaveBeforeTheEpochEnds) {
  const Samples samples = houses().samples();
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, price, options());
  std::vector<std::string> calls;
  trainer.fit(samples, {.epochs = 2,
                        .validation = &samples,
                        .on_first_step =
                            [&] { calls.push_back("first of " + std::to_string(trainer.steps())); },
                        .on_epoch = [&](const train::EpochReport&) { calls.emplace_back("epoch"); },
                        .on_save =
                            [&] {
                              calls.push_back("save at " + std::to_string(trainer.steps()) + ", " +
                                              std::to_string(trainer.costs().evaluation_steps));
                            },
                        .save_steps = 7});
  EXPECT_EQ(calls, (std::vector<std::string>{"first of 1", "save at 7, 0", "epoch", "save at 14, 7",
                                             "epoch"}));
}

// What fits in the blocks that there are is added to them.
TEST(Trainers, EvaluateMoreSamplesInTheBlocksThatThereAre) {
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, price, options());
  std::vector<Houses> sets(4);
  trainer.fit(sets[0].samples(), {.epochs = 1});
  const double expected = trainer.evaluate(sets[1].samples()).loss;
  const long blocks = runtime::counters().blocks;
  for (std::size_t i = 2; i < sets.size(); ++i)
    EXPECT_EQ(trainer.evaluate(sets[i].samples()).loss, expected);
  EXPECT_EQ(runtime::counters().blocks, blocks);
}

// Nothing gets better at such a rate: it falls behind every second epoch, to the least.
TEST(Events, LowerTheRateOnAPlateau) {
  runtime::Session session({.workers = 1});
  train::TrainerOptions how = options();
  how.optimizer.learning_rate = 1e-30;
  train::Trainer trainer(session, price, how);
  const Samples samples = houses().samples();
  std::vector<float> rates;
  train::FitOptions fit{.epochs = 9, .validation = &samples};
  fit.plateau = {.patience = 2, .factor = 0.5f, .least = 2e-31f};
  fit.on_epoch = [&](const train::EpochReport& report) { rates.push_back(report.learning_rate); };
  trainer.fit(samples, fit);
  EXPECT_EQ(rates, (std::vector<float>{1e-30f, 1e-30f, 1e-30f, 0.5e-30f, 0.5e-30f, 0.25e-30f,
                                       0.25e-30f, 2e-31f, 2e-31f}));
  EXPECT_EQ(trainer.learning_rate(), 2e-31f);
  const auto bytes = trainer.state("learning_rate");
  float kept = 0;
  std::memcpy(&kept, bytes.data(), sizeof kept);
  EXPECT_EQ(kept, 2e-31f);
  fit.plateau.factor = 1.5f;
  EXPECT_EQ(
      refusal_of([&] { trainer.fit(samples, fit); }),
      "a plateau of 2 epochs, times 1.500000, at least 0.000000; expected 0 or more epochs, a "
      "factor of 0 to 1, and a rate of at least 0");
}

TEST(Events, EndWhereTrainingIsStopped) {
  const Samples samples = houses().samples();
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, price, options());
  std::atomic<bool> stop = false;
  trainer.begin(samples, {.epochs = 3, .stop = &stop});
  // However short the time, a step is made.
  const std::int64_t done = trainer.advance({.seconds = 1e-12}).progress.done;
  EXPECT_GT(done, 0);
  EXPECT_EQ(trainer.advance({.steps = 1}).progress.done, done + 32);
  stop = true;
  const train::Event event = trainer.advance();
  EXPECT_EQ(event.kind, train::Event::Kind::epoch);
  EXPECT_TRUE(event.stopped);
  EXPECT_EQ(event.report.train.samples, done + 32);
  EXPECT_FALSE(trainer.advance());
  stop = false;
  // A fit over the same samples goes on where it was.
  train::Trainer whole(session, price, options());
  trainer.fit(samples, {.epochs = 1});
  whole.fit(samples, {.epochs = 1});
  EXPECT_EQ(trainer.weights_sha256(), whole.weights_sha256());
  try {
    trainer.fit(samples, {.epochs = 1,
                          .on_progress = [&](const train::Progress&) { trainer.fit(samples); },
                          .progress_seconds = 0});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a fit in a callback of another one; expected one behind the other");
  }
}

/// Sequences of tokens, of which it is told how many are even: one-hot, then a mean of embeddings.
train::Objective counted(ModelBuilder& model, std::int64_t batch) {
  const ValueId tokens = model.input("tokens", {batch, 8, 1}, DType::int32),
                labels = model.input("labels", {batch}, DType::int32),
                places = model.graph().add1("full", {}, {{"shape", std::vector<std::int64_t>{10}}});
  const ValueId one_hot = model.graph().add1(
      "map", {tokens, places}, {{"expression", "yield select(int64($1) == index(2), 1, $2)"}});
  const ValueId counts =
      model.graph().add1("reduce", {one_hot},
                         {{"axes", std::vector<std::int64_t>{1}}, {"expression", "yield sum($1)"}});
  const ValueId logits = nn::dense(9)(model, dense_relu(model, counts, 32));
  const nn::LossValues loss = nn::cross_entropy()(model, logits, labels, batch);
  return {.loss = loss.value,
          .metrics = {{"loss", loss.statistics}, {"accuracy", loss.statistics, 1}},
          .predictions = logits};
}

TEST(Objectives, SequencesOfTokensAreIntegers) {
  std::mt19937 engine(3);
  std::uniform_int_distribution<std::int64_t> token(0, 9);
  std::vector<std::int64_t> tokens(600 * 8), labels(600);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    for (std::size_t k = 0; k < 8; ++k) labels[i] += (tokens[i * 8 + k] = token(engine)) % 2 == 0;
  }
  Samples samples{{{"tokens", tokens.data(), DType::int64, {600, 8, 1}},
                   {"labels", labels.data(), DType::int64, {600}}}};
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, counted, options());
  EXPECT_GT(last_of(trainer, 30, samples).accuracy, 0.9);
  EXPECT_EQ(trainer.evaluate(samples).accuracy, trainer.evaluate(samples)["accuracy"]);
  // A label that int32 does not hold is none of another sample.
  labels[17] = (std::int64_t{1} << 32) + 1;
  try {
    trainer.fit(samples, {.epochs = 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("an integer beyond those of the type"),
              std::string::npos)
        << error.what();
  }
}

TEST(Objectives, AnAutoencoderHasItsInputForATarget) {
  const data::ImageData data = data::synthetic({.train = 600, .test = 10});
  Samples samples = data::samples_of(data.train);
  samples.columns.pop_back();
  const train::Build build = [](ModelBuilder& model, std::int64_t batch) {
    const ValueId images = model.input("images", {batch, 28, 28, 1}),
                  flat = nn::flatten()(model, images), code = dense_relu(model, flat, 32),
                  again = nn::dense(784)(model, code);
    return train::Objective{.loss = nn::mse()(model, again, flat), .predictions = again};
  };
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, build, options());
  const double before = trainer.evaluate(samples).loss;
  EXPECT_LT(last_of(trainer, 10, samples).loss, before / 3);
}

TEST(Objectives, SeveralLabelsMayHold) {
  std::mt19937 engine(5);
  std::normal_distribution<float> number;
  std::vector<float> x(500 * 6);
  std::vector<std::uint8_t> y(500 * 3);
  for (float& one : x) one = number(engine);
  for (std::size_t i = 0; i < 500; ++i) {
    for (std::size_t k = 0; k < 3; ++k) y[i * 3 + k] = x[i * 6 + k] + x[i * 6 + k + 3] > 0;
  }
  const Samples samples{
      {{"x", x.data(), DType::float32, {500, 6}}, {"y", y.data(), DType::uint8, {500, 3}}}};
  const train::Build build = [](ModelBuilder& model, std::int64_t batch) {
    const ValueId in = model.input("x", {batch, 6}), out = model.input("y", {batch, 3}),
                  logits = nn::dense(3)(model, in);
    return train::Objective{
        .loss = nn::binary_cross_entropy()(model, logits, out),
        .metrics = {{.name = "right",
                     .sums = nn::sum_over(model, {logits, out}, "($1 > 0) == ($2 > 0.5)"),
                     .each = 3}},
        .predictions = logits};
  };
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, build, options());
  EXPECT_GT(last_of(trainer, 20, samples)["right"], 0.95);
}

std::string refusal(const train::Build& build, const Samples& samples) {
  try {
    runtime::Session session({.workers = 1});
    train::Trainer trainer(session, build, options());
    trainer.fit(samples);
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

TEST(Objectives, HaveTheSameMetricsForAllBatches) {
  const auto build = [](ModelBuilder& model, std::int64_t batch) {
    train::Objective objective = price(model, batch);
    if (batch < 32) objective.metrics.pop_back();
    return objective;
  };
  EXPECT_EQ(refusal(build, houses().samples()),
            "metrics loss, mae of a batch of 11; expected the same as of a whole batch: loss, mae, "
            "near");
}

TEST(Objectives, RefuseWhatDoesNotMatch) {
  const Houses& all = houses();
  Samples samples = all.samples();
  samples.columns.pop_back();
  EXPECT_EQ(refusal(price, samples),
            "samples without a column 'prices'; expected one for each input");
  samples = all.samples();
  samples.columns[0].shape = {Houses::count, 2};
  EXPECT_EQ(refusal(price, samples),
            "samples [2] of column 'sizes'; expected [3], as the input has");
  samples = all.samples();
  samples.columns[0].data = reinterpret_cast<const char*>(all.sizes.data()) + 1;
  samples.columns[0].shape = {Houses::count - 1, 3};
  samples.columns[1].shape = {Houses::count - 1, 2};
  samples.columns[2].shape = {Houses::count - 1, 1};
  EXPECT_EQ(
      refusal(price, samples),
      "bytes of column 'sizes' that begin in the middle of a number; expected a multiple of 8 "
      "for float64");
  samples = all.samples();
  samples.columns[2].shape = {100, 1};
  EXPECT_EQ(refusal(price, samples),
            "column 'prices' of 100 samples; expected 203, as column 'sizes' has");
  samples = all.samples();
  samples.columns.push_back({"extra", all.prices.data(), DType::float32, {Houses::count}});
  EXPECT_EQ(refusal(price, samples),
            "samples for an unknown input 'extra'; expected sizes, places, prices");
  EXPECT_EQ(refusal(price, {}), "samples of no columns; expected a column for each input");
  EXPECT_EQ(refusal(
                [](ModelBuilder& model, std::int64_t batch) {
                  const ValueId x = model.input("cursor", {batch, 3});
                  return train::Objective{.loss = nn::mse()(model, x, x)};
                },
                {}),
            "an input named 'cursor'; expected another name: sweeps have one of that");
  const auto loss_of = [](const std::function<train::Objective(ModelBuilder&, ValueId)>& made) {
    return [made](ModelBuilder& model, std::int64_t batch) {
      return made(model, nn::dense(2)(model, model.input("sizes", {batch, 3})));
    };
  };
  EXPECT_EQ(refusal(loss_of([](ModelBuilder&, ValueId x) { return train::Objective{x}; }), {}),
            "a loss float32 [32, 2]; expected float32 [1], the mean over the batch");
  EXPECT_EQ(refusal(loss_of([](ModelBuilder&, ValueId) { return train::Objective{}; }), {}),
            "an objective without a loss; expected a float32 [1]");
  EXPECT_EQ(
      refusal(loss_of([](ModelBuilder& model, ValueId x) {
                return train::Objective{.loss = nn::mse()(model, x, x), .metrics = {{"x", x}}};
              }),
              {}),
      "metric 'x' of sums float32 [32, 2]; expected float64 [k]");
}

}  // namespace
}  // namespace arenite
