#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include <sched.h>
#include <starpu.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "src/runtime/idle.hpp"

namespace arenite::runtime {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds cpu_time(clockid_t of = CLOCK_PROCESS_CPUTIME_ID) {
  timespec now{};
  clock_gettime(of, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// CPU time of the whole process while it has nothing to do.
std::chrono::nanoseconds spent_in(std::chrono::milliseconds idle) {
  const auto before = cpu_time();
  std::this_thread::sleep_for(idle);
  return cpu_time() - before;
}

/// Whether the process falls quiet: within seconds, because a machine that does other things beside
/// may let the watch and the workers run late. Workers that poll never do: two of them would spend
/// 300 to 600 ms of each 300.
bool falls_quiet() {
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < give_up) {
    if (idle_watch().paused() && spent_in(300ms) < 15ms) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

/// total += x.
ProgramSpec summing(plan::StateLayout& state) {
  ProgramSpec spec;
  spec.name = "sum";
  graph::Builder builder(spec.graph, operators());
  const auto x = builder.declare("x", DType::float32, {1}, graph::StorageClass::input),
             total = builder.declare("total", DType::float32, {1}, graph::StorageClass::buffer);
  builder.add("accumulate", {total, x});
  graph::keep_state(spec.graph, operators());
  graph::select(spec.graph, *kernel_selector(kernels()));
  spec.schedule = graph::coarsen(spec.graph, spec.target);
  spec.plan = plan::plan_step(spec.graph, spec.schedule, state);
  return spec;
}

struct Idle : ::testing::Test {
  Session session{{.workers = 2}};
  plan::StateLayout state;
  std::vector<ProgramSpec> specs{summing(state)};
  ProgramSet programs{session, kernels(), specs};
  Program& program = programs["sum"];
  float submitted = 0;

  void step() {
    *program.input<float>("x") = 1;
    program.submit();
    ++submitted;
  }
  float total() { return programs.state<float>("total")[0]; }
};

TEST_F(Idle, BurnsNoProcessorTime) {
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(falls_quiet()) << round;
    const auto woken = std::chrono::steady_clock::now();
    step();
    const bool awake = !idle_watch().paused();
    // Only a test that was held up itself can find them asleep again.
    if (std::chrono::steady_clock::now() - woken < IdleWatch::default_period) {
      EXPECT_TRUE(awake) << round;
    }
    program.wait();
    step();  // under way, and never waited for
  }
  EXPECT_EQ(total(), submitted);
}

// The best of several: a machine that does other things beside runs the watch late.
TEST_F(Idle, PausesWithin50Milliseconds) {
  auto fastest = std::chrono::nanoseconds::max();
  for (int round = 0; round < 20; ++round) {
    step();
    program.wait();
    const auto idle_since = std::chrono::steady_clock::now();
    while (!idle_watch().paused() && std::chrono::steady_clock::now() - idle_since < 1s) {
      std::this_thread::sleep_for(1ms);
    }
    fastest =
        std::min<std::chrono::nanoseconds>(fastest, std::chrono::steady_clock::now() - idle_since);
  }
  EXPECT_LE(fastest, 50ms);
  EXPECT_EQ(total(), submitted);
}

TEST_F(Idle, BurnsNoneBeforeTheFirstStep) { EXPECT_TRUE(falls_quiet()); }

// Who builds programs has the cores for himself: nothing waits for the watch to look twice.
TEST(IdleFromTheStart, WorkersSleep) {
  const Session session({.workers = 2});
  EXPECT_TRUE(idle_watch().paused());
}

// On a core together with a thread that has something to do. They would have half of it each.
TEST(IdleFromTheStart, WorkersThatLookForTasksLetOthersRun) {
  const Session session({.workers = 1});
  const IdleWatch::Submission awake(idle_watch());
  static constinit std::atomic<int> core{-1};  // none of StarPU's locks is known to ThreadSanitizer
  starpu_execute_on_each_worker([](void*) { core = sched_getcpu(); }, nullptr, STARPU_CPU);
  std::chrono::nanoseconds own{}, all{};
  std::thread([&] {
    cpu_set_t there;
    CPU_ZERO(&there);
    CPU_SET(core, &there);
    ASSERT_EQ(sched_setaffinity(0, sizeof there, &there), 0);
    const auto before = cpu_time();
    while (own < 200ms) own = cpu_time(CLOCK_THREAD_CPUTIME_ID);
    all = cpu_time() - before;
  }).join();
  EXPECT_LT(all, 1.3 * own);
}

TEST_F(Idle, RestsWhenAskedAndOnlyWithNothingToDo) {
  step();
  idle_watch().rest();  // perhaps under way still
  program.wait();
  EXPECT_EQ(total(), submitted);
  int rested = 0;
  for (int i = 0; i < 200; ++i) {
    idle_watch().rest();
    rested += idle_watch().paused();
    idle_watch().rest();  // once more is no second pause
    step();
    program.wait();
  }
  EXPECT_EQ(total(), submitted);
  EXPECT_GT(rested, 100);  // a worker that is held up keeps its task a little longer
}

/// Pauses meet submissions: with a watch that looks all the time, no step is lost or left asleep.
TEST_F(Idle, LosesNoStep) {
  idle_watch().stop();
  idle_watch().start(20us);
  int pauses = 0;
  for (int i = 0; i < 5000; ++i) {
    pauses += idle_watch().paused();
    step();
    if (i % 3 == 0) program.wait();
    if (i % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 97));
  }
  program.wait();
  EXPECT_EQ(total(), submitted);
  EXPECT_GT(pauses, 10);
}

TEST_F(Idle, EndsAsleepOrAwake) {
  step();
  std::this_thread::sleep_for(100ms);
  // The session, its programs and StarPU end while the workers sleep.
}

}  // namespace
}  // namespace arenite::runtime
