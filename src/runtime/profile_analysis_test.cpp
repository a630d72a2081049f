// The division of time, on stamps made up by hand.
#include <gtest/gtest.h>

#include "src/runtime/profile_records.hpp"

#include <set>

namespace arenite::runtime {
namespace {

/// Writes a run of one task by hand.
void record(StepRecords& records, long step, std::size_t task, int worker,
            std::vector<std::int64_t> stamps) {
  StepRecords::Stamps stamp(&records, step, task, worker);
  ASSERT_TRUE(stamp.recorded());
  for (const std::int64_t time : stamps) stamp(time);
}

void expect_parts(const TimeParts& parts, std::int64_t kernels, std::int64_t staging,
                  std::int64_t runtime, std::int64_t idle) {
  EXPECT_EQ(parts.kernels, kernels);
  EXPECT_EQ(parts.staging, staging);
  EXPECT_EQ(parts.runtime, runtime);
  EXPECT_EQ(parts.idle, idle);
}

/// A diamond behind a staging task:   stage ─► a ─► b, c ─► d
StepShape diamond() {
  StepShape shape;
  shape.workers = 2;
  shape.ops = {{"gather", "plain", "batch", 0},
               {"mul", "fast", "left", 1000},
               {"mul", "fast", "left", 3000},
               {"mul", "plain", "right", 0}};
  shape.tasks = {{.before = {}, .ops = {0}, .staging = true},
                 {.before = {0}, .ops = {1}, .entry = true},
                 {.before = {1}, .ops = {2}},
                 {.before = {1}, .ops = {3}},
                 {.before = {2, 3}, .ops = {}}};
  shape.end = 4;
  return shape;
}

TEST(ProfileAnalysis, DividesEachWorkersTime) {
  const StepShape shape = diamond();
  StepRecords records(shape, 7, 1);
  record(records, 7, 0, 0, {1000, 1100});
  record(records, 7, 1, 0, {1130, 1330});  // ready at 1100
  record(records, 7, 2, 0, {1340, 1740});  // ready at 1330
  record(records, 7, 3, 1, {1400, 1500});  // ready at 1330
  record(records, 7, 4, 1, {1760});        // ready at 1740
  const Profile profile = analyse(shape, records, 1);
  EXPECT_EQ(profile.steps, 1);
  EXPECT_EQ(profile.wall, 630);  // the step's own staging lies before it
  ASSERT_EQ(profile.workers.size(), 2u);
  // After its last task a worker is idle: 20 ns of worker 0.
  expect_parts(profile.workers[0], 600, 0, 10, 20);
  expect_parts(profile.workers[1], 100, 0, (1400 - 1330) + 20, 200 + (1740 - 1500));
  EXPECT_EQ(profile.all().total(), 2 * profile.wall);
  // Worker 0 was idle while the end waited for worker 1.
  EXPECT_EQ(profile.beside_ready, 20);

  ASSERT_EQ(profile.ops.size(), 3u);  // both ops called "left" are one row
  EXPECT_EQ(profile.ops[0].where, "left");
  EXPECT_DOUBLE_EQ(profile.ops[0].microseconds, 0.6);
  EXPECT_DOUBLE_EQ(profile.ops[0].share, 600.0 / 800);
  EXPECT_DOUBLE_EQ(profile.ops[0].gflops, 4000.0 / 600);
  EXPECT_EQ(profile.ops[1].gflops, 0);
}

/// a ─► b, c; b ─► d; c, d ─► e
StepShape two_branches() {
  StepShape shape;
  shape.workers = 2;
  shape.ops = {{"mul", "fast", "", 0}};
  shape.tasks = {{.before = {}, .ops = {0}, .entry = true},
                 {.before = {0}, .ops = {0}},
                 {.before = {0}, .ops = {0}},
                 {.before = {1}, .ops = {0}},
                 {.before = {2, 3}, .ops = {}}};
  shape.end = 4;
  return shape;
}

TEST(ProfileAnalysis, CountsWaitingForOtherWorkersOnly) {
  const StepShape shape = two_branches();
  StepRecords records(shape, 0, 1);
  record(records, 0, 0, 0, {100, 200});
  record(records, 0, 1, 0, {200, 300});
  record(records, 0, 3, 1, {310, 400});  // ready at 300: worker 1 was idle before
  record(records, 0, 2, 1, {420, 500});  // ready at 200: had waited for worker 1 itself
  record(records, 0, 4, 0, {500});
  const Profile profile = analyse(shape, records, 1);
  expect_parts(profile.workers[0], 200, 0, 0, 200);
  expect_parts(profile.workers[1], 170, 0, 10 + 20, 200);
  // What waited for worker 1 in its own idle time could have been its own; worker 0 was idle from
  // 300 to 420 while c waited for the other.
  EXPECT_EQ(profile.beside_ready, 120);
}

TEST(ProfileAnalysis, CountsWaitingOfSubmittedTasksOnly) {
  // Nothing orders these two but the end, which worker 1 comes to.
  StepShape shape;
  shape.workers = 2;
  shape.ops = {{"mul", "fast", "", 0}};
  shape.tasks = {{.before = {}, .ops = {0}, .entry = true}, {.before = {0}, .ops = {}}};
  shape.end = 1;
  const std::int64_t submitted = StepRecords::now() + 1'000'000'000;
  StepRecords records(shape, 0, 2);
  record(records, 0, 0, 0, {submitted - 500, submitted - 400});
  record(records, 0, 1, 0, {submitted - 400});
  records.submitting(1);  // a second earlier than the tasks pretend to run
  record(records, 1, 0, 1, {submitted - 100, submitted - 50});
  record(records, 1, 1, 1, {submitted - 50});
  // Ready at -400, when the first step ended; it waited for worker 1, and worker 0 was idle.
  EXPECT_EQ(analyse(shape, records, 2).beside_ready, 300);

  StepRecords late(shape, 0, 2);
  const std::int64_t past = StepRecords::now() - 1'000'000'000;
  record(late, 0, 0, 0, {past, past + 100});
  record(late, 0, 1, 0, {past + 100});
  late.submitting(1);
  record(late, 1, 0, 1, {late.submitted(1) + 7, late.submitted(1) + 50});
  record(late, 1, 1, 1, {late.submitted(1) + 50});
  // Ready for a second, but submitted for 7 ns only.
  EXPECT_EQ(analyse(shape, late, 2).beside_ready, 7);
}

TEST(ProfileAnalysis, CountsOneStagingAStepForAnyNumberOfSteps) {
  // stage, a ─► b on one worker: each step stages the next between its own two tasks.
  StepShape shape;
  shape.ops = {{"gather", "plain", "", 0}, {"mul", "plain", "", 900}};
  shape.tasks = {{.before = {}, .ops = {0}, .staging = true},
                 {.before = {0}, .ops = {1}, .entry = true},
                 {.before = {1}, .ops = {}}};
  shape.end = 2;
  for (long counted : {1, 2, 9}) {
    StepRecords records(shape, 0, counted);
    record(records, 0, 0, 0, {90, 100});
    for (long step = 0; step <= counted; ++step) {
      const std::int64_t begin = 100 * (step + 1);
      record(records, step, 1, 0, {begin, begin + 90});
      if (step < counted) record(records, step + 1, 0, 0, {begin + 90, begin + 100});
      record(records, step, 2, 0, {begin + 100});
    }
    const Profile profile = analyse(shape, records, static_cast<std::size_t>(counted + 1));
    EXPECT_EQ(profile.steps, counted);
    EXPECT_EQ(profile.wall, counted * 100);
    expect_parts(profile.workers[0], counted * 90, counted * 10, 0, 0);
    ASSERT_EQ(profile.ops.size(), 2u);
    EXPECT_DOUBLE_EQ(profile.ops[0].microseconds, 0.090) << counted << " steps";
    EXPECT_DOUBLE_EQ(profile.ops[0].gflops, 10) << counted << " steps";
    EXPECT_DOUBLE_EQ(profile.ops[1].microseconds, 0.010) << counted << " steps";
    EXPECT_DOUBLE_EQ(profile.ops[1].share, 0.1) << counted << " steps";
    // No step was submitted behind the last: its op still took as long as it did.
    EXPECT_DOUBLE_EQ(analyse(shape, records, static_cast<std::size_t>(counted)).ops[1].microseconds,
                     0.010);
  }
}

TEST(StepRecords, GiveEachTaskCacheLinesOfItsOwn) {
  StepShape shape;
  for (std::size_t ops : {0, 1, 6, 7, 14, 15, 40})
    shape.tasks.push_back({.before = {}, .ops = std::vector<std::size_t>(ops, 0)});
  const auto number = [](long step, std::size_t task) {
    return static_cast<int>(10 * step + static_cast<long>(task));
  };
  std::vector<StepRecords> several;  // at whatever addresses the heap has
  std::set<std::uintptr_t> taken;
  for (long counted = 1; counted < 9; ++counted) {
    StepRecords& records = several.emplace_back(shape, 0, counted);
    for (long step = 0; step <= counted; ++step) {
      for (std::size_t task = 0; task < shape.tasks.size(); ++task) {
        const std::size_t count = 1 + shape.tasks[task].ops.size();
        record(records, step, task, number(step, task), std::vector<std::int64_t>(count, -1));
        std::set<std::uintptr_t> mine;
        const std::int64_t* stamps = records.stamps(static_cast<std::size_t>(step), task);
        for (std::size_t i = 0; i < count; ++i)
          mine.insert(reinterpret_cast<std::uintptr_t>(stamps + i) / 64);
        for (std::uintptr_t line : mine)
          EXPECT_TRUE(taken.insert(line).second) << "step " << step << ", task " << task;
      }
    }
    EXPECT_FALSE(StepRecords::Stamps(&records, counted + 1, 0, 0).recorded());
    for (long step = 0; step <= counted; ++step) {
      for (std::size_t task = 0; task < shape.tasks.size(); ++task)
        EXPECT_EQ(records.worker(static_cast<std::size_t>(step), task), number(step, task));
    }
  }
}

TEST(ProfileAnalysis, FollowsTheRingAndEndsWithTheLastCountedStep) {
  // stage ─► work, one worker, two sets: `work` follows the step before, and `stage` the last of
  // its set.
  StepShape shape;
  shape.ops = {{"gather", "plain", "", 0}, {"mul", "plain", "", 100}};
  shape.tasks = {{.before = {}, .ops = {0}, .staging = true},
                 {.before = {0}, .ops = {1}, .entry = true}};
  shape.end = 1;
  StepRecords records(shape, 0, 3);
  EXPECT_EQ(records.capacity(), 4u);
  EXPECT_FALSE(StepRecords::Stamps(&records, 4, 0, 0).recorded());
  record(records, 0, 0, 0, {100, 110});
  record(records, 0, 1, 0, {115, 200});
  record(records, 1, 0, 0, {205, 215});  // nothing it follows: 5 of the runtime
  record(records, 1, 1, 0, {218, 300});  // ready at 215: 3 of the runtime
  record(records, 2, 0, 0, {310, 320});  // ready at 200, when its set was free
  record(records, 3, 0, 0, {330, 350});  // runs ahead beside the last counted step
  record(records, 2, 1, 0, {352, 400});
  record(records, 3, 1, 0, {500, 600});  // outside
  const Profile profile = analyse(shape, records, 4);
  EXPECT_EQ(profile.steps, 3);
  EXPECT_EQ(profile.wall, 285);
  expect_parts(profile.workers[0], 85 + 82 + 48, 10 + 10 + 20, 5 + 3 + 10 + 10 + 2, 0);
  EXPECT_EQ(profile.all().total(), 285);
  EXPECT_DOUBLE_EQ(profile.per_step(300), 0.1);
  // The ops' times are of the three steps' own, whole.
  EXPECT_DOUBLE_EQ(profile.ops[0].microseconds, (85 + 82 + 48) / 3e3);
  EXPECT_DOUBLE_EQ(profile.ops[1].microseconds, (10 + 10 + 10) / 3e3);
  // Fewer steps than asked for.
  EXPECT_EQ(analyse(shape, records, 2).wall, 185);
  EXPECT_EQ(analyse(shape, records, 0).wall, 0);
}

}  // namespace
}  // namespace arenite::runtime
