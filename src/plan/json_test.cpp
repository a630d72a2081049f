#include <arenite/plan/json.hpp>

#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

TEST(PhaseBytes, AreWhatEachPhaseHoldsAtSomeTime) {
  Problem problem;
  problem.add({.name = "x", .bytes = 100, .lifetime = {0, 2}});
  problem.add({.name = "saved", .bytes = 300, .lifetime = {1, 4}});
  problem.add({.name = "g", .bytes = 200, .lifetime = {2, 4}, .phase = Phase::backward});
  problem.add({.name = "h", .bytes = 250, .lifetime = {4, 5}, .phase = Phase::backward});
  Plan plan = solve(problem);
  plan.offsets = {512, 0, 512, 256};
  plan.spaces[0].peak = 512 + 200;
  EXPECT_EQ(phase_bytes(plan, {}),
            (std::vector<PhaseBytes>{{Phase::forward, 712}, {Phase::backward, 456}}));
  EXPECT_TRUE(phase_bytes(plan, {.index = 1}).empty());
  const std::string text = to_json(plan);
  EXPECT_NE(text.find("\"forward_bytes\":712,\"backward_bytes\":456"), std::string::npos) << text;
}

Problem sample() {
  Problem problem;
  const Space gpu{DeviceKind::cuda, 1, MemoryKind::device, 1 << 20};
  problem.add({.name = "weird \"name\" <&> \\ \n é", .bytes = 4096, .lifetime = {-2, 3}});
  problem.add({.name = "y",
               .bytes = 8192,
               .lifetime = {1, 2},
               .alignment = 64,
               .space = gpu,
               .phase = Phase::backward,
               .label = "gradient"});
  problem.add({.name = "z", .bytes = 0, .lifetime = {2, 4}, .offset = 256});
  problem.add({.name = "w", .bytes = 100, .lifetime = {3, 4}});
  return problem;
}

TEST(Json, RoundTrips) {
  const Problem problem = sample();
  const Plan plan = solve(problem);
  const Plan again = from_json(to_json(plan));
  EXPECT_EQ(again, plan);
  verify(problem, again);
  EXPECT_EQ(to_json(again), to_json(plan));
  const Plan nothing = solve(Problem{});
  EXPECT_EQ(from_json(to_json(nothing)), nothing);
}

TEST(Json, HasTheFieldsThatOthersRead) {
  const auto json = nlohmann::json::parse(to_json(solve(sample())));
  for (const char* key : {"peak", "max_live", "lower_bound", "optimal", "strategy", "milliseconds",
                          "spaces", "buffers", "reuse"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  for (const char* key :
       {"name", "bytes", "offset", "begin", "end", "alignment", "space", "phase", "label"}) {
    EXPECT_TRUE(json["buffers"][1].contains(key)) << key;
  }
  EXPECT_EQ(json["buffers"][1]["space"], "cuda:1/device");
  EXPECT_EQ(json["spaces"][1]["capacity"], 1 << 20);
}

TEST(Json, HoldsFurtherFieldsThatReadingIgnores) {
  const Plan plan = solve(sample());
  const std::string text = to_json(plan, {}, R"("tasks": 4, "arenas": [{"peak": 1}])");
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["tasks"], 4);
  EXPECT_EQ(json["arenas"][0]["peak"], 1);
  EXPECT_EQ(from_json(text), plan);
}

TEST(Json, RoundTripsRandomPlans) {
  std::mt19937 random(4);
  for (int round = 0; round < fewer_where_slow(300); ++round) {
    const Problem problem = round % 3 == 0   ? random_intervals(random, 10)
                            : round % 3 == 1 ? random_ordered(random, 10)
                                             : random_gaps(random, 10);
    const Plan plan = solve(problem, {.effort = Effort::fast});
    const Plan again = from_json(to_json(plan));
    ASSERT_EQ(again, plan);
    verify(problem, again);
  }
}

/// The sample's JSON with one value (a JSON pointer) replaced, or removed when `value` is empty.
std::string with(const char* pointer, const std::string& value) {
  auto json = nlohmann::json::parse(to_json(solve(sample())));
  const nlohmann::json::json_pointer at(pointer);
  if (value.empty()) {
    json[at.parent_pointer()].erase(at.back());
  } else {
    json[at] = nlohmann::json::parse(value);
  }
  return json.dump();
}

TEST(Json, NamesTheFieldThatIsWrong) {
  EXPECT_ERROR("plan JSON: no field 'peak'; expected one", from_json(with("/peak", "")));
  EXPECT_ERROR("plan JSON, peak: -1; expected an integer from 0", from_json(with("/peak", "-1")));
  EXPECT_ERROR("plan JSON, peak: 1.5; expected an integer", from_json(with("/peak", "1.5")));
  EXPECT_ERROR("peak: 18446744073709551615; expected an integer",
               from_json(with("/peak", "18446744073709551615")));
  EXPECT_ERROR("optimal: \"yes\"; expected true or false", from_json(with("/optimal", "\"yes\"")));
  EXPECT_ERROR("milliseconds: -1", from_json(with("/milliseconds", "-1")));
  EXPECT_ERROR("format: 'other'; expected 'arenite plan 1'",
               from_json(with("/format", "\"other\"")));
  EXPECT_ERROR("buffers: a value of type object; expected an array",
               from_json(with("/buffers", "{}")));
  EXPECT_ERROR("buffers[2]: 7; expected an object", from_json(with("/buffers/2", "7")));
  EXPECT_ERROR("buffers[1]: no field 'bytes'", from_json(with("/buffers/1/bytes", "")));
  EXPECT_ERROR("buffers[1].bytes: null; expected an integer",
               from_json(with("/buffers/1/bytes", "null")));
  EXPECT_ERROR("buffers[1].end: 1; expected an integer from 2",
               from_json(with("/buffers/1/end", "1")));
  EXPECT_ERROR("buffers[1]: an alignment of 3; expected a power of two",
               from_json(with("/buffers/1/alignment", "3")));
  EXPECT_ERROR("buffers[3]: the name of buffer 1 again",
               from_json(with("/buffers/3/name", "\"y\"")));
  EXPECT_ERROR("buffers[1].space: 'gpu'; expected a space such as",
               from_json(with("/buffers/1/space", "\"gpu\"")));
  EXPECT_ERROR("buffers[1]: space 'cpu:7/host'; expected one listed",
               from_json(with("/buffers/1/space", "\"cpu:7/host\"")));
  EXPECT_ERROR("buffers[1]: unknown phase 'sideways'",
               from_json(with("/buffers/1/phase", "\"sideways\"")));
  EXPECT_ERROR("spaces[1].space: a second entry",
               from_json(with("/spaces/1/space", "\"cpu:0/host\"")));
  EXPECT_ERROR("reuse[0][1]: 4; expected an integer from 0 to 3",
               from_json(with("/reuse", "[[0, 4]]")));
  EXPECT_ERROR("reuse[0]: 3 entries; expected two", from_json(with("/reuse", "[[0, 1, 2]]")));
  for (const char* space : {"cpu:", "cpu:-1/host", "cpu:0", "cpu:0/hostile", "cuda:00/device",
                            "cpu:99999999999/host", "tpu:0/host", ""}) {
    EXPECT_ERROR("expected a space such as",
                 from_json(with("/spaces/0/space", '"' + std::string(space) + '"')));
  }
}

TEST(Json, ReuseIsRecomputedWhenLeftOut) {
  const Plan plan = solve(sample());
  EXPECT_EQ(from_json(with("/reuse", "")).reuse, plan.reuse);
}

TEST(Json, GivesTheByteOfMalformedText) {
  EXPECT_ERROR("plan JSON, byte 12", from_json("{\"peak\": 1, }"));
  EXPECT_ERROR("byte 0", from_json(""));
  EXPECT_ERROR("an object", from_json("[]"));
  EXPECT_ERROR("expected JSON", from_json("{\"peak\": 1e999}"));
  EXPECT_ERROR("\"peak\" twice", from_json("{\"peak\": 1, \"peak\": 2}"));
  EXPECT_ERROR("nested deeper than 8", from_json(std::string(1 << 20, '[')));
  EXPECT_ERROR("nested deeper than 8", from_json("{\"a\":" + std::string(100000, '[')));
}

// Whatever is cut off or changed, reading ends with a plan or an Error.
TEST(Json, SurvivesMutations) {
  std::mt19937 random(8);
  const std::string good = to_json(solve(sample()));
  for (std::size_t length = 0; length + 2 < good.size(); ++length) {
    EXPECT_THROW(from_json(good.substr(0, length)), Error);
  }
  int read = 0;
  for (int round = 0; round < fewer_where_slow(20000); ++round) {
    std::string text = good;
    for (unsigned change = 0; change <= random() % 3; ++change) {
      static constexpr std::string_view bytes = "{}[]\",:-0123456789.eE \n\\\xff";
      text[random() % text.size()] = bytes[random() % bytes.size()];
    }
    try {
      static_cast<void>(to_json(from_json(text)));
      ++read;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(read, 100);
}

TEST(Json, RefusesTextThatIsNotUtf8) {
  Problem problem;
  problem.add({.name = "\xff\xfe", .bytes = 1, .lifetime = {0, 1}});
  EXPECT_ERROR("not UTF-8", to_json(solve(problem)));
}

TEST(Json, FilesAreWholeOrNotThere) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "arenite_plan_json_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const Plan plan = solve(sample());
  write_json(plan, folder / "plan.json");
  write_json(plan, folder / "plan.json");
  EXPECT_EQ(read_json(folder / "plan.json"), plan);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);

  EXPECT_ERROR("missing/plan.json: cannot create it: No such file or directory; expected a path in",
               write_json(plan, folder / "missing" / "plan.json"));
  EXPECT_ERROR("cannot create it: Is a directory", write_json(plan, folder));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_ERROR("nothing.json: cannot read it: No such file or directory; expected a plan as",
               read_json(folder / "nothing.json"));
  EXPECT_ERROR("arenite_plan_json_test: cannot read it: Is a directory", read_json(folder));
  std::ofstream(folder / "bad.json") << "{";
  EXPECT_ERROR("bad.json, byte 1", read_json(folder / "bad.json"));
  std::filesystem::resize_file(folder / "bad.json", max_json_bytes + 1);
  EXPECT_ERROR("expected a plan below that size", read_json(folder / "bad.json"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace arenite::plan
