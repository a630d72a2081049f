// Profiling of whole training steps: what it costs the heap, and that it adds up.
#include <arenite/arenite.hpp>

#include <gtest/gtest.h>

#include "tests/heap/heap_calls.hpp"

#include <optional>

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
    long first = -1, last = -1;
    train::FitOptions how{.epochs = 1, .shuffle = false, .progress_seconds = 0};
    how.profile_steps = 90;
    how.on_progress = [&](const train::Progress&) {
      last = testing::heap_calls();
      if (first < 0) first = last;
    };
    const auto report = trainer.fit(data.train, how);
    if (first >= 0) {
      EXPECT_EQ(last - first, 0) << workers << " workers";
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

}  // namespace
}  // namespace arenite
