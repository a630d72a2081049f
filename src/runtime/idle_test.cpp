#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "src/runtime/idle.hpp"

namespace arenite::runtime {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// CPU time of the whole process while it has nothing to do.
std::chrono::nanoseconds spent_in(std::chrono::milliseconds idle) {
  const auto before = cpu_time();
  std::this_thread::sleep_for(idle);
  return cpu_time() - before;
}

/// total += x.
ProgramSpec summing(plan::StateLayout& state) {
  ProgramSpec spec;
  spec.name = "sum";
  graph::Builder builder(spec.graph, operators());
  const auto x = builder.declare("x", DType::float32, {1}, graph::StorageClass::input),
             total = builder.declare("total", DType::float32, {1}, graph::StorageClass::buffer);
  builder.add("accumulate", {total, x});
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

// Two workers that poll would take most of what two cores have. 50 ms are the promise; a machine
// that does other things beside may need longer to let the watch run.
TEST_F(Idle, BurnsNoProcessorTime) {
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(100ms);
    EXPECT_TRUE(idle_watch().paused());
    EXPECT_LT(spent_in(300ms), 15ms) << round;
    step();
    EXPECT_FALSE(idle_watch().paused());
    program.wait();
    step();  // under way, and never waited for
  }
  EXPECT_EQ(total(), submitted);
}

TEST_F(Idle, BurnsNoneBeforeTheFirstStep) {
  std::this_thread::sleep_for(100ms);
  EXPECT_LT(spent_in(300ms), 15ms);
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
