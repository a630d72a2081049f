// Profiling of whole training steps: what it costs the heap, that it adds up, and how it ends.
#include <arenite/arenite.hpp>

#include <gtest/gtest.h>

#include "tests/heap_counted.hpp"

#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace arenite {
namespace {

TEST(ProfiledTraining, AllocatesWhenItStartsAndNotInSteps) {
  const data::ImageData data = data::synthetic({.seed = 3, .train = 1600, .test = 10});
  for (int workers : {1, 2}) {
    runtime::Session session({.workers = workers});
    train::Trainer trainer(session, nn::model("cnn1").layers, data.shape(),
                           {.batch = 16, .lanes = 2});
    trainer.fit(data.train, {.epochs = 1, .shuffle = false});  // warm-up
    // From the first step's end to the last one's: the profile is made before and read behind.
    std::optional<long> first, last;
    train::FitOptions how{.epochs = 1, .shuffle = false, .progress_seconds = 0};
    how.profile_steps = 90;
    how.on_progress = [&](const train::Progress&) {
      last = runtime::heap_calls();
      if (!first) first = last;
    };
    const auto report = trainer.fit(data.train, how);
    if (testing::heap_counted) {
      ASSERT_TRUE(first) << "the heap counter is not preloaded: run this through ctest";
      EXPECT_EQ(*last - *first, 0) << workers << " workers";
    }
    ASSERT_TRUE(report.profile);
    EXPECT_EQ(report.profile->steps, 90);
    EXPECT_EQ(report.profile->workers.size(), static_cast<std::size_t>(workers));
    const runtime::TimeParts all = report.profile->all();
    EXPECT_EQ(all.total(), workers * report.profile->wall);
    EXPECT_GT(all.kernels, 0);
    EXPECT_GT(all.staging, 0);
    EXPECT_GT(all.runtime, 0);
    double share = 0;
    for (const runtime::OpTime& op : report.profile->ops) share += op.share;
    EXPECT_NEAR(share, 1, 1e-9);
  }
}

TEST(ProfiledTraining, ChangesNoBits) {
  const data::ImageData data = data::synthetic({.seed = 3, .train = 160, .test = 10});
  runtime::Session session({.workers = 2});
  std::optional<std::string> plain;
  for (long steps : {0, 5, 1000}) {
    train::Trainer trainer(session, nn::model("mlp").layers, data.shape(),
                           {.batch = 16, .lanes = 2});
    train::FitOptions how{.epochs = 2};
    how.profile_steps = steps;
    const auto report = trainer.fit(data.train, how);
    EXPECT_EQ(report.profile.has_value(), steps > 0);
    if (steps > 0) {
      EXPECT_EQ(report.profile->steps, std::min(steps, 10L));
    }
    if (!plain) plain = trainer.weights_sha256();
    EXPECT_EQ(trainer.weights_sha256(), *plain);
  }
}

/// Sets a variable of the environment for a while.
class Variable {
 public:
  Variable(const char* name, const std::string& text) : name_(name) {
    setenv(name, text.c_str(), 1);
  }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(CapturedTraining, ChangesNoBitsAndAllocatesNothingInSteps) {
  const data::ImageData data = data::synthetic({.seed = 3, .train = 160, .test = 10});
  const std::string file =
      std::filesystem::temp_directory_path() / ("profile_test." + std::to_string(getpid()));
  runtime::Session session({.workers = 2});
  const auto train = [&] {
    train::Trainer trainer(session, nn::model("cnn1").layers, data.shape(),
                           {.batch = 16, .lanes = 2});
    trainer.fit(data.train, {.epochs = 2, .validation = &data.test});
    if (testing::heap_counted) {
      EXPECT_EQ(trainer.costs().heap_calls, 0);
    }
    return trainer.weights_sha256();
  };
  const std::string plain = train();
  const Variable trace("ARENITE_TRACE", file);
  EXPECT_EQ(train(), plain);
  EXPECT_GT(std::filesystem::file_size(file), 1000u);
  std::filesystem::remove(file);
}

/// Bytes of the heap in use; 0 where a sanitizer has it.
std::size_t heap_bytes() {
  if (!testing::heap_counted) return 0;
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Long epochs, so that a recording that is still held shows in the heap.
class ProfiledEpochs : public ::testing::Test {
 protected:
  // Where the heap is not counted, any epoch will do.
  static constexpr std::int64_t batches = testing::heap_counted ? 2000 : 200;
  static constexpr std::size_t a_recording = 64 * 3 * batches;  // bytes of three tasks, at least

  /// One epoch over a split with a profile. Calls `then` after each step.
  train::EpochReport fit(const data::Split& split, long steps,
                         const std::function<void(const train::Progress&)>& then = {}) {
    train::FitOptions how{.epochs = 1, .shuffle = false, .progress_seconds = 0};
    how.profile_steps = steps;
    how.on_progress = then;
    return trainer_.fit(split, how);
  }
  /// A profile of the next epoch is whole.
  void expect_profile(const data::Split& split, const std::string& program = "train") {
    const auto report = fit(split, 10);
    ASSERT_TRUE(report.profile);
    EXPECT_EQ(report.profile->program, program);
    EXPECT_EQ(report.profile->steps, 10);
    EXPECT_EQ(report.profile->all().total(), report.profile->wall);
    EXPECT_GT(report.profile->all().kernels, 0);
  }

  const data::ImageData data_ = data::synthetic({.seed = 3, .train = 4 * batches + 1, .test = 10});
  runtime::Session session_{{.workers = 1}};
  train::Trainer trainer_{session_, nn::model("cnn1").layers, data_.shape(), {.batch = 4}};
};

TEST_F(ProfiledEpochs, TakeRoomForNoMoreStepsThanTheyHave) {
  std::vector<std::size_t> bytes;
  fit(data_.train, 0);  // all programs exist
  for (long steps : {batches, runtime::max_profile_steps}) {
    std::size_t inside = 0;
    const auto report =
        fit(data_.train, steps, [&](const train::Progress&) { inside = heap_bytes(); });
    bytes.push_back(inside);
    ASSERT_TRUE(report.profile);
    EXPECT_EQ(report.profile->steps, batches);
  }
  EXPECT_LT(bytes[1], bytes[0] + a_recording / 10);
}

TEST_F(ProfiledEpochs, RefuseTooManyStepsBeforeTheFirst) {
  for (long steps : {-1L, runtime::max_profile_steps + 1}) {
    train::FitOptions how{.epochs = 3};
    how.profile_steps = steps;
    try {
      trainer_.fit(data_.train, how);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.what(),
                "a profile of " + std::to_string(steps) + " steps; expected 0 to 100000");
    }
  }
  EXPECT_EQ(trainer_.steps(), 0);
}

TEST_F(ProfiledEpochs, EndTheirRecordingWhenACallbackThrows) {
  fit(data_.train, 0);
  std::size_t before = heap_bytes(), inside = 0;
  EXPECT_THROW(fit(data_.train, batches,
                   [&](const train::Progress& progress) {
                     inside = heap_bytes();
                     if (progress.done > 100) throw std::runtime_error("enough");
                   }),
               std::runtime_error);
  if (testing::heap_counted) {
    EXPECT_GT(inside, before + a_recording);
    EXPECT_LT(heap_bytes(), before + a_recording / 10);
  }
  expect_profile(data_.train);
}

TEST_F(ProfiledEpochs, EndTheirRecordingWhenAStepFails) {
  // A set that claims 12 classes: the model's ten logits cannot hold label 11.
  std::vector<std::uint8_t> labels(data_.train.labels.begin(), data_.train.labels.end());
  data::Split split = data_.train;
  split.classes = 12;
  split.labels = labels;
  fit(split, 0);
  const std::size_t before = heap_bytes();
  std::size_t inside = 0;
  labels[402] = 11;
  EXPECT_THROW(fit(split, batches, [&](const train::Progress&) { inside = heap_bytes(); }), Error);
  if (testing::heap_counted) {
    EXPECT_GT(inside, before + a_recording);
    EXPECT_LT(heap_bytes(), before + a_recording / 10);
  }
  labels[402] = 0;
  expect_profile(split);
}

TEST_F(ProfiledEpochs, MayTakeTurnsOnTwoSplits) {
  const data::Split first = data_.train, second = data_.train.first(201);
  expect_profile(first);
  expect_profile(second, "train.2");
  // The first recording never ends by itself, nor may it hear of the other program's steps.
  EXPECT_THROW(fit(first, 1000, [](const train::Progress&) { throw std::runtime_error("enough"); }),
               std::runtime_error);
  expect_profile(second, "train.2");
  expect_profile(first);
}

}  // namespace
}  // namespace arenite
