#include <arenite/error.hpp>

#include "src/base/testing.hpp"
#include "src/runtime/environment.hpp"
#include "src/runtime/testing.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <tuple>
#include <vector>

namespace arenite::runtime {
namespace {

using namespace testing;
using arenite::testing::error_of;

/// total += the step's number, through `width` chains of `length` ops that share nothing but their
/// end, and out += total + width × number.
ProgramSpec counting(const std::string& name, plan::StateLayout& state, int width = 1,
                     int length = 1, double task_microseconds = 0) {
  Draft draft(name);
  const ValueId cursor = draft.builder.declare("cursor", DType::int64, {1}, StorageClass::input),
                zero = draft.declare("zero", StorageClass::buffer),
                total = draft.declare("total", StorageClass::buffer);
  const ValueId number = draft.builder.add1("probe_number", {cursor});
  // Refilled by staging, as batches are: a step ahead.
  draft.spec.graph.storage(draft.spec.graph[number].storage).cls = StorageClass::input;
  ValueId sum = total;
  for (int lane = 0; lane < width; ++lane) {
    draft.builder.context.lane = lane;
    ValueId value = number;
    for (int i = 0; i < length; ++i) value = draft.builder.add1("probe_add", {value, zero});
    sum = draft.builder.add1("accumulate", {sum, value});
  }
  return draft.finish(state, task_microseconds);
}

/// What ran, in the order in which it began. Tasks that nothing orders write slots of their own.
struct Marks {
  std::array<std::int64_t, 64> all{};
  std::atomic<std::size_t> count = 0;

  void add(std::int64_t mark) noexcept { all[count.fetch_add(1) % all.size()] = mark; }
};

Marks marks;

void run_mark(const KernelCall& call, const std::int64_t& mark) {
  marks.add(mark);
  call.out<float>(0)[0] = call.in<float>(0)[0];
}

void register_mark() {
  static const bool once = [] {
    register_operator(
        {.name = "probe_mark",
         .operands = {{"x"}},
         .results = {"y"},
         .attributes = {{"mark", graph::AttributeType::integer, std::int64_t{0}}},
         .infer =
             [](const graph::OpView& op) {
               return std::vector<graph::ResultType>{{DType::float32, op.operand(0).shape}};
             }},
        {{.name = "plain", .prepare = [](const graph::OpView& op) {
            return prepared<run_mark>(op.integer("mark"));
          }}});
    return true;
  }();
  static_cast<void>(once);
}

/// With several numbers of workers, and without a crew, too.
class Crews : public ::testing::TestWithParam<std::tuple<int, const char*>> {
 protected:
  Crews() { lent_.set("ARENITE_CREW", std::get<1>(GetParam())); }

  Session session{SessionOptions{.workers = std::get<0>(GetParam())}};
  plan::StateLayout state;

 private:
  LentVariables lent_;
};

constexpr float sum_to(long n) { return static_cast<float>(n * (n - 1) / 2); }

TEST_P(Crews, RunStepsInOrder) {
  auto set = make_set(session, counting("count", state, 3, 5));
  Program& program = set["count"];
  EXPECT_EQ(program.run({.steps = 400, .counters = {{{"cursor"}}}}), 400);
  EXPECT_EQ(set.state<float>("total")[0], 3 * sum_to(400));
  EXPECT_EQ(program.steps(), 400);
  // In stretches of any length, an odd number of steps over two task sets too.
  long done = 400;
  for (long count : {1L, 1L, 2L, 3L, 0L, 94L}) {
    EXPECT_EQ(program.run({.steps = count, .counters = {{{"cursor", done}}}}), count);
    done += count;
  }
  EXPECT_EQ(set.state<float>("total")[0], 3 * sum_to(501));
}

TEST_P(Crews, CountByAStride) {
  auto set = make_set(session, counting("count", state));
  EXPECT_EQ(set["count"].run({.steps = 4, .counters = {{{"cursor", 100, -10}}}}), 4);
  EXPECT_EQ(set.state<float>("total")[0], 100 + 90 + 80 + 70);
}

TEST_P(Crews, CountTwoInputs) {
  Draft draft("two");
  ValueId total = draft.declare("total", StorageClass::buffer);
  for (const char* name : {"cursor", "position"}) {
    const ValueId counted = draft.builder.declare(name, DType::int64, {1}, StorageClass::input);
    total =
        draft.builder.add1("accumulate", {total, draft.builder.add1("probe_number", {counted})});
  }
  auto set = make_set(session, draft.finish(state, 0));
  const auto run = [&](Counter one, Counter other) {
    return set["two"].run({.steps = 3, .counters = {{one, other}}});
  };
  EXPECT_EQ(run({"cursor", 1}, {"position", 1000, 100}), 3);
  EXPECT_EQ(set.state<float>("total")[0], 1 + 2 + 3 + 1000 + 1100 + 1200);
  EXPECT_EQ(run({}, {"position", 5, 0}), 3);
  EXPECT_EQ(error_of([&] { run({"cursor"}, {"q"}); }),
            "no input 'q'; expected a declared input of program 'two'");
}

TEST_P(Crews, TakeTurnsWithSubmittedSteps) {
  auto set = make_set(session, counting("a", state, 2, 3), counting("b", state, 2, 3));
  float expected = 0;
  for (int i = 0; i < 50; ++i) {
    *set["a"].input<std::int64_t>("cursor") = i;
    set["a"].submit();
    EXPECT_EQ(set["b"].run({.steps = 3, .counters = {{{"cursor", i}}}}), 3);
    EXPECT_EQ(set["a"].run({.steps = 1, .counters = {{{"cursor", 1000}}}}), 1);
    expected += 2 * static_cast<float>(i + (i + i + 1 + i + 2) + 1000);
  }
  EXPECT_EQ(set.state<float>("total")[0], expected);
}

TEST_P(Crews, StopWhenTold) {
  auto set = make_set(session, counting("count", state, 1, 2));
  Program& program = set["count"];
  std::atomic<bool> stop{true};
  const long begun = program.run({.steps = 1000, .counters = {{{"cursor"}}}, .stop = &stop});
  EXPECT_LE(begun, 2);  // those that were under way: a step a task set
  EXPECT_EQ(set.state<float>("total")[0], sum_to(begun));
  stop = false;
  const long in_time =
      program.run({.steps = 1'000'000'000, .counters = {{{"cursor"}}}, .seconds = 0.1});
  EXPECT_GT(in_time, 0);
  EXPECT_LT(in_time, 1'000'000'000);
  EXPECT_EQ(program.steps(), begun + in_time);

  long ran = 0;
  // Longer where this thread was held up for so long.
  for (int patience = 10; ran == 0 && patience < 10'000; patience *= 4) {
    stop = false;
    const std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(patience));
      stop = true;
    });
    ran = program.run({.steps = 1'000'000'000, .counters = {{{"cursor"}}}, .stop = &stop});
  }
  EXPECT_GT(ran, 0);
  EXPECT_LT(ran, 1'000'000'000);
}

TEST_P(Crews, ReportAFailedStepAndKeepItFromThePersistentState) {
  Draft draft("refuse");
  const ValueId cursor = draft.builder.declare("cursor", DType::int64, {1}, StorageClass::input),
                zero = draft.declare("zero", StorageClass::buffer),
                total = draft.declare("total", StorageClass::buffer);
  const ValueId number = draft.builder.add1("probe_number", {cursor});
  draft.builder.add("accumulate",
                    {total, draft.builder.add1("probe_add", {number, zero}, {{"refused", 13.0}})});
  auto set = make_set(session, draft.finish(state));
  Program& program = set["refuse"];
  try {
    program.run({.steps = 1000, .counters = {{{"cursor"}}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "program 'refuse', step 13, probe_add #1 (lane 0): an input that is refused; "
                 "expected data within the op's limits");
  }
  EXPECT_EQ(set.state<float>("total")[0], sum_to(13));
  EXPECT_LE(program.steps(), 15);  // nothing was begun behind it
  EXPECT_EQ(program.run({.steps = 5, .counters = {{{"cursor", 100}}}}), 5);
  EXPECT_EQ(set.state<float>("total")[0], sum_to(13) + 510);
}

TEST_P(Crews, OfManyThreadsShareTheWorkers) {
  constexpr int threads = 3;
  std::vector<std::thread> all;
  std::array<float, threads> totals{};
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      plan::StateLayout own;
      auto set = make_set(session, counting("count", own, 4, 3));
      for (int round = 0; round < 20; ++round)
        set["count"].run({.steps = 20, .counters = {{{"cursor", 20 * round}}}});
      totals[static_cast<std::size_t>(i)] = set.state<float>("total")[0];
    });
  }
  for (std::thread& thread : all) thread.join();
  for (float total : totals) EXPECT_EQ(total, 4 * sum_to(400));
}

TEST_P(Crews, OfOneTaskAStepNeedOneWorker) {
  auto set = make_set(session, counting("small", state, 4, 8, 1e9));
  EXPECT_EQ(set["small"].run({.steps = 300, .counters = {{{"cursor"}}}}), 300);
  EXPECT_EQ(set.state<float>("total")[0], 4 * sum_to(300));
}

/// Chains of marked ops behind one input, by the marks; each in the lane that its tens say.
struct MarkedChains {
  Session session{SessionOptions{.workers = 1}};
  plan::StateLayout state;

  /// What two steps of one worker ran.
  std::vector<std::int64_t> run(const std::vector<std::vector<std::int64_t>>& chains) {
    register_mark();
    Draft draft("chains");
    const ValueId x = draft.declare("x", StorageClass::input);
    for (const auto& chain : chains) {
      ValueId value = x;
      for (std::int64_t number : chain) {
        draft.builder.context.lane = static_cast<int>(number / 10);
        value = draft.builder.add1("probe_mark", {value}, {{"mark", number}});
      }
    }
    auto set = make_set(session, draft.finish(state));
    marks.count = 0;
    EXPECT_EQ(set["chains"].run({.steps = 2}), 2);
    return {marks.all.begin(), marks.all.begin() + static_cast<std::ptrdiff_t>(marks.count)};
  }
};

TEST(Crew, BeginsWithWhatTheStepWaitsForLongest) {
  const auto ran = MarkedChains().run({{10}, {20}, {1, 2, 3}, {30}});
  ASSERT_EQ(ran.size(), 12u);
  for (std::size_t step : {0, 6}) {
    EXPECT_EQ(ran[step], 1);
    EXPECT_EQ(ran[step + 1], 2);
  }
}

TEST(Crew, GoesOnWithALane) {
  const auto ran = MarkedChains().run({{1, 2, 3, 4}, {11, 12, 13, 14}});
  ASSERT_EQ(ran.size(), 16u);
  for (std::size_t i = 0; i < 16; i += 4) {
    for (int next = 1; next < 4; ++next)
      EXPECT_EQ(ran[i + static_cast<std::size_t>(next)], ran[i] + next) << i;
  }
}

TEST_P(Crews, RunWhatHasNoOps) {
  Draft draft("nothing");
  draft.declare("x", StorageClass::input);
  auto set = make_set(session, draft.finish(state));
  EXPECT_EQ(set["nothing"].run({.steps = 10}), 10);
}

TEST_P(Crews, NameWhatIsWrong) {
  auto set = make_set(session, counting("count", state), summing("sum", state));
  EXPECT_EQ(error_of([&] { set["count"].run({.steps = -1}); }), "-1 steps; expected at least 0");
  EXPECT_EQ(error_of([&] { set["count"].run({.counters = {{{"q"}}}}); }),
            "no input 'q'; expected a declared input of program 'count'");
  EXPECT_EQ(error_of([&] { set["sum"].run({.counters = {{{"x"}}}}); }),
            "input 'x' of type float32[1] as a counter; expected one int64");
}

INSTANTIATE_TEST_SUITE_P(Workers, Crews,
                         ::testing::Combine(::testing::Values(1, 2, 4),
                                            ::testing::Values("on", "off")));

TEST(Crew, IsOnOrOff) {
  Session session{SessionOptions{.workers = 1}};
  plan::StateLayout state;
  LentVariables lent;
  lent.set("ARENITE_CREW", "of");
  try {
    make_set(session, counting("count", state));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "ARENITE_CREW='of'; expected on, or off to submit each task of Program::run "
                 "through StarPU");
  }
}

}  // namespace
}  // namespace arenite::runtime
