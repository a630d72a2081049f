#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_json.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

namespace arenite::plan {
namespace {

using graph::StorageClass;
using graph::ValueId;

struct StepJson : ::testing::Test {
  graph::Graph graph;
  graph::Schedule schedule;
  StateLayout state;
  StepPlan plan;

  void SetUp() override {
    graph::Builder builder(graph, operators());
    const Space device{
        .device = DeviceKind::cuda, .memory = MemoryKind::device, .capacity = 1 << 20};
    ValueId x = builder.declare("x", DType::float32, {8, 64}, StorageClass::input);
    const ValueId w = builder.declare("w", DType::float32, {64, 64}, StorageClass::parameter);
    const ValueId c = builder.declare("c", DType::float32, {64, 64}, StorageClass::constant);
    for (int lane = 0; lane < 2; ++lane) {
      builder.context.lane = lane;
      ValueId h = x;
      for (int i = 0; i < 5; ++i) {
        h = builder.add1("dense", {builder.add1("relu", {h}), i % 2 ? w : c});
        if (lane == 1) graph.storage(graph.root(h)).space = device;
      }
      graph.outputs.push_back(h);
    }
    graph::TargetProfile model;
    model.task_microseconds = model.phase_microseconds = 0;
    schedule = graph::coarsen(graph, model);
    plan = plan_step(graph, schedule, state);
    plan.reuse_edges.push_back({graph::TaskId(0), graph::TaskId(schedule.tasks.size() - 1)});
  }

  static std::string error_of(const std::string& text) {
    try {
      step_plan_from_json(text, "p.json");
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  }
  /// The plan's text with the first `from` replaced.
  std::string with(const std::string& from, const std::string& to) const {
    std::string text = to_json(plan);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
};

TEST_F(StepJson, GivesThePlanBack) {
  const StepPlan loaded = step_plan_from_json(to_json(plan));
  EXPECT_EQ(loaded, plan);
  verify_step(graph, schedule, loaded);
}

TEST_F(StepJson, GivesAFileBack) {
  const auto file = std::filesystem::path(::testing::TempDir()) /
                    ("step_plan-" + std::to_string(::getpid()) + ".json");
  write_json(plan, file);
  EXPECT_EQ(read_step_plan(file), plan);
  std::filesystem::remove(file);
  EXPECT_THROW(read_step_plan(file), Error);
}

TEST_F(StepJson, FingerprintsAllButTimes) {
  StepPlan other = plan;
  other.critical_path += 1;
  other.packings.front().milliseconds += 1;
  EXPECT_EQ(fingerprint(plan).size(), 16u);
  EXPECT_EQ(fingerprint(other), fingerprint(plan));
  other.placements.back().offset += 256;
  EXPECT_NE(fingerprint(other), fingerprint(plan));
}

TEST_F(StepJson, SaysWhatIsWrong) {
  EXPECT_EQ(error_of(with("arenite step plan 1", "arenite plan 1")),
            "p.json, format: 'arenite plan 1'; expected 'arenite step plan 1'");
  EXPECT_EQ(error_of(with("\"overlay\"", "\"pile\"")),
            "p.json, layout: unknown arena layout 'pile'; expected overlay or two");
  const std::string error = error_of(with("\"block\":1", "\"block\":99"));
  EXPECT_NE(error.find(".block: 99; expected an integer from 0 to "), std::string::npos) << error;
}

TEST_F(StepJson, SurvivesAnyText) {
  const std::string text = to_json(plan);
  for (std::size_t length = 0; length + 2 < text.size(); length += 7)
    EXPECT_NE(error_of(text.substr(0, length)), "accepted");
  for (const std::string hostile : {"", "[]", "{}", "null", "{\"format\": 1}", "[[[[[[[[[[[[[[[["})
    EXPECT_NE(error_of(hostile), "accepted") << hostile;
  // A byte changed anywhere: refused, or read as a plan that the verifier can look at.
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] == '9' ? '0' : changed[at] + 1);
    try {
      verify_step(graph, schedule, step_plan_from_json(changed));
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace arenite::plan
