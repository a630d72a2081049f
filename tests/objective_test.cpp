// Networks of any inputs, losses and metrics, trained on samples of any type.
#include <arenite/arenite.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

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

using graph::ValueId;
using nn::ModelBuilder;

/// Houses: sizes as doubles, places as bytes, and what they cost.
struct Houses {
  static constexpr std::int64_t count = 203;
  std::vector<double> sizes = std::vector<double>(count * 3);
  std::vector<std::uint8_t> places = std::vector<std::uint8_t>(count * 2);
  std::vector<float> prices = std::vector<float>(count);

  Houses() {
    std::mt19937 engine(7);
    std::uniform_real_distribution<double> size(0, 1);
    std::uniform_int_distribution<int> place(0, 255);
    for (std::size_t i = 0; i < prices.size(); ++i) {
      double price = 0.2;
      for (std::size_t k = 0; k < 3; ++k)
        price += static_cast<double>(k + 1) * (sizes[i * 3 + k] = size(engine));
      for (std::size_t k = 0; k < 2; ++k) {
        places[i * 2 + k] = static_cast<std::uint8_t>(place(engine));
        price += places[i * 2 + k] / 255.0;
      }
      prices[i] = static_cast<float>(price);
    }
  }

  Samples samples() const {
    return {{{"sizes", sizes.data(), DType::float64, {count, 3}},
             {"places", places.data(), DType::uint8, {count, 2}, 1.0 / 255},
             {"prices", prices.data(), DType::float32, {count, 1}}}};
  }
};

const Houses& houses() {
  static const Houses all;
  return all;
}

ValueId dense_relu(ModelBuilder& model, ValueId x, std::int64_t features) {
  return nn::relu()(model, nn::dense(features)(model, x));
}

/// Two inputs, each through a layer of its own.
train::Objective price(ModelBuilder& model, std::int64_t batch) {
  const ValueId sizes = model.input("sizes", {batch, 3}),
                places = model.input("places", {batch, 2}),
                prices = model.input("prices", {batch, 1});
  const ValueId of_sizes = dense_relu(model, sizes, 16), of_places = dense_relu(model, places, 16);
  const ValueId both = model.graph().add1("add", {of_sizes, of_places});
  const ValueId guess = nn::dense(1)(model, both);
  return {.loss = nn::mse()(model, guess, prices),
          .metrics = {{"mae", nn::sum_over(model, {guess, prices}, "abs($1 - $2)")},
                      {"near", nn::sum_over(model, {guess, prices}, "abs($1 - $2) < 0.1")}},
          .predictions = guess};
}

train::TrainerOptions options(std::int64_t batch = 32) {
  return {.batch = batch, .optimizer = optim::adam({.lr = 0.01})};
}

train::Metrics last_of(train::Trainer& trainer, int epochs, const Samples& samples) {
  return trainer.fit(samples, {.epochs = epochs}).train;
}

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
}

/// The price of one house, by hand.
double priced(const std::vector<train::Trainer::NamedParameter>& p, std::size_t house) {
  double guess = p[5].values[0];
  for (std::size_t h = 0; h < 16; ++h) {
    double of_sizes = p[1].values[h], of_places = p[3].values[h];
    for (std::size_t k = 0; k < 3; ++k)
      of_sizes += houses().sizes[house * 3 + k] * p[0].values[k * 16 + h];
    for (std::size_t k = 0; k < 2; ++k)
      of_places += houses().places[house * 2 + k] / 255.0 * p[2].values[k * 16 + h];
    guess += (std::max(of_sizes, 0.0) + std::max(of_places, 0.0)) * p[4].values[h];
  }
  return guess;
}

// Of any number of samples, of columns that predictions depend on, anywhere in memory; a sample's
// do not depend on the others.
TEST(Objectives, PredictAnyNumberOfSamples) {
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, price, options());
  last_of(trainer, 3, houses().samples());
  Samples unpriced = houses().samples();
  unpriced.columns.pop_back();
  std::swap(unpriced.columns[0], unpriced.columns[1]);
  const train::Predictions all = trainer.predict(unpriced);
  EXPECT_EQ(all.type, DType::float32);
  EXPECT_EQ(all.shape, (Shape{Houses::count, 1}));
  const auto prices = all.values<float>();
  ASSERT_EQ(std::ssize(prices), Houses::count);
  for (std::size_t i = 0; i < prices.size(); ++i)
    EXPECT_NEAR(prices[i], priced(trainer.parameters(), i), 1e-4) << i;

  // One of them, of a copy of its bytes; and more than go through in one stretch.
  const std::vector<double> sizes(houses().sizes.end() - 3, houses().sizes.end());
  const std::vector<std::uint8_t> places(houses().places.end() - 2, houses().places.end());
  const train::Predictions last =
      trainer.predict({{{"sizes", sizes.data(), DType::float64, {1, 3}},
                        {"places", places.data(), DType::uint8, {1, 2}, 1.0 / 255}}});
  ASSERT_EQ(last.shape, (Shape{1, 1}));
  EXPECT_EQ(last.values<float>()[0], prices[Houses::count - 1]);

  const std::int64_t times = 20, many = times * Houses::count;
  std::vector<double> more_sizes;
  std::vector<std::uint8_t> more_places;
  for (std::int64_t i = 0; i < times; ++i) {
    more_sizes.insert(more_sizes.end(), houses().sizes.begin(), houses().sizes.end());
    more_places.insert(more_places.end(), houses().places.begin(), houses().places.end());
  }
  const train::Predictions more =
      trainer.predict({{{"sizes", more_sizes.data(), DType::float64, {many, 3}},
                        {"places", more_places.data(), DType::uint8, {many, 2}, 1.0 / 255}}});
  for (std::size_t i = 0; i < static_cast<std::size_t>(many); ++i)
    ASSERT_EQ(more.values<float>()[i], prices[i % Houses::count]) << i;

  // Training goes on as if nobody had asked, and what it learns shows.
  train::Trainer other(session, price, options());
  last_of(other, 4, houses().samples());
  last_of(trainer, 1, houses().samples());
  EXPECT_EQ(trainer.weights_sha256(), other.weights_sha256());
  EXPECT_NE(trainer.predict(unpriced).values<float>()[0], prices[0]);
}

std::filesystem::path file_named(const std::string& name) {
  return std::filesystem::temp_directory_path() / (name + "." + std::to_string(getpid()));
}

// Of weights that a file has, before anything was trained; of their means, where it keeps some.
TEST(Objectives, PredictWithTheMeansOfParametersAndFromFiles) {
  runtime::Session session({.workers = 1});
  train::TrainerOptions how = options();
  how.optimizer.averaging = graph::Averaging{.decay = 0.9};
  const Samples samples = houses().samples();
  train::Trainer trainer(session, price, how);
  const float before = trainer.predict(samples).values<float>()[0];
  EXPECT_NEAR(before, priced(trainer.parameters(), 0), 1e-4);
  last_of(trainer, 3, samples);
  const train::Predictions found = trainer.predict(samples);
  EXPECT_GT(std::abs(found.values<float>()[0] - priced(trainer.parameters(), 0)), 1e-3);
  double error = 0;
  for (std::size_t i = 0; i < Houses::count; ++i) {
    const double d = found.values<float>()[i] - houses().prices[i];
    error += d * d / Houses::count;
  }
  EXPECT_NEAR(error, trainer.evaluate(samples).loss, 1e-4 * error);

  const std::filesystem::path file = file_named("predict.st");
  trainer.save(file);
  train::Trainer resumed(session, price, how);
  resumed.resume(file);
  EXPECT_EQ(resumed.predict(samples).bytes, found.bytes);
  std::filesystem::remove(file);
}

// What a file says of a run is all that it takes to evaluate it, to predict with it, and to go on.
TEST(Objectives, AreInTheFilesOfTheirRuns) {
  runtime::Session session({.workers = 2});
  const Samples samples = houses().samples();
  const std::filesystem::path file = file_named("run.st");
  for (const int lanes : {0, 2}) {
    for (const bool averages : {false, true}) {
      train::TrainerOptions how = options();
      how.lanes = lanes;
      if (lanes > 0) how.init.range = 0.1f;
      if (averages) how.optimizer.averaging = graph::Averaging{.decay = 0.9};
      train::Trainer trainer(session, price, how);
      last_of(trainer, 2, samples);
      trainer.save(file, {{"of", "houses"}});
      const train::Metrics found = trainer.evaluate(samples);
      const train::SavedRun run = train::saved_run(file);
      EXPECT_EQ(run.epochs, 2);
      EXPECT_EQ(run.steps, 14);
      EXPECT_EQ(run.said, (SavedWords{{"of", "houses"}}));
      train::Trainer other(session, run.build, run.options);
      other.take_states(file);
      EXPECT_EQ(other.inputs().size(), 3U);
      EXPECT_EQ(other.predict(samples).bytes, trainer.predict(samples).bytes);
      const train::Metrics again = other.evaluate(samples);
      EXPECT_EQ(*again.names, *found.names);
      EXPECT_EQ(again.values, found.values);

      train::Trainer resumed(session, run.build, run.options);
      EXPECT_EQ(resumed.resume(file), "");
      last_of(resumed, 1, samples);
      last_of(trainer, 1, samples);
      EXPECT_EQ(resumed.weights_sha256(), trainer.weights_sha256());
    }
  }
  std::filesystem::remove(file);
}

std::string refusal_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

// One that no number of the input's type is does not spoil those that are asked about later.
TEST(Objectives, PredictWhateverWasWrongBefore) {
  const train::Build build = [](ModelBuilder& model, std::int64_t batch) {
    const ValueId token = model.input("token", {batch, 1}, DType::int32),
                  target = model.input("target", {batch, 1});
    const ValueId real =
        model.graph().add1("map", {token}, {{"expression", std::string("yield float32($1)")}});
    const ValueId guess = nn::dense(1)(model, real);
    return train::Objective{.loss = nn::mse()(model, guess, target), .predictions = guess};
  };
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, build, options(32));
  std::vector<std::int64_t> tokens(32, 1);
  const auto samples = [&](std::int64_t count) {
    return Samples{{{"token", tokens.data(), DType::int64, {count, 1}}}};
  };
  const auto expected = trainer.predict(samples(10)).bytes;
  tokens[20] = std::int64_t{1} << 40;
  EXPECT_NE(refusal_of([&] { static_cast<void>(trainer.predict(samples(32))); }), "taken");
  EXPECT_EQ(trainer.predict(samples(10)).bytes, expected);

  const train::Build of_none = [&](ModelBuilder& model, std::int64_t batch) {
    train::Objective made = price(model, batch);
    made.predictions = made.metrics[0].sums;
    return made;
  };
  EXPECT_EQ(refusal_of([&] { train::Trainer(session, of_none, options()); }),
            "predictions [1] of a batch of 32; expected [32, …], a row for each sample");
}

TEST(Objectives, RefuseToPredictWhatTheyCannot) {
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, price, options());
  Samples samples = houses().samples();
  std::vector<std::byte> few(3);
  EXPECT_EQ(refusal_of([&] { trainer.predict(samples, few); }),
            "3 bytes for predictions of 203 samples; expected 812");
  EXPECT_EQ(refusal_of([&] { static_cast<void>(trainer.predict(samples).values<std::int32_t>()); }),
            "predictions read as int32; expected float32");
  samples.columns[0].shape = {Houses::count, 2};
  EXPECT_EQ(refusal_of([&] { static_cast<void>(trainer.predict(samples)); }),
            "samples [2] of column 'sizes'; expected [3], as the input has");
  samples.columns.erase(samples.columns.begin());
  EXPECT_EQ(refusal_of([&] { static_cast<void>(trainer.predict(samples)); }),
            "samples without a column 'sizes'; expected one for each input that is read");
  const train::Build no_predictions = [](ModelBuilder& model, std::int64_t batch) {
    return train::Objective{.loss = price(model, batch).loss};
  };
  train::Trainer silent(session, no_predictions, options());
  EXPECT_EQ(refusal_of([&] { static_cast<void>(silent.predict(houses().samples())); }),
            "predictions of an objective that has none; expected one that names them (hint: "
            "Objective{.loss = …, .predictions = …})");
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
/// Rows `first` to `first + count` of the houses, elsewhere in memory.
struct Batch {
  Batch(std::int64_t first, std::int64_t count)
      : sizes(houses().sizes.begin() + first * 3, houses().sizes.begin() + (first + count) * 3),
        places(houses().places.begin() + first * 2, houses().places.begin() + (first + count) * 2),
        prices(houses().prices.begin() + first, houses().prices.begin() + first + count),
        samples{{{"places", places.data(), DType::uint8, {count, 2}, 1.0 / 255},
                 {"sizes", sizes.data(), DType::float64, {count, 3}},
                 {"prices", prices.data(), DType::float32, {count, 1}}}} {}
  std::vector<double> sizes;
  std::vector<std::uint8_t> places;
  std::vector<float> prices;
  Samples samples;
};

// The same steps, with the same bits, as over the whole set; the last one is on fewer samples.
TEST(Steps, OnBatchesOneByOneAreThoseOfAnEpoch) {
  runtime::Session session({.workers = 2});
  train::Trainer whole(session, price, options()), stepped(session, price, options());
  for (int epoch = 0; epoch < 2; ++epoch) {
    const train::Metrics expected =
        whole.fit(houses().samples(), {.epochs = 1, .shuffle = false}).train;
    double loss = 0;
    for (std::int64_t first = 0; first < Houses::count; first += 32) {
      const std::int64_t count = std::min<std::int64_t>(32, Houses::count - first);
      const train::Metrics found = stepped.step(Batch(first, count).samples);
      EXPECT_EQ(found.samples, count);
      loss += found.loss * static_cast<double>(count) / Houses::count;
    }
    EXPECT_NEAR(loss, expected.loss, 1e-12);
  }
  EXPECT_EQ(stepped.steps(), whole.steps());
  EXPECT_EQ(stepped.weights_sha256(), whole.weights_sha256());
}

// In the middle of an epoch they change what it goes on from, and nothing else of it.
TEST(Steps, MayStandBetweenEvents) {
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, price, options());
  const Batch batch(10, 32);
  trainer.begin(houses().samples(), {.epochs = 1});
  train::Event event = trainer.advance({.steps = 3});
  const double before = event.progress.loss;
  const train::Metrics own = trainer.step(batch.samples);
  EXPECT_NE(own.loss, before);
  std::int64_t done = event.progress.done;
  event = trainer.advance({.steps = 1});
  EXPECT_EQ(event.progress.done, done + 32);
  while (event.kind == train::Event::Kind::progress) event = trainer.advance();
  EXPECT_EQ(event.report.train.samples, Houses::count);
  EXPECT_EQ(trainer.steps(), 8);

  // A run of steps alone is saved, too.
  const std::filesystem::path file = file_named("steps.st");
  train::Trainer alone(session, price, options()), resumed(session, price, options());
  alone.step(batch.samples);
  alone.save(file);
  EXPECT_EQ(resumed.resume(file), "");
  EXPECT_EQ(resumed.steps(), 1);
  alone.step(batch.samples);
  resumed.step(batch.samples);
  EXPECT_EQ(alone.weights_sha256(), resumed.weights_sha256());
  std::filesystem::remove(file);
  EXPECT_EQ(refusal_of([&] { alone.step(houses().samples()); }),
            "a step on 203 samples; expected at most 32, the batch");
}

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
  for (Column& column : samples.columns) column.shape = column.shape.with(0, 20);
  EXPECT_EQ(
      refusal(price, samples),
      "a batch of 32 from 20 training samples; expected a batch no larger than the set (hint: use "
      "a smaller --batch or a larger --limit)");
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
