// Predictions, steps on batches that come one by one, and runs that are asked by whoever has their
// files alone.
#include <arenite/arenite.hpp>

#include <gtest/gtest.h>

#include "tests/houses.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace arenite {
namespace {

using namespace testing;

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
TEST(Predictions, AreOfAnyNumberOfSamples) {
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

// Of weights that a file has, before anything was trained; of their means, where it keeps some.
TEST(Predictions, AreOfMeansOfParametersAndFromFiles) {
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

  // By the parameters, where that is asked for.
  using train::Weights;
  const train::Predictions current = trainer.predict(samples, Weights::current);
  EXPECT_NEAR(current.values<float>()[0], priced(trainer.parameters(), 0), 1e-4);
  how.optimizer.averaging.reset();
  train::Trainer plain(session, price, how);
  last_of(plain, 3, samples);
  EXPECT_EQ(plain.predict(samples).bytes, current.bytes);
  EXPECT_EQ(plain.evaluate(samples).values, trainer.evaluate(samples, Weights::current).values);
  how.optimizer.averaging = graph::Averaging{.decay = 0.9};

  const std::filesystem::path file = file_named("predict.st");
  trainer.save(file);
  train::Trainer resumed(session, price, how);
  resumed.resume(file);
  EXPECT_EQ(resumed.predict(samples).bytes, found.bytes);
  std::filesystem::remove(file);
}

// Samples that meet in a batch meet those that were given, and no others.
TEST(Predictions, AreOfTheSamplesOfABatch) {
  const train::Build centred = [](ModelBuilder& model, std::int64_t batch) {
    const ValueId x = model.input("x", {batch, 3}), y = model.input("y", {batch, 2});
    const ValueId mean = model.graph().add1("reduce", {x},
                                            {{"axes", std::vector<std::int64_t>{0}},
                                             {"expression", std::string("yield mean($1)")},
                                             {"keep", std::int64_t{1}}});
    const ValueId guess = nn::dense(2)(
        model,
        model.graph().add1("map", {x, mean}, {{"expression", std::string("yield $1 - $2")}}));
    return train::Objective{.loss = nn::mse()(model, guess, y), .predictions = guess};
  };
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, centred, options(8)), few(session, centred, options(3));
  std::vector<float> x(3 * 19);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i));
  const auto rows = [&](std::int64_t first, std::int64_t count) {
    return Samples{{{"x", x.data() + 3 * first, DType::float32, {count, 3}}}};
  };
  const auto all = trainer.predict(rows(0, 19)), last = few.predict(rows(16, 3)),
             second = trainer.predict(rows(8, 8));
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(all.values<float>()[32 + i], last.values<float>()[i]) << i;
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_EQ(all.values<float>()[16 + i], second.values<float>()[i]) << i;
}

// What a file says of a run is all that it takes to evaluate it, to predict with it, and to go on.
TEST(SavedRuns, HaveTheirNetworks) {
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

// One that no number of the input's type is does not spoil those that are asked about later.
TEST(Predictions, AreRightWhateverWasWrongBefore) {
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

TEST(Predictions, AreRefusedWhereThereAreNone) {
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

// Data of which a trainer has let go is nobody's any more, and training goes on with others.
TEST(Samples, AreLetGoOf) {
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, price, options()), other(session, price, options());
  std::vector<std::size_t> blocks;
  std::string bits;
  for (int round = 0; round < 4; ++round) {
    auto copy = std::make_unique<Houses>();  // elsewhere in memory each time
    trainer.fit(copy->samples(), {.epochs = 1, .seed = 3});
    const double loss = trainer.evaluate(copy->samples()).loss;
    last_of(other, 0, houses().samples());
    other.fit(houses().samples(), {.epochs = 1, .seed = 3});
    EXPECT_EQ(loss, other.evaluate(houses().samples()).loss);
    trainer.release(copy->samples());
    trainer.release(copy->samples());  // which is nobody's
    std::ranges::fill(copy->sizes, std::nan(""));
    EXPECT_EQ(trainer.weights_sha256(), other.weights_sha256());
    EXPECT_EQ(trainer.epochs(), round + 1);
    blocks.push_back(trainer.blocks().size());
  }
  EXPECT_EQ(blocks.back(), blocks.front());

  // In the middle of an epoch, which is begun anew.
  const Samples samples = houses().samples();
  trainer.begin(samples, {.epochs = 1});
  trainer.advance({.steps = 2});
  trainer.release(samples);
  EXPECT_FALSE(trainer.advance());
  EXPECT_EQ(trainer.fit(samples, {.epochs = 1}).train.samples, Houses::count);
  bool refused = false;
  trainer.fit(samples, {.epochs = 1, .on_epoch = [&](const train::EpochReport&) {
                          refused = refusal_of([&] { trainer.release(samples); }) ==
                                    "samples let go of in the middle of a fit; expected calls "
                                    "between them";
                        }});
  EXPECT_TRUE(refused);
}

// Programs of sizes that were used last stay, others are built anew: with the same bits.
TEST(Steps, MayBeOfAnySize) {
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, price, options()), other(session, price, options());
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t count = 1; count <= 32; count += 2) {
      trainer.step(Batch(count, count).samples);
      train::Trainer next(session, price, options());
      next.take_over(other);
      next.step(Batch(count, count).samples);
      other.take_over(next);
    }
    EXPECT_EQ(trainer.weights_sha256(), other.weights_sha256());
  }
  EXPECT_EQ(other.steps(), trainer.steps());
}

// One step an epoch, as `step` makes it; several shards of it as well.
TEST(Trainers, TakeFewerSamplesThanABatch) {
  runtime::Session session({.workers = 2});
  for (const int shards : {0, 4}) {
    train::TrainerOptions how = options();
    how.shards = shards;
    train::Trainer trainer(session, price, how), stepped(session, price, how);
    const Batch few(3, 20);
    for (int epoch = 0; epoch < 3; ++epoch) {
      const train::Metrics found = trainer.fit(few.samples, {.epochs = 1, .shuffle = false}).train;
      EXPECT_EQ(found.samples, 20);
      EXPECT_EQ(found.loss, stepped.step(few.samples).loss);
    }
    EXPECT_EQ(trainer.weights_sha256(), stepped.weights_sha256());
    EXPECT_EQ(trainer.steps(), 3);
    const std::filesystem::path file = file_named("few.st");
    trainer.save(file);
    train::Trainer resumed(session, price, how);
    EXPECT_EQ(resumed.resume(file), "");
    resumed.fit(few.samples, {.epochs = 1, .shuffle = false});
    trainer.fit(few.samples, {.epochs = 1, .shuffle = false});
    EXPECT_EQ(trainer.weights_sha256(), resumed.weights_sha256());
    std::filesystem::remove(file);
  }
}

// Epochs that were begun end where states come from elsewhere; a run that is resumed is where it
// was, whatever the trainer did before.
TEST(Trainers, EndTheirEpochsWhereStatesComeFromElsewhere) {
  runtime::Session session({.workers = 1});
  const Samples samples = houses().samples();
  const std::filesystem::path file = file_named("middle.st");
  train::Trainer whole(session, price, options()), first(session, price, options());
  last_of(whole, 2, samples);
  first.begin(samples, {.epochs = 2});
  first.advance({.steps = 3});
  first.save(file);
  const Houses elsewhere;
  train::Trainer other(session, price, options());
  last_of(other, 1, samples);
  other.begin(samples, {.epochs = 1});
  other.advance({.steps = 2});
  EXPECT_EQ(other.resume(file), "");
  EXPECT_FALSE(other.advance());
  other.release(samples);
  last_of(other, 2, elsewhere.samples());
  EXPECT_EQ(other.weights_sha256(), whole.weights_sha256());
  std::filesystem::remove(file);
}

// What was trained in one way is trained on in another.
TEST(Trainers, TakeOverFromEachOther) {
  runtime::Session session({.workers = 1});
  const Samples samples = houses().samples();
  const train::Build frozen = [](ModelBuilder& model, std::int64_t batch) {
    const train::Objective made = price(model, batch);
    graph::Graph& graph = model.graph().graph();
    graph[graph.declared(graph::StorageClass::parameter)[0]].frozen = true;
    return made;
  };
  train::TrainerOptions how = options();
  how.optimizer.averaging = graph::Averaging{.decay = 0.5};
  train::Trainer part(session, frozen, how), whole(session, price, how);
  last_of(part, 2, samples);
  const std::string bits = part.weights_sha256();
  whole.take_over(part);
  EXPECT_EQ(whole.weights_sha256(), bits);
  EXPECT_EQ(whole.epochs(), 2);
  EXPECT_EQ(whole.steps(), part.steps());
  EXPECT_EQ(whole.evaluate(samples).values, part.evaluate(samples).values);
  const std::string first = part.parameters()[0].name;
  const auto bytes_of = [](train::Trainer& of, const std::string& name) {
    const auto bytes = of.state(name);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(bytes_of(whole, first + ".average"), bytes_of(part, first));
  last_of(whole, 1, samples);
  EXPECT_NE(bytes_of(whole, first), bytes_of(part, first));
  part.take_over(whole);
  EXPECT_EQ(part.weights_sha256(), whole.weights_sha256());
  EXPECT_EQ(part.epochs(), 3);
}

}  // namespace
}  // namespace arenite
