// Runs that are saved, and gone on with by another trainer.
#include <arenite/arenite.hpp>

#include "src/base/testing.hpp"
#include "src/io/safetensors.hpp"
#include "src/train/checkpoint.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace arenite {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

const data::ImageData& drawn() {
  static const data::ImageData data = data::synthetic({.seed = 4, .train = 141, .test = 30});
  return data;
}

train::TrainerOptions with(optim::Optimizer optimizer) {
  return {.batch = 16, .optimizer = std::move(optimizer), .init = {.seed = 5, .range = {}}};
}

/// Counts steps, keeps velocities and means, and has a rate that changes.
optim::Optimizer busy() {
  optim::Optimizer made = optim::adamw({.lr = 0.004f, .weight_decay = 0.1f});
  made.schedule = optim::schedule("cosine", {{"steps", 40.0}, {"warm_up", 5.0}});
  made.averaging = graph::Averaging{.decay = 0.9};
  return made;
}

struct CheckpointTest : ::testing::Test {
  fs::path folder;

  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "arenite-checkpoint-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder); }

  fs::path file() const { return folder / "run.st"; }
  std::string bytes() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& bytes) const {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes;
  }
  /// Where this folder is not named.
  std::string refusal(train::Trainer& trainer) const {
    std::string text = error_of([&] { trainer.resume(file()); });
    const std::size_t at = text.find(file().string());
    return at == text.npos ? text : text.replace(at, file().string().size(), "FILE");
  }
};

struct Network {
  runtime::Session session;
  train::Trainer trainer;

  explicit Network(train::TrainerOptions options = with(busy()), const char* model = "cnn2-bn",
                   int workers = 2)
      : session({.workers = workers}),
        trainer(session, nn::model(model).layers, drawn().shape(), std::move(options)) {}
};

using Sums = std::array<double, 3>;

Sums sums_of(const train::EpochReport& report) {
  return {report.train.loss, report.train.accuracy,
          report.validation ? report.validation->loss : 0};
}

TEST_F(CheckpointTest, AnotherTrainerEndsInTheSameBits) {
  const train::FitOptions two{.epochs = 2, .validation = &drawn().test};
  std::string trained;
  Sums last{};
  {
    Network whole;
    whole.trainer.fit(drawn().train, two);
    whole.trainer.save(file());
    last = sums_of(whole.trainer.fit(drawn().train, two));
    trained = whole.trainer.weights_sha256();
  }
  for (const int workers : {1, 3}) {
    Network other(with(busy()), "cnn2-bn", workers);
    EXPECT_EQ(other.trainer.resume(file()), "");
    EXPECT_EQ(other.trainer.epochs(), 2);
    EXPECT_EQ(sums_of(other.trainer.fit(drawn().train, two)), last);
    EXPECT_EQ(other.trainer.weights_sha256(), trained);
    EXPECT_EQ(other.trainer.steps(), 36);
  }
}

/// Dropout and running statistics, means and a schedule; behind each step of an epoch, its
/// remainder too.
TEST_F(CheckpointTest, GoesOnInTheMiddleOfAnEpoch) {
  Network whole;
  const train::EpochReport last = whole.trainer.fit(drawn().train, {.epochs = 3});
  const std::string expected = whole.trainer.weights_sha256();
  for (long at = 10; at <= 18; at += ARENITE_CHECKED ? 4 : 1) {
    Network stopped;
    std::atomic<bool> stop = false;
    train::FitOptions how{.epochs = 3, .save_steps = at, .stop = &stop};
    how.on_save = [&] { stop = true; };
    const train::EpochReport half = stopped.trainer.fit(drawn().train, how);
    EXPECT_EQ(stopped.trainer.steps(), at);
    // An evaluation in between counts in the same place, and is no part of the epoch.
    stopped.trainer.evaluate(drawn().test);
    stopped.trainer.save(file());

    Network other;
    EXPECT_EQ(other.trainer.resume(file()), "");
    const int left = 3 - other.trainer.epochs();
    EXPECT_EQ(sums_of(other.trainer.fit(drawn().train, {.epochs = left})), sums_of(last)) << at;
    EXPECT_EQ(other.trainer.weights_sha256(), expected) << at;
    // And so does whoever goes on without a file.
    EXPECT_EQ(sums_of(stopped.trainer.fit(drawn().train, {.epochs = left})), sums_of(last));
    EXPECT_EQ(stopped.trainer.weights_sha256(), expected);
    EXPECT_LE(half.train.samples, drawn().train.count);
  }
}

TEST_F(CheckpointTest, SavesBetweenStepsAndSaysWhatWasBest) {
  Network network(with(optim::sgd({.lr = 0.02f})), "mlp");
  std::vector<long> saved;
  train::FitOptions how{.epochs = 2, .validation = &drawn().test, .save_steps = 4};
  how.on_save = [&] {
    network.trainer.save(file());
    saved.push_back(network.trainer.steps());
  };
  double least = 1e9;
  how.on_epoch = [&](const train::EpochReport& report) {
    EXPECT_EQ(report.best, report.validation->loss < least);
    least = std::min(least, report.validation->loss);
  };
  network.trainer.fit(drawn().train, how);
  EXPECT_EQ(saved, (std::vector<long>{4, 8, 12, 16}));
  const std::string trained = network.trainer.weights_sha256();
  Network other(with(optim::sgd({.lr = 0.02f})), "mlp");
  other.trainer.resume(file());
  EXPECT_EQ(other.trainer.steps(), 16);
  other.trainer.fit(drawn().train, {.epochs = 1});
  EXPECT_EQ(other.trainer.weights_sha256(), trained);
}

/// Programs that only evaluate have no optimizer state: it waits for those that train.
TEST_F(CheckpointTest, MayBeEvaluatedBeforeItTrains) {
  Network whole;
  whole.trainer.fit(drawn().train, {.epochs = 1});
  whole.trainer.save(file());
  const double tested = whole.trainer.evaluate(drawn().test).loss;
  whole.trainer.fit(drawn().train, {.epochs = 1});
  const fs::path copy = folder / "copy.st";
  for (const bool first : {true, false}) {
    Network other;
    if (first) other.trainer.evaluate(drawn().test);
    other.trainer.resume(file());
    EXPECT_EQ(other.trainer.evaluate(drawn().test).loss, tested);
    other.trainer.save(copy);
    const io::TensorFile a(file()), b(copy);
    ASSERT_EQ(a.tensors().size(), b.tensors().size());
    for (const io::NamedTensor& tensor : a.tensors())
      EXPECT_TRUE(std::ranges::equal(tensor.bytes, b.find(tensor.name)->bytes)) << tensor.name;
    other.trainer.fit(drawn().train, {.epochs = 1});
    EXPECT_EQ(other.trainer.weights_sha256(), whole.trainer.weights_sha256());
    EXPECT_ERROR("weights taken by a run that has begun", other.trainer.take_weights(file()));
  }
}

TEST_F(CheckpointTest, SavesAfterSecondsThatAreLongerThanAnEpoch) {
  Network network(with(optim::sgd({.lr = 0.02f})), "mlp");
  int saved = 0;
  train::FitOptions how{.epochs = ARENITE_CHECKED ? 20 : 400, .save_seconds = 0.05};
  how.on_save = [&] { ++saved; };
  const auto begin = std::chrono::steady_clock::now();
  network.trainer.fit(drawn().train, how);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(saved, took.count() >= 0.2 ? 2 : 0);
  EXPECT_LE(saved, took.count() / 0.05 + 1);
  how = {.epochs = 1};
  how.on_save = [&] { ADD_FAILURE() << "nobody has asked for it"; };
  network.trainer.fit(drawn().train, how);
}

TEST_F(CheckpointTest, EndsWithoutPatience) {
  Network network(with(optim::sgd({.lr = 0})), "mlp");  // no epoch is better than the first
  int epochs = 0;
  train::FitOptions how{.epochs = 20, .validation = &drawn().test, .patience = 3};
  how.on_epoch = [&](const train::EpochReport&) { ++epochs; };
  network.trainer.fit(drawn().train, how);
  EXPECT_EQ(epochs, 4);
}

TEST_F(CheckpointTest, AnotherRunIsRefusedWithWhatDiffers) {
  Network network(with(optim::sgd({.lr = 0.5f})), "mlp");
  EXPECT_EQ(
      error_of([&] { network.trainer.save(file()); }),
      file().string() + ": a run to save that has not begun; expected a call of fit or step first");
  network.trainer.fit(drawn().train, {.epochs = 1});
  network.trainer.save(file());
  const std::string hint =
      " (hint: other numbers: a new run, from these weights alone: --resume-weights, take_weights, "
      "load_weights)";
  const std::string as_in = ", as in the run to go on with" + hint;

  Network larger({.batch = 32, .optimizer = optim::sgd({.lr = 0.5f}), .init = {.seed = 5}}, "mlp");
  EXPECT_EQ(refusal(larger.trainer), "FILE: batch: 32; expected 16" + as_in);
  Network begun(
      {.batch = 16, .optimizer = optim::sgd({.lr = 0.5f}), .init = {.seed = 5, .range = 0.5f}},
      "mlp");
  EXPECT_EQ(refusal(begun.trainer),
            "FILE: weights: begun in 0.5; expected begun as layers ask for" + as_in);
  Network seed({.batch = 16, .optimizer = optim::sgd({.lr = 0.5f}), .init = {.seed = 6}}, "mlp");
  EXPECT_EQ(refusal(seed.trainer), "FILE: seed: 6; expected 5" + as_in);
  Network slower(with(optim::sgd({.lr = 0.25f})), "mlp");
  EXPECT_EQ(refusal(slower.trainer),
            "FILE: training: optimizer=sgd, learning_rate=0.25, momentum=0.0, weight_decay=0.0; "
            "expected optimizer=sgd, learning_rate=0.5, momentum=0.0, weight_decay=0.0" +
                as_in);
  Network same(with(optim::sgd({.lr = 0.5f})), "mlp");
  same.trainer.resume(file());
  EXPECT_EQ(error_of([&] { same.trainer.fit(drawn().train, {.shuffle = false}); }),
            "the run that is resumed: order: as they are; expected shuffled with seed 1" + as_in);
  const std::string other_data = error_of([&] { same.trainer.fit(drawn().train.first(100)); });
  EXPECT_TRUE(other_data.starts_with(
      "the run that is resumed: data: 100 samples: images uint8 [28, 28, 1] "))
      << other_data;
  Network lanes(
      {.batch = 16, .optimizer = optim::sgd({.lr = 0.5f}), .init = {.seed = 5}, .lanes = 4}, "mlp");
  EXPECT_TRUE(lanes.trainer.resume(file()).find("lanes 4 for ") != std::string::npos);
}

TEST_F(CheckpointTest, WeightsBeginARunOfTheirOwn) {
  Network network;
  network.trainer.fit(drawn().train, {.epochs = 1});
  network.trainer.save(file());
  Network other(with(optim::sgd({.lr = 0.02f})));
  other.trainer.take_weights(file());
  other.trainer.prepare(&drawn().train, nullptr);
  EXPECT_EQ(other.trainer.weights_sha256(), network.trainer.weights_sha256());
  EXPECT_EQ(other.trainer.steps(), 0);
  EXPECT_EQ(other.trainer.epochs(), 0);
  Network small(with(busy()), "mlp");
  EXPECT_TRUE(error_of([&] { small.trainer.take_weights(file()); }).find("dense1.weight") !=
              std::string::npos);
}

TEST_F(CheckpointTest, ADamagedFileIsRefusedAndChangesNothing) {
  Network network(with(optim::sgd({.lr = 0.02f})), "lenet5");
  network.trainer.fit(drawn().train, {.epochs = 1});
  network.trainer.save(file());
  const std::string whole = bytes(), trained = network.trainer.weights_sha256();
  std::mt19937 random(6);
  for (int i = 0; i < (ARENITE_CHECKED ? 20 : 2000); ++i) {
    std::string damaged = whole;
    // Half of them where it says what it is.
    const std::size_t bit = random() % (8 * (i % 2 == 0 ? whole.size() : std::size_t{4096}));
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    put(damaged);
    EXPECT_NE(error_of([&] { network.trainer.resume(file()); }), "(no error)") << "bit " << bit;
  }
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, whole.size() / 2, whole.size() - 1}) {
    put(whole.substr(0, size));
    EXPECT_NE(error_of([&] { network.trainer.resume(file()); }), "(no error)") << size;
  }
  EXPECT_EQ(network.trainer.weights_sha256(), trained);
  EXPECT_EQ(network.trainer.epochs(), 1);
  put(whole);
  EXPECT_EQ(network.trainer.resume(file()), "");
}

TEST_F(CheckpointTest, WhatARunSaysIsCheckedToo) {
  Network network(with(optim::sgd({.lr = 0.02f})), "mlp");
  const auto say = [&](const std::string& place) {
    io::save_tensors(
        file(), {},
        {{"arenite.identity", "{}"}, {"arenite.numerics", "{}"}, {"arenite.place", place}});
    const io::TensorFile said(file());
    return error_of([&] { train::checkpoint_of(said, "F"); });
  };
  const std::string rest =
      R"(,"seconds":0,"sums":[0,null],"best_loss":1,"validations":0,"since_best":0})";
  EXPECT_EQ(say(R"({"steps":3,"position":1,"epochs":0,"done":2)" + rest), "(no error)");
  EXPECT_EQ(say(R"({"steps":-1,"position":1,"epochs":0,"done":2)" + rest).substr(0, 28),
            "F, arenite.place, steps: -1;");
  EXPECT_NE(say(R"({"steps":3,"position":1,"epochs":1e99,"done":2)" + rest), "(no error)");
  // What no epoch of this data can be at.
  network.trainer.fit(drawn().train, {.epochs = 1});
  network.trainer.save(file());
  {
    const io::TensorFile saved(file());
    train::Checkpoint found = train::checkpoint_of(saved, "F");
    for (const std::int64_t done : {5, 137, 144, 1'000'000}) {
      found.place.done = done;
      const fs::path other = folder / "other.st";
      io::save_tensors(other, saved.tensors(), train::metadata_of(found));
      Network same(with(optim::sgd({.lr = 0.02f})), "mlp");
      same.trainer.resume(other);
      EXPECT_EQ(error_of([&] { same.trainer.fit(drawn().train, {.epochs = 1}); }),
                "the run that is resumed: " + std::to_string(done) +
                    " samples done of an epoch of 141; expected whole batches of 16");
    }
  }
  EXPECT_NE(say("[]"), "(no error)");
  EXPECT_NE(say("{"), "(no error)");
  io::save_tensors(file(), {});
  EXPECT_EQ(
      refusal(network.trainer),
      "FILE: a file that says nothing of a run ('arenite.place'); expected one that training has "
      "saved (hint: weights alone: --resume-weights)");
}

}  // namespace
}  // namespace arenite
