// What is recorded of programs that run, and when it is written.
#include <gtest/gtest.h>
#include <unistd.h>
#include <arenite/error.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "src/runtime/capture/collector.hpp"
#include "src/runtime/capture/testing.hpp"
#include "src/runtime/testing.hpp"

namespace arenite::runtime {
namespace {

using testing::end_of;
using testing::make_set;
using testing::slices;
using testing::summing;

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
    collector().flush();
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

/// Ops lie within their task, and all else one behind the other.
void expect_nesting(const std::vector<Json>& events) {
  double end = 0;
  for (const Json& event : events) {
    EXPECT_GE(event.at("dur").number(), 0) << event;
    if (event.at("cat") == "op") {
      EXPECT_LE(end_of(event), end + 1e-3) << event;
    } else {
      EXPECT_GE(event.at("ts").number(), end - 1e-3) << event;
      end = end_of(event);
    }
  }
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
  const Json trace = parse_json(text_of(file("t.json")));
  const Json& programs = trace.at("otherData").at("programs");
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs.at(0).at("program"), "many");
  EXPECT_EQ(programs.at(0).at("steps_recorded"), 5);
  EXPECT_EQ(programs.at(0).at("steps_before"), 6);
  EXPECT_EQ(programs.at(1).at("steps_recorded"), 3);
  for (const Json& program : programs.items()) EXPECT_EQ(program.at("tenants_that_met"), 0);
  const std::vector<Json> steps = slices(trace, 1, 0);
  ASSERT_EQ(steps.size(), 8u);
  EXPECT_EQ(steps.front().at("name"), "many step 6");
  EXPECT_EQ(steps.back().at("name"), "few step 2");
  for (int worker : {1, 2}) expect_nesting(slices(trace, 1, worker));
  for (const Json& block : trace.at("otherData").at("blocks").items()) {
    if (block.at("block") == "step") {
      EXPECT_GT(block.at("touched").integer(), 0);
    }
  }
  EXPECT_NE(text_of(file("m.svg")).find("</svg>"), std::string::npos);
}

TEST_F(Capturing, KeepsApartProgramsThatTakeTurns) {
  environment_.set("ARENITE_TRACE", file("t.json"));
  environment_.set("ARENITE_TRACE_STEPS", "5");
  Session session({.workers = 2});
  plan::StateLayout state;
  {
    auto set = make_set(session, summing("long", state), summing("short", state));
    for (int turn = 0; turn < 4; ++turn) {
      set["long"].run({.steps = 11});
      set["short"].run({.steps = 2});
    }
  }
  const Json trace = parse_json(text_of(file("t.json")));
  for (int worker : {1, 2}) expect_nesting(slices(trace, 1, worker));
}

/// Leaves a set behind that nobody destroys (static, so that no leak is seen in it).
[[noreturn]] void end_in_the_middle(const std::string& file) {
  setenv("ARENITE_TRACE", file.c_str(), 1);
  Session session({.workers = 1});
  plan::StateLayout state;
  static auto& set = *new ProgramSet(make_set(session, summing("left", state)));
  set["left"].run({.steps = 4});
  std::exit(0);
}

/// The trace of a process that ends with status 0.
Json left_by(void (*process)(const std::string& file)) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The process is started anew: neither can it be told of a folder, nor would it remove one.
  const std::string shared = std::filesystem::temp_directory_path() /
                             ("capture_test." + std::to_string(getuid()) + ".json");
  EXPECT_EXIT(process(shared), ::testing::ExitedWithCode(0), "");
  std::stringstream text;
  text << std::ifstream(shared).rdbuf();
  const Json trace = parse_json(text.str());
  std::filesystem::remove(shared);
  return trace;
}

TEST(CapturingDeathTest, WritesWhenTheProcessEnds) {
  const Json trace = left_by(end_in_the_middle);
  EXPECT_EQ(trace.at("otherData").at("programs").at(0).at("steps_recorded"), 4);
}

/// A thread takes steps as the process ends.
[[noreturn]] void end_under_way(const std::string& file) {
  std::atexit([] { std::_Exit(0); });  // behind the collector: the thread goes on
  setenv("ARENITE_TRACE", file.c_str(), 1);
  setenv("ARENITE_TRACE_STEPS", "5", 1);
  static auto& session = *new Session({.workers = 2});
  static auto& state = *new plan::StateLayout;
  static auto& set = *new ProgramSet(make_set(session, summing("endless", state)));
  set["endless"].run({.steps = 5});  // to be told of, however late the thread begins
  std::thread([] { set["endless"].run({.steps = 1L << 60}); }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::exit(0);
}

TEST(CapturingDeathTest, TellsOnlyOfWholeStepsWhereTheProcessEnds) {
  const Json trace = left_by(end_under_way);
  const Json& programs = trace.at("otherData").at("programs");
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_EQ(programs.at(0).at("steps_recorded"), 5);
  EXPECT_EQ(programs.at(0).at("tenants_that_met"), 0);
  for (int worker : {1, 2}) expect_nesting(slices(trace, 1, worker));
}

TEST_F(Capturing, KeepsWhatSeveralSetsLeave) {
  environment_.set("ARENITE_TRACE", file("t.json"));
  Session session({.workers = 1});
  for (const char* name : {"first", "second"}) {
    plan::StateLayout state;
    auto set = make_set(session, summing(name, state));
    set[name].run({.steps = 1});
  }
  const Json trace = parse_json(text_of(file("t.json")));
  const Json& programs = trace.at("otherData").at("programs");
  const auto last = programs.size() - 1;  // behind those of other tests
  EXPECT_EQ(programs.at(last - 1).at("program"), "first");
  EXPECT_EQ(programs.at(last).at("program"), "second");
}

TEST_F(Capturing, KeepsTheLastOfManySetsAndSaysSo) {
  environment_.set("ARENITE_TRACE", file("t.json"));
  Session session({.workers = 1});
  plan::StateLayout state;
  for (int i = 0; i < 40; ++i) {
    auto set = make_set(session, summing("one of many", state));
    set["one of many"].run({.steps = 1});
  }
  const Json trace = parse_json(text_of(file("t.json")));
  const Json& programs = trace.at("otherData").at("programs");
  EXPECT_EQ(programs.size(), 32u);
  EXPECT_GE(trace.at("otherData").at("program_sets_forgotten").integer(), 8);
  for (std::size_t i = 1; i < programs.size(); ++i)
    EXPECT_EQ(programs.at(i).at("set"), programs.at(i - 1).at("set").integer() + 1);
}

}  // namespace
}  // namespace arenite::runtime
