#include <arenite/error.hpp>

#include "src/base/testing.hpp"
#include "src/runtime/testing.hpp"

#include <gtest/gtest.h>

namespace arenite::runtime {
namespace {

using namespace testing;
using arenite::testing::error_of;

class Programs : public ::testing::TestWithParam<int> {
 protected:
  Session session{SessionOptions{.workers = GetParam()}};
  plan::StateLayout state;
};

TEST_P(Programs, RunStepsInOrderAheadOfTheHost) {
  auto set = make_set(session, summing("sum", state));
  Program& program = set["sum"];
  float expected = 0;
  for (int i = 1; i <= 500; ++i) {
    *program.input<float>("x") = static_cast<float>(i);
    program.submit();
    expected += static_cast<float>(i);
  }
  program.wait();
  EXPECT_EQ(set.state<float>("total")[0], expected);
  EXPECT_EQ(program.steps(), 500);
}

TEST_P(Programs, MayBeDestroyedWithStepsUnderWay) {
  auto set = make_set(session, summing("sum", state, 20));
  for (int i = 0; i < 3; ++i) {
    *set["sum"].input<float>("x") = 1;
    set["sum"].submit();
  }
}

TEST_P(Programs, OfOneSetHaveInputsOfTheirOwn) {
  auto set = make_set(session, summing("a", state, 5), summing("b", state, 5));
  *set["a"].input<float>("x") = 1;
  *set["b"].input<float>("x") = 10;
  set["a"].submit();
  set["b"].submit();
  *set["a"].input<float>("x") = 100;
  set["a"].submit();
  set["a"].wait();
  EXPECT_EQ(set.state<float>("total")[0], 111);
}

TEST_P(Programs, MayBeAddedOverTheSameBlocks) {
  auto set = make_set(session, summing("sum", state));
  const auto run = [&](const char* name, float x) {
    *set[name].input<float>("x") = x;
    set[name].submit();
    return set.state<float>("total")[0];
  };
  const auto blocks = counters().blocks;
  EXPECT_EQ(run("sum", 1), 1);
  for (float i = 0; i < 3; ++i) {
    ProgramSpec more = summing("more", state, 1);
    more.entry = "sum";
    set.add(std::move(more));
    EXPECT_EQ(run("more", 10), 11 + 20 * i);
    EXPECT_EQ(run("sum", 10), 21 + 20 * i);
    set.remove("more");
    EXPECT_FALSE(set.has("more"));
  }
  EXPECT_EQ(counters().blocks, blocks);

  // The first one as well; what another has of the state stays.
  ProgramSpec more = summing("more", state, 1);
  more.entry = "sum";
  set.add(std::move(more));
  set.remove("sum");
  EXPECT_EQ(run("more", 1), 62);
  EXPECT_EQ(error_of([&] { set.remove("sum"); }), "no program 'sum'; expected one of more");
}

/// Steps of one program end before another of its entry fills the inputs that they share.
TEST_P(Programs, OfOneEntryShareInputs) {
  auto set = make_set(session, summing("a", state, 3));
  ProgramSpec more = summing("b", state);
  more.entry = "a";
  set.add(std::move(more));
  float expected = 0;
  for (int i = 1; i <= 20; ++i) {
    const char* const name = i % 3 == 0 ? "b" : "a";
    *set[name].input<float>("x") = static_cast<float>(i);
    set[name].submit();
    expected += static_cast<float>(i);
  }
  EXPECT_EQ(set.state<float>("total")[0], expected);
}

TEST_P(Programs, AreAddedOnlyWhereTheyFit) {
  auto set = make_set(session, summing("sum", state));
  EXPECT_EQ(error_of([&] { set.add(summing("sum", state)); }),
            "a second program 'sum'; expected one");
  EXPECT_EQ(error_of([&] { set.add(summing("apart", state)); }),
            "program 'apart': 256 bytes of block 'input'; expected at most the 0 that it has");
  Draft draft("large");
  draft.spec.entry = "sum";
  const ValueId x = draft.declare("x", StorageClass::input),
                total = draft.declare("total", StorageClass::buffer);
  draft.builder.add("accumulate", {total, draft.builder.add1("probe_add", {x, x},
                                                             {{"workspace", std::int64_t{4096}}})});
  EXPECT_EQ(error_of([&] { set.add(draft.finish(state)); }),
            "program 'large': 4352 bytes of block 'step'; expected at most the 256 that it has");
  Draft another("new");
  another.spec.entry = "sum";
  another.builder.add("accumulate", {another.declare("kept", StorageClass::buffer),
                                     another.declare("x", StorageClass::input)});
  EXPECT_EQ(error_of([&] { set.add(another.finish(state)); }),
            "program 'new': 768 bytes of block 'state'; expected at most the 512 that it has");
  EXPECT_EQ(error_of([&] { set.remove("large"); }), "no program 'large'; expected one of sum");
}

TEST_P(Programs, ReportAFailedStepAndKeepItFromThePersistentState) {
  auto set = make_set(session, summing("sum", state, 1, 13));
  Program& program = set["sum"];
  for (float value : {1.0f, 2.0f}) *program.input<float>("x") = value, program.submit();
  *program.input<float>("x") = 13;
  program.submit();
  try {
    // Whatever the schedule: two good steps before, nothing of the bad one or of those behind it.
    *program.input<float>("x") = 100;
    program.submit();
    program.wait();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "program 'sum', step 2, probe_add #0 (lane 0): an input that is refused; expected "
                 "data within the "
                 "op's limits");
  }
  EXPECT_EQ(set.state<float>("total")[0], 3);
  *program.input<float>("x") = 4;
  program.submit();
  EXPECT_NO_THROW(program.wait());
  EXPECT_EQ(set.state<float>("total")[0], 7);
}

TEST_P(Programs, DoNotHideTheErrorsOfOneAnother) {
  auto set = make_set(session, summing("a", state, 1, 13), summing("b", state));
  *set["a"].input<float>("x") = 13;
  set["a"].submit();
  *set["b"].input<float>("x") = 1;
  EXPECT_THROW(set["b"].submit(), Error);
  set["b"].submit();
  set["b"].wait();
  EXPECT_EQ(set.state<float>("total")[0], 1);
}

/// An op that refills an input with scratch of its own runs no step ahead: its scratch lies among
/// what the previous step still uses.
TEST_P(Programs, KeepScratchOfOneStepFromTheNext) {
  Draft draft("staged");
  const ValueId x = draft.declare("x", StorageClass::input),
                y = draft.declare("y", StorageClass::input),
                zero = draft.declare("zero", StorageClass::buffer),
                total = draft.declare("total", StorageClass::buffer);
  const ValueId refilled =
      draft.builder.add1("probe_add", {x, y}, {{"workspace", std::int64_t{4096}}});
  draft.spec.graph.storage(draft.spec.graph[refilled].storage).cls = StorageClass::input;
  ValueId value = refilled;
  for (int i = 0; i < 4; ++i)
    value = draft.builder.add1("probe_add", {value, zero}, {{"milliseconds", std::int64_t{1}}});
  draft.builder.add("accumulate", {total, value});
  auto set = make_set(session, draft.finish(state));
  for (int i = 0; i < 50; ++i) {
    *set["staged"].input<float>("x") = 1;
    *set["staged"].input<float>("y") = 0;
    set["staged"].submit();
  }
  set["staged"].wait();
  EXPECT_EQ(set.state<float>("total")[0], 50);
}

TEST_P(Programs, KeepOutputsForTheCaller) {
  Draft draft("outputs");
  const ValueId x = draft.declare("x", StorageClass::input),
                zero = draft.declare("zero", StorageClass::buffer);
  const ValueId first = draft.builder.add1("probe_add", {x, x});
  ValueId value = first;
  for (int i = 0; i < 6; ++i) value = draft.builder.add1("probe_add", {value, zero});
  const ValueId last = draft.builder.add1("probe_add", {value, x});
  draft.spec.graph.outputs = {first, last};
  auto set = make_set(session, draft.finish(state));
  Program& program = set["outputs"];
  EXPECT_THROW(program.output<float>(0), Error);  // before the first step
  for (int i = 1; i <= 5; ++i) {
    *program.input<float>("x") = static_cast<float>(i);
    program.submit();
    EXPECT_EQ(program.output<float>(0)[0], static_cast<float>(2 * i));
    EXPECT_EQ(program.output<float>(1)[0], static_cast<float>(3 * i));
  }
  EXPECT_THROW(program.output<double>(0), Error);
  EXPECT_THROW(program.output<float>(2), Error);
}

TEST_P(Programs, NameWhatIsWrong) {
  auto set = make_set(session, summing("sum", state));
  EXPECT_EQ(error_of([&] { set["train"]; }), "no program 'train'; expected one of sum");
  EXPECT_EQ(error_of([&] { set["sum"].input<float>("q"); }),
            "no input 'q'; expected a declared input of program 'sum'");
  EXPECT_EQ(error_of([&] { set["sum"].input<double>("x"); }),
            "input 'x' taken as elements of 8 bytes; expected float32");
  EXPECT_EQ(error_of([&] { set.state<float>("x"); }),
            "no persistent value 'x'; expected a parameter, optimizer state or buffer");
  EXPECT_EQ(error_of([&] { ProgramSet(session, kernels(), {}, {.task_sets = 1}); }),
            "1 task sets; expected at least 2: a task can be resubmitted only after it has ended");
}

TEST_P(Programs, UpdateStateInBlocks) {
  Draft draft("branch");
  const ValueId c = draft.builder.declare("c", DType::int32, {1}, StorageClass::input),
                x = draft.declare("x", StorageClass::input),
                zero = draft.declare("zero", StorageClass::buffer),
                total = draft.declare("total", StorageClass::buffer);
  std::vector<graph::RegionId> blocks{draft.builder.begin_region("if", {c})};
  draft.builder.end_region({draft.builder.add1(
      "accumulate", {total, draft.builder.add1("probe_add", {x, zero}, {{"refused", 13.0}})})});
  blocks.push_back(draft.builder.begin_region("if", {c}));
  draft.builder.end_region({total});
  draft.builder.add("assign", {total, draft.builder.add("if", {c}, {}, blocks).front()});
  auto set = make_set(session, draft.finish(state));
  Program& program = set["branch"];
  const auto step = [&](std::int32_t condition, float value) {
    *program.input<std::int32_t>("c") = condition;
    *program.input<float>("x") = value;
    program.submit();
    program.wait();
    return set.state<float>("total")[0];
  };
  EXPECT_EQ(step(1, 5), 5);
  EXPECT_EQ(step(0, 7), 5);
  EXPECT_EQ(step(0, 13), 5);  // not looked at
  EXPECT_EQ(step(-1, 2), 7);
  try {
    step(1, 13);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("probe_add #0"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("an input that is refused"), std::string::npos);
  }
  EXPECT_EQ(set.state<float>("total")[0], 7);
}

TEST_P(Programs, AskForTheBytesOfConstants) {
  Draft draft("constant");
  const ValueId c = draft.declare("c", StorageClass::constant),
                total = draft.declare("total", StorageClass::buffer);
  draft.builder.add("accumulate", {total, draft.builder.add1("probe_add", {c, c})});
  const ProgramSpec unbound = draft.finish(state);
  const float value = 21;
  for (const auto& [binding, text] : std::vector<std::pair<ConstantBinding, std::string>>{
           {{}, "constant 'c' has no bytes; expected 4 bytes bound by that name"},
           {{&value, 8}, "constant 'c' bound to 8 bytes; expected 4"}}) {
    ProgramSpec spec = unbound;
    spec.constants = {{"c", binding}};
    try {
      make_set(session, std::move(spec));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), "program 'constant': " + text);
    }
  }
  ProgramSpec spec = unbound;
  spec.constants = {{"c", {&value, 4}}};
  auto set = make_set(session, std::move(spec));
  set["constant"].submit();
  set["constant"].wait();
  EXPECT_EQ(set.state<float>("total")[0], 42);
}

INSTANTIATE_TEST_SUITE_P(Workers, Programs, ::testing::Values(1, 2));

}  // namespace
}  // namespace arenite::runtime
