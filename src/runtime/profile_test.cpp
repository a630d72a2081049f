// Profiles of steps that take known times.
#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include "src/base/json.hpp"
#include "src/base/testing.hpp"
#include "src/runtime/profile_records.hpp"

#include <atomic>
#include <chrono>
#include <sstream>
#include <thread>

namespace arenite::runtime {
namespace {

using arenite::testing::error_of;
using graph::Builder;
using graph::StorageClass;
using graph::ValueId;

/// What the naps themselves say they took: a witness that is right on a busy machine, too.
std::atomic<std::int64_t> napped{0};

/// `nap` sleeps: a busy machine may lengthen it, never shorten it.
void nap(const KernelCall& call, const std::int64_t& milliseconds) {
  const std::int64_t begin = StepRecords::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  call.out<float>(0)[0] = call.in<float>(0)[0] + call.in<float>(1)[0];
  napped += StepRecords::now() - begin;
}

void register_nap() {
  static const bool once = [] {
    register_operator(
        {.name = "nap",
         .operands = {{"x"}, {"y"}},
         .results = {"sum"},
         .attributes = {{"milliseconds", graph::AttributeType::integer, std::int64_t{5}}},
         .infer =
             [](const graph::OpView&) {
               return std::vector<graph::ResultType>{{DType::float32, Shape{1}}};
             },
         .cost = [](const graph::OpView&) { return graph::Cost{.flops = 5e6, .bytes = 12}; }},
        {{.name = "plain", .prepare = [](const graph::OpView& op) {
            return prepared<nap>(op.integer("milliseconds"));
          }}});
    return true;
  }();
  static_cast<void>(once);
}

class Naps {
 public:
  explicit Naps(int workers) : session_({.workers = workers}) {
    register_nap();
    x_ = builder_.declare("x", DType::float32, {1}, StorageClass::input);
  }

  ValueId x() const { return x_; }
  ValueId add(ValueId a, ValueId b, const char* where, int lane = 0) {
    builder_.context = {.phase = Phase::forward, .lane = lane, .where = where};
    return builder_.add1("nap", {a, b});
  }

  Program& program() {
    graph::select(spec_.graph, *kernel_selector(kernels()));
    spec_.name = "naps";
    graph::TargetProfile one_op_a_task;
    one_op_a_task.task_microseconds = one_op_a_task.phase_microseconds = 0;
    spec_.schedule = graph::coarsen(spec_.graph, one_op_a_task);
    spec_.plan = plan::plan_step(spec_.graph, spec_.schedule, state_);
    std::vector<ProgramSpec> specs;
    specs.push_back(std::move(spec_));
    set_ = std::make_unique<ProgramSet>(session_, kernels(), std::move(specs));
    return (*set_)["naps"];
  }

 private:
  Session session_;
  ProgramSpec spec_;
  Builder builder_{spec_.graph, operators()};
  plan::StateLayout state_;
  std::unique_ptr<ProgramSet> set_;
  ValueId x_;
};

Profile run(Program& program, long recorded, int submitted) {
  program.start_profile(recorded);
  for (int i = 0; i < submitted; ++i) {
    *program.input<float>("x") = 1;
    program.submit();
  }
  return program.stop_profile();
}

constexpr double nap_us = 5000;

/// A busy machine stretches naps and lets ready tasks wait. What holds all the same is checked on
/// any run; the rest on the first of ten runs below `limit` µs a step, which a machine with a core
/// to spare always has.
struct Observed {
  Profile profile;
  double napped = 0;  // µs a step
  bool quiet = false;
};

Observed observe(Program& program, double limit) {
  Observed seen;
  for (int attempt = 0; attempt < 10 && !seen.quiet; ++attempt) {
    napped = 0;
    seen.profile = run(program, 6, 6);
    seen.napped = seen.profile.per_step(napped);
    seen.quiet = seen.profile.per_step(seen.profile.wall) < limit;
  }
  return seen;
}

TEST(Profiling, SeesAChainKeepOneWorkerBusy) {
  for (int workers : {1, 2}) {
    Naps naps(workers);
    ValueId value = naps.x();
    for (int i = 0; i < 4; ++i) value = naps.add(value, value, "chain");
    const auto [profile, napped_us, quiet] = observe(naps.program(), 6 * nap_us);
    EXPECT_EQ(profile.steps, 6);
    EXPECT_EQ(profile.program, "naps");
    const TimeParts all = profile.all();
    EXPECT_EQ(all.total(), workers * profile.wall);
    EXPECT_EQ(all.staging, 0);
    EXPECT_GE(napped_us, 4 * nap_us);
    EXPECT_GE(profile.per_step(all.kernels), napped_us);
    EXPECT_LT(profile.per_step(all.kernels), 1.25 * napped_us);
    EXPECT_GT(all.runtime, 0);
    // One task runs or waits at any time, and never has the other worker anything to do.
    EXPECT_EQ(all.idle, (workers - 1) * profile.wall);
    ASSERT_EQ(profile.ops.size(), 1u);
    EXPECT_NEAR(profile.ops[0].microseconds, profile.per_step(all.kernels), 0.01);
    EXPECT_NEAR(profile.ops[0].gflops, 4 * 5e3 / profile.ops[0].microseconds, 1e-3);
    if (quiet) {
      EXPECT_LT(profile.per_step(all.runtime), 2 * nap_us);
    }
  }
}

TEST(Profiling, SeesADiamondsHalvesSideBySide) {
  Naps naps(2);
  const ValueId top = naps.add(naps.x(), naps.x(), "top"), left = naps.add(top, top, "left", 0),
                right = naps.add(top, top, "right", 1);
  naps.add(left, right, "bottom");
  // Run one after another the halves would make four naps.
  const auto [profile, napped_us, quiet] = observe(naps.program(), 3.9 * nap_us);
  const TimeParts all = profile.all();
  EXPECT_EQ(all.total(), 2 * profile.wall);
  EXPECT_GE(napped_us, 4 * nap_us);
  EXPECT_GE(profile.per_step(all.kernels), napped_us);
  EXPECT_LT(profile.per_step(all.kernels), 1.25 * napped_us);
  ASSERT_EQ(profile.ops.size(), 4u);
  double alone = 0;
  for (const OpTime& op : profile.ops) {
    if (op.where == "top" || op.where == "bottom") alone += op.microseconds;
  }
  // While the top and the bottom run, the other worker has nothing to do; else little is lost.
  EXPECT_GE(profile.per_step(all.idle), alone - 0.01);
  if (quiet) {
    EXPECT_LT(profile.per_step(all.idle), alone + 2 * nap_us);
    EXPECT_LT(profile.per_step(all.runtime), 2 * nap_us);
  }
}

TEST(Profiling, LeavesAHostThatSubmitsLateToTheRuntime) {
  Naps naps(1);
  naps.add(naps.x(), naps.x(), "only");
  Program& program = naps.program();
  program.start_profile(10);
  for (int i = 0; i < 4; ++i) {
    program.submit();
    program.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const Profile profile = program.stop_profile();
  EXPECT_EQ(profile.steps, 4);  // fewer than asked for
  EXPECT_EQ(profile.all().total(), profile.wall);
  EXPECT_GE(profile.unsubmitted, 3 * 5'000'000);
  EXPECT_LE(profile.unsubmitted, profile.all().runtime);
}

TEST(Profiling, IsPrintedAndWrittenAsJson) {
  Naps naps(1);
  naps.add(naps.x(), naps.x(), "only");
  Program& program = naps.program();
  const Profile profile = run(program, 2, 5);  // the later ones run unrecorded
  std::ostringstream text;
  text << profile;
  for (const char* word : {"where 2 steps of 'naps' went", "kernels", "staging", "runtime", "idle",
                           "nap", "only", "plain", "100.0 %"})
    EXPECT_NE(text.str().find(word), std::string::npos) << word << "\n" << text.str();
  const Json json = parse_json(to_json(profile));
  const auto& parts = json.at("us_per_step");
  const double sum = parts.at("kernels").number() + parts.at("staging").number() +
                     parts.at("runtime").number() + parts.at("idle").number();
  EXPECT_NEAR(sum * 2, json.at("wall_us").number(), 1e-3);
  EXPECT_EQ(json.at("ops").at(0).at("where"), "only");
}

TEST(Profiling, RefusesWhatItCannotRecord) {
  Naps naps(1);
  naps.add(naps.x(), naps.x(), "only");
  Program& program = naps.program();
  EXPECT_EQ(error_of([&] { program.start_profile(0); }),
            "a profile of 0 steps; expected 1 to 100000");
  EXPECT_EQ(error_of([&] { program.start_profile(100001); }),
            "a profile of 100001 steps; expected 1 to 100000");
  EXPECT_EQ(error_of([&] { program.stop_profile(); }),
            "no profile of program 'naps' under way; expected a call of start_profile first");
  program.start_profile(3);
  EXPECT_EQ(program.stop_profile().steps, 0);
}

}  // namespace
}  // namespace arenite::runtime
