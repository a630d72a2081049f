// What is recorded of steps, on stamps made up by hand and on programs that run.
#include <gtest/gtest.h>
#include <unistd.h>
#include <arenite/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "src/runtime/capture/writers.hpp"
#include "src/runtime/testing.hpp"

namespace arenite::runtime {
namespace {

using nlohmann::json;
using testing::make_set;
using testing::summing;

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

CapturedStep step_at(std::int64_t start, std::int64_t b_end) {
  CapturedStep step;
  step.submitted = start - 500;
  step.runs = {{.worker = 0, .stamps = {start, start + 1000}},
               {.worker = 1, .stamps = {start + 100, start + b_end}},
               {.worker = 0, .stamps = {start + 2000, start + 3000}}};
  return step;
}

CapturedProgram small_program() {
  CapturedProgram program{.shape = small_shape(), .steps = {}, .before = 4};
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
  const CapturedStep& step = program.steps[0];
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
    std::int64_t* stamp = records.begin(step, 0, 1);
    ASSERT_NE(stamp, nullptr);
    *stamp = 100 * step;
  }
  EXPECT_EQ(records.counted(), 3u);
  // With those that may be under way behind them.
  for (long step = 5; step < 10; ++step)
    EXPECT_EQ(*records.stamps(records.row_of(step), 0), 100 * step);
}

/// Events of one kind on one track, in time.
std::vector<json> slices(const json& trace, int process, int track) {
  std::vector<json> list;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("pid") == process && event.at("tid") == track)
      list.push_back(event);
  }
  std::ranges::stable_sort(list, {}, [](const json& e) { return e.at("ts").get<double>(); });
  return list;
}

double end_of(const json& event) {
  return event.at("ts").get<double>() + event.at("dur").get<double>();
}

TEST(Trace, HasTasksWaitsTenantsAndCounters) {
  const CapturedSet set{
      .programs = {small_program()}, .on_devices = {"far"}, .blocks = {{.name = "step"}}};
  const json trace = json::parse(to_trace_json(std::span(&set, 1)));

  const std::vector<json> worker = slices(trace, 1, 1);
  std::vector<std::string> names;
  for (const json& event : worker) names.push_back(event.at("name"));
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
  EXPECT_EQ(std::ranges::count_if(trace.at("traceEvents"),
                                  [](const json& e) { return e.at("ph") == "s"; }),
            1);
  const std::vector<json> sharing = slices(trace, 2, 2);
  ASSERT_EQ(sharing.size(), 4u);
  for (std::size_t i = 1; i < sharing.size(); ++i)
    EXPECT_LE(end_of(sharing[i - 1]), sharing[i].at("ts").get<double>() + 1e-6);
  EXPECT_EQ(sharing[1].at("name"), "sum");

  std::vector<std::int64_t> live;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "C") live.push_back(event.at("args").at("activation"));
  }
  EXPECT_EQ(live, (std::vector<std::int64_t>{256, 512, 256, 512, 0, 256, 512, 256, 512, 0}));

  const json& facts = trace.at("otherData");
  EXPECT_EQ(facts.at("on_gpus_not_recorded").at(0), "far");
  EXPECT_EQ(facts.at("programs").at(0).at("steps_before"), 4);
  EXPECT_EQ(facts.at("programs").at(0).at("tenants_that_met"), 0);
}

TEST(MemoryPicture, DrawsTheProgramThatNeedsMost) {
  CapturedSet set{.programs = {small_program(), small_program()}, .on_devices = {}, .blocks = {}};
  set.programs[1].shape.steps.program = "<larger>";
  set.programs[1].shape.blocks[0].peak = 768;
  set.blocks = {
      {.name = "step", .bytes = 768, .resident = 4096, .touched = 512, .untouched = {{512, 768}}}};
  const std::string svg = to_memory_svg(std::span(&set, 1));
  EXPECT_NE(svg.find("&lt;larger&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("'small'"), std::string::npos);
  EXPECT_NE(svg.find("no byte had two tenants at once in 2 recorded steps"), std::string::npos);
  EXPECT_NE(svg.find("in use 0.1 to 1.8 µs, kept 0.0 to 2.0 µs"), std::string::npos);  // y
  EXPECT_NE(svg.find("512 B (66.7 %)"), std::string::npos);
  EXPECT_NE(svg.find("class=\"gone\" d=\"M80"), std::string::npos);
  set.programs[1].steps[0].runs[1].stamps[1] = 12'500;
  EXPECT_NE(to_memory_svg(std::span(&set, 1)).find("TENANTS OF ONE BYTE MET 1 TIMES"),
            std::string::npos);
  EXPECT_NE(to_memory_svg({}).find("no step was recorded"), std::string::npos);
}

/// Sets variables of the environment, and puts them back.
class Environment {
 public:
  void set(const std::string& name, const std::string& text) {
    if (!before_.contains(name)) {
      const char* old = std::getenv(name.c_str());
      before_[name] = old ? std::optional<std::string>(old) : std::nullopt;
    }
    setenv(name.c_str(), text.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, text] : before_)
      text ? setenv(name.c_str(), text->c_str(), 1) : unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

class Capturing : public ::testing::Test {
 protected:
  Capturing() {
    std::string pattern = std::filesystem::temp_directory_path() / "capture_test.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~Capturing() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name) const { return folder_ / name; }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
  Environment environment_;
};

std::string refusal() {
  try {
    capture_request();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST_F(Capturing, ReadsTheEnvironmentStrictly) {
  EXPECT_FALSE(capture_request());
  environment_.set("ARENITE_TRACE_STEPS", "many");  // nothing is asked for
  EXPECT_FALSE(capture_request());
  environment_.set("ARENITE_TRACE", file("t.json"));
  EXPECT_EQ(refusal(),
            "ARENITE_TRACE_STEPS='many'; expected a whole number of 1 to 1000 (hint: it is "
            "how many of each program's last steps are recorded)");
  environment_.set("ARENITE_TRACE_STEPS", "1001");
  EXPECT_NE(refusal(), "none");
  environment_.set("ARENITE_TRACE_STEPS", "7");
  EXPECT_EQ(capture_request()->steps, 7);
  environment_.set("ARENITE_MEMORY", file("t.json"));
  EXPECT_NE(refusal().find("name the same file"), std::string::npos);
  environment_.set("ARENITE_MEMORY", file("nowhere/m.svg"));
  EXPECT_NE(refusal().find("ARENITE_MEMORY='"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file("t.json")));
}

TEST_F(Capturing, RecordsProgramsThatRun) {
  environment_.set("ARENITE_TRACE", file("t.json"));
  environment_.set("ARENITE_MEMORY", file("m.svg"));
  environment_.set("ARENITE_TRACE_STEPS", "5");
  Session session({.workers = 2});
  {
    plan::StateLayout state;
    auto set =
        make_set(session, summing("many", state), summing("few", state), summing("none", state));
    for (Program* program : {&set["many"], &set["few"]}) {
      for (std::size_t i = 0; i < 2; ++i) *program->input<float>("x") = 1;
    }
    EXPECT_EQ(set["many"].run({.steps = 11}), 11);
    set["few"].submit();
    set["few"].submit();
    set["few"].start_profile(1);  // beside it
    set["few"].submit();
    EXPECT_EQ(set["few"].stop_profile().steps, 1);
  }
  const json trace = json::parse(text_of(file("t.json")));
  const json& programs = trace.at("otherData").at("programs");
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs[0].at("program"), "many");
  EXPECT_EQ(programs[0].at("steps_recorded"), 5);
  EXPECT_EQ(programs[0].at("steps_before"), 6);
  EXPECT_EQ(programs[1].at("steps_recorded"), 3);
  for (const json& program : programs) EXPECT_EQ(program.at("tenants_that_met"), 0);
  const std::vector<json> steps = slices(trace, 1, 0);
  ASSERT_EQ(steps.size(), 8u);
  EXPECT_EQ(steps.front().at("name"), "many step 6");
  EXPECT_EQ(steps.back().at("name"), "few step 2");
  for (int worker : {1, 2}) {
    double end = 0;  // of the last task: ops lie within it, and others behind it
    for (const json& event : slices(trace, 1, worker)) {
      if (event.at("cat") == "op") {
        EXPECT_LE(end_of(event), end + 1e-3);
      } else {
        EXPECT_GE(event.at("ts").get<double>(), end - 1e-3);
        end = end_of(event);
      }
    }
  }
  for (const json& block : trace.at("otherData").at("blocks")) {
    if (block.at("block") == "step") {
      EXPECT_GT(block.at("touched"), 0);
    }
  }
  EXPECT_NE(text_of(file("m.svg")).find("</svg>"), std::string::npos);
}

/// Leaves a set behind that nobody destroys.
[[noreturn]] void end_in_the_middle(const std::string& file) {
  setenv("ARENITE_TRACE", file.c_str(), 1);
  Session session({.workers = 1});
  plan::StateLayout state;
  auto& set = *new ProgramSet(make_set(session, summing("left", state)));
  set["left"].run({.steps = 4});
  std::exit(0);
}

TEST_F(Capturing, WritesWhenTheProcessEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The process is started anew, and its folder is another one.
  const std::string shared = std::filesystem::temp_directory_path() /
                             ("capture_test." + std::to_string(getuid()) + ".json");
  EXPECT_EXIT(end_in_the_middle(shared), ::testing::ExitedWithCode(0), "");
  const json trace = json::parse(text_of(shared));
  // Two of them might have been under way.
  EXPECT_EQ(trace.at("otherData").at("programs").at(0).at("steps_recorded"), 2);
  std::filesystem::remove(shared);
}

TEST_F(Capturing, KeepsWhatSeveralSetsLeave) {
  environment_.set("ARENITE_TRACE", file("t.json"));
  Session session({.workers = 1});
  for (const char* name : {"first", "second"}) {
    plan::StateLayout state;
    auto set = make_set(session, summing(name, state));
    set[name].run({.steps = 1});
  }
  const json trace = json::parse(text_of(file("t.json")));
  const json& programs = trace.at("otherData").at("programs");
  const auto last = programs.size() - 1;  // behind those of other tests
  EXPECT_EQ(programs.at(last - 1).at("program"), "first");
  EXPECT_EQ(programs.at(last).at("program"), "second");
}

}  // namespace
}  // namespace arenite::runtime
