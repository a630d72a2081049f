// What is made of recorded steps, on stamps made up by hand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "src/runtime/capture/testing.hpp"
#include "src/runtime/capture/writers.hpp"

namespace arenite::runtime {
namespace {

using testing::end_of;
using testing::slices;

/// Two lanes and what joins them:   a ─► c, b ─► c, where c takes bytes of b; one value a task.
CaptureShape small_shape() {
  CaptureShape shape;
  shape.steps.program = "small";
  shape.steps.workers = 2;
  shape.steps.ops = {
      {"mul", "plain", "left", 50}, {"mul", "plain", "right", 0}, {"add", "", "", 0}};
  shape.steps.tasks = {{.before = {}, .ops = {0}, .entry = true},
                       {.before = {}, .ops = {1}, .entry = true},
                       {.before = {0, 1}, .ops = {2}}};
  shape.steps.end = 2;
  shape.tasks.resize(3);
  shape.tasks[0].name = "forward left (lane 0)";
  shape.tasks[1].name = "forward right (lane 1)";
  shape.tasks[2].name = "backward add";
  shape.tasks[2].phase = Phase::backward;
  shape.tasks[2].reuse = {{1, "'sum' takes bytes of 'y'"}};
  shape.traffic = {{8, 4}, {8, 4}, {8, 4}};
  shape.blocks = {{.name = "step", .peak = 512, .lower_bound = 512, .optimal = true}};
  const auto tenant = [](std::string name, std::int64_t offset,
                         std::vector<CaptureShape::Touch> touches) {
    return CaptureShape::Tenant{.name = std::move(name),
                                .label = "activation",
                                .offset = offset,
                                .bytes = 256,
                                .touches = std::move(touches)};
  };
  shape.tenants = {tenant("x", 0, {{0, 0}, {2, 0}}), tenant("y", 256, {{1, 0}}),
                   tenant("sum", 256, {{2, 0}})};
  return shape;
}

RecordedStep step_at(std::int64_t start, std::int64_t b_end) {
  RecordedStep step;
  step.submitted = start - 500;
  step.runs = {{.worker = 0, .stamps = {start, start + 1000}},
               {.worker = 1, .stamps = {start + 100, start + b_end}},
               {.worker = 0, .stamps = {start + 2000, start + 3000}}};
  return step;
}

CapturedProgram small_program() {
  CapturedProgram program{.shape = small_shape(), .steps = {}};
  program.steps = {step_at(10'000, 1800), step_at(20'000, 900)};
  program.steps[0].number = 4;
  program.steps[1].number = 5;
  return program;
}

TEST(Captured, SaysWhatATaskWaitedForLast) {
  const CapturedProgram program = small_program();
  EXPECT_EQ(wait_of(program, 0, 0).reason, Wait::For::submission);
  EXPECT_EQ(wait_of(program, 0, 0).ready, 9500);
  EXPECT_EQ(wait_of(program, 0, 2).reason, Wait::For::reuse);  // the edge is there for bytes only
  EXPECT_EQ(wait_of(program, 0, 2).task, 1u);
  EXPECT_EQ(wait_of(program, 0, 2).ready, 11'800);
  EXPECT_EQ(wait_of(program, 1, 2).reason, Wait::For::data);
  EXPECT_EQ(wait_of(program, 1, 2).ready, 21'000);
  CapturedProgram late = program;
  late.steps[1].submitted = 12'000;
  EXPECT_EQ(wait_of(late, 1, 0).reason, Wait::For::step);
  EXPECT_EQ(wait_of(late, 1, 0).ready, 13'000);
  late.shape.steps.tasks[0].entry = false;
  late.shape.steps.task_sets = 1;
  EXPECT_EQ(wait_of(late, 1, 0).reason, Wait::For::task_set);
}

TEST(Captured, FindsTenantsThatMeet) {
  CapturedProgram program = small_program();
  EXPECT_EQ(clashes(program), 0u);
  program.steps[1].runs[1].stamps[1] = 22'500;  // y is still written when sum begins
  EXPECT_EQ(clashes(program), 1u);
  program.shape.tenants[1].offset = 512;
  EXPECT_EQ(clashes(program), 0u);
}

TEST(Captured, KnowsLifetimesAndDurations) {
  CapturedProgram program = small_program();
  const RecordedStep& step = program.steps[0];
  EXPECT_EQ(lifetime(program.shape, step, 0).begin, 10'000);
  EXPECT_EQ(lifetime(program.shape, step, 0).end, 13'000);
  EXPECT_EQ(lifetime(program.shape, step, 1).end, 11'800);
  EXPECT_EQ(duration(program.shape, step).length(), 3000);
  program.shape.steps.tasks[0].staging = true;
  EXPECT_EQ(duration(program.shape, step).begin, 10'100);
}

TEST(Records, KeepTheLastSteps) {
  StepShape shape;
  shape.tasks = {{.before = {}, .ops = {}}};
  shape.task_sets = 2;
  StepRecords records = StepRecords::last(shape, 3);
  for (long step = 0; step < 10; ++step) {
    records.submitting(step, 7);
    StepRecords::Stamps(&records, step, 0, 1)(100 * step);
  }
  EXPECT_EQ(records.counted(), 3u);
  // With those that may be under way beside them.
  std::map<long, std::int64_t> begins;
  for (std::size_t row = 0; row < records.capacity(); ++row) {
    RecordedStep step;
    ASSERT_TRUE(records.read(row, step));
    EXPECT_EQ(step.turn, 7);
    EXPECT_EQ(step.runs[0].worker, 1);
    begins[step.number] = step.runs[0].time().begin;
  }
  EXPECT_EQ(begins,
            (std::map<long, std::int64_t>{{5, 500}, {6, 600}, {7, 700}, {8, 800}, {9, 900}}));
}

TEST(Records, TellNothingOfAStepThatIsNotWhole) {
  StepShape shape;
  shape.tasks = {{.before = {}, .ops = {0}}, {.before = {}, .ops = {}}};
  StepRecords records = StepRecords::last(shape, 1);  // and two rows more
  RecordedStep step;
  EXPECT_FALSE(records.read(0, step));
  const auto run = [&](long number, std::size_t task) {
    StepRecords::Stamps stamp(&records, number, task, 0);
    for (std::size_t i = 0; i <= shape.tasks[task].ops.size(); ++i) stamp(number);
  };
  records.submitting(0);
  run(0, 0);
  EXPECT_FALSE(records.read(0, step));
  run(0, 1);
  EXPECT_TRUE(records.read(0, step));
  records.submitting(3);  // the same row
  EXPECT_FALSE(records.read(0, step));
  run(3, 0);
  EXPECT_FALSE(records.read(0, step));
  {
    StepRecords::Stamps stamp(&records, 3, 1, 0);
    stamp(3);
    EXPECT_FALSE(records.read(0, step));
  }
  EXPECT_TRUE(records.read(0, step));
  EXPECT_EQ(step.number, 3);
}

TEST(Records, KnowWhenAnotherProgramHadItsTurn) {
  const int one = 0, other = 0;
  const long first = take_turn(&one);
  EXPECT_EQ(take_turn(&one), first);
  EXPECT_NE(take_turn(&other), first);
  EXPECT_NE(take_turn(&one), first);
}

CapturedProcess process_of(CapturedSet set) {
  CapturedProcess process;
  process.sets.push_back(std::move(set));
  return process;
}

TEST(Trace, HasTasksWaitsTenantsAndCounters) {
  const Json trace = parse_json(to_trace_json(
      process_of({.programs = {small_program()}, .on_devices = {}, .blocks = {{.name = "step"}}})));

  const std::vector<Json> worker = slices(trace, 1, 1);
  std::vector<std::string> names;
  for (const Json& event : worker) names.push_back(event.at("name").text());
  EXPECT_EQ(names, (std::vector<std::string>{
                       "forward left (lane 0)", "mul left",
                       "idle: waits for bytes of forward right (lane 1): 'sum' takes bytes of 'y'",
                       "runtime: a task is ready", "backward add", "add",
                       "idle: waits for the host to submit the step", "runtime: a task is ready",
                       "forward left (lane 0)", "mul left", "runtime: a task is ready",
                       "backward add", "add"}));
  EXPECT_EQ(worker[0].at("ts"), 0.0);  // the first of all
  EXPECT_EQ(worker[1].at("args").at("gflops_per_second"), 0.05);
  EXPECT_EQ(worker[1].at("args").at("bytes_read"), 8);
  EXPECT_EQ(worker[4].at("args").at("begun_us_after_ready"), 0.2);
  EXPECT_EQ(worker[4].at("args").at("phase"), "backward");

  // Of the first step only: in the second, what it waited for last ran on the same worker.
  EXPECT_EQ(std::ranges::count_if(trace.at("traceEvents").items(),
                                  [](const Json& e) { return e.at("ph") == "s"; }),
            1);
  const std::vector<Json> sharing = slices(trace, 2, 2);
  ASSERT_EQ(sharing.size(), 4u);
  for (std::size_t i = 1; i < sharing.size(); ++i)
    EXPECT_LE(end_of(sharing[i - 1]), sharing[i].at("ts").number() + 1e-6);
  EXPECT_EQ(sharing[1].at("name"), "sum");

  std::vector<std::int64_t> live;
  for (const Json& event : trace.at("traceEvents").items()) {
    if (event.at("ph") == "C") live.push_back(event.at("args").at("activation").integer());
  }
  EXPECT_EQ(live, (std::vector<std::int64_t>{256, 512, 256, 512, 0, 256, 512, 256, 512, 0}));

  const Json& facts = trace.at("otherData");
  EXPECT_EQ(facts.at("programs").at(0).at("steps_before"), 4);
  EXPECT_EQ(facts.at("programs").at(0).at("tenants_that_met"), 0);
}

/// The sum of worker 0's idle time in each step of small_program, which has idle time only there.
std::vector<double> idle_times(const CapturedProcess& process) {
  const Json trace = parse_json(to_trace_json(process));
  std::vector<double> times;
  for (const Json& event : slices(trace, 1, 1)) {
    if (event.at("cat") == "idle") times.push_back(event.at("dur").number());
  }
  return times;
}

TEST(Trace, DrawsNoIdleTimeOverWhatWasNotRecorded) {
  const std::vector<double> inside{0.8}, all{0.8, 6.5};  // in step 4, and between 4 and 5
  CapturedProgram turned = small_program();
  EXPECT_EQ(idle_times(process_of({.programs = {turned}})), all);
  turned.steps[1].turn = 1;  // nobody else is there that might have run
  EXPECT_EQ(idle_times(process_of({.programs = {turned}})), all);
  CapturedProgram late = small_program();  // which forgot what it did meanwhile
  for (RecordedStep& step : late.steps) {
    step.submitted += 100'000;
    for (RecordedStep::Run& run : step.runs) {
      run.worker = 1;
      for (std::int64_t& stamp : run.stamps) stamp += 100'000;
    }
  }
  EXPECT_EQ(idle_times(process_of({.programs = {turned, late}})), inside);
  EXPECT_EQ(idle_times(process_of({.programs = {small_program(), late}})), all);
  EXPECT_EQ(idle_times(process_of({.programs = {turned}, .on_devices = {"far"}})), inside);
  EXPECT_EQ(idle_times(process_of({.under_way = true, .programs = {small_program()}})), inside);
  CapturedProcess long_one = process_of({.number = 9, .programs = {turned}});
  long_one.forgotten = 8;
  long_one.forgotten_until = 15'000;
  EXPECT_EQ(idle_times(long_one), inside);
}

TEST(Trace, SaysWhoseItIs) {
  CapturedProcess process =
      process_of({.number = 9, .programs = {small_program()}, .on_devices = {"far"}});
  process.forgotten = 8;
  const Json trace = parse_json(to_trace_json(process));
  const Json& facts = trace.at("otherData");
  EXPECT_EQ(facts.at("process"), getpid());
  EXPECT_NE(facts.at("command").at(0).text().find("capture_test"), std::string::npos);
  EXPECT_EQ(facts.at("program_sets_forgotten"), 8);
  EXPECT_EQ(facts.at("on_gpus_not_recorded").at(0), "far");
  EXPECT_EQ(slices(trace, 1, 0).at(0).at("args").at("set"), 9);
}

TEST(MemoryPicture, DrawsTheProgramThatNeedsMost) {
  CapturedSet set{.programs = {small_program(), small_program()}, .on_devices = {}, .blocks = {}};
  set.programs[1].shape.steps.program = "<larger>";
  set.programs[1].shape.blocks[0].peak = 768;
  set.blocks = {
      {.name = "step", .bytes = 768, .resident = 4096, .touched = 512, .untouched = {{512, 768}}}};
  const std::string svg = to_memory_svg(process_of(set));
  EXPECT_NE(svg.find("&lt;larger&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("'small'"), std::string::npos);
  EXPECT_NE(svg.find("no byte had two tenants at once in 2 recorded steps"), std::string::npos);
  EXPECT_NE(svg.find("in use 0.1 to 1.8 µs, kept 0.0 to 2.0 µs"), std::string::npos);  // y
  EXPECT_NE(svg.find("512 B (66.7 %)"), std::string::npos);
  EXPECT_NE(svg.find("class=\"gone\" d=\"M80"), std::string::npos);
  set.programs[1].steps[0].runs[1].stamps[1] = 12'500;
  EXPECT_NE(to_memory_svg(process_of(set)).find("TENANTS OF ONE BYTE MET 1 TIMES"),
            std::string::npos);
  EXPECT_NE(to_memory_svg({}).find("no step was recorded"), std::string::npos);
}

}  // namespace
}  // namespace arenite::runtime
