#include <arenite/plan/draw.hpp>

#include <arenite/plan/solve.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

Plan three_buffers() {
  Problem problem;
  problem.add({.name = "x", .bytes = 4096, .lifetime = {0, 3}});
  problem.add({.name = "y", .bytes = 8192, .lifetime = {1, 2}});
  problem.add({.name = "z", .bytes = 8192, .lifetime = {2, 4}, .phase = Phase::backward});
  return solve(problem);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

void expect_narrow_ascii(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }))
        << line;
  }
}

TEST(DrawText, ShowsAddressesTimesAndNames) {
  const std::string text = draw_text(three_buffers());
  expect_narrow_ascii(text);
  EXPECT_EQ(text.find("cpu:0/host: peak 12,288 bytes = lower bound, optimal (first_fit_by_size)"),
            0u);
  EXPECT_NE(text.find("12.0 KiB +------"), std::string::npos);
  EXPECT_NE(text.find("8.00 KiB |aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa............\n"),
            std::string::npos);
  EXPECT_NE(text.find("|............bbbb y bbbbbcccccccccc z ccccccccccc\n"), std::string::npos);
  EXPECT_NE(text.find("0 B |............bbbbbbbbbbbbcccccc"), std::string::npos);
  EXPECT_NE(text.find("           0           1           2           3           4\n"),
            std::string::npos);
  EXPECT_NE(text.find("  c  z  8,192 bytes at 0, [2, 4), backward\n"), std::string::npos);
}

TEST(DrawText, LargePlansAreSampledAndSaySo) {
  std::mt19937 random(1);
  Problem problem;
  for (std::int64_t i = 0; i < 2000; ++i) {
    const std::int64_t begin = below(random, 100000);
    problem.add({.name = std::string(60, 'n') + "\x01é" + std::to_string(i),
                 .bytes = below(random, 1 << 30),
                 .lifetime = {begin, begin + 1 + below(random, 2000)},
                 .label = "activation"});
  }
  const std::string text = draw_text(solve(problem));
  expect_narrow_ascii(text);
  EXPECT_NE(text.find("smaller buffers"), std::string::npos);
  EXPECT_NE(text.find("(columns and rows are sampled"), std::string::npos);
  EXPECT_NE(text.find("       0 B |"), std::string::npos);
  EXPECT_LT(text.size(), 16000u);
}

TEST(DrawText, ExtremesFit) {
  Problem problem;
  constexpr std::int64_t far = Problem::limit;
  problem.add({.name = "ages", .bytes = far / 2, .lifetime = {-far, far}});
  problem.add({.name = "blink", .bytes = 1, .lifetime = {far - 1, far}, .label = "w"});
  problem.add({.name = "nothing", .bytes = 0, .lifetime = {0, 1}, .space = {.index = 1}});
  const Plan plan = solve(problem);
  expect_narrow_ascii(draw_text(plan));
  EXPECT_NE(draw_text(plan).find("no buffer has bytes"), std::string::npos);
  EXPECT_EQ(count(to_svg(plan), "<title>"), 2u);
  EXPECT_EQ(draw_text(solve(Problem{})), "");
  EXPECT_NE(to_svg(solve(Problem{})).find("</svg>"), std::string::npos);
}

TEST(DrawSvg, HasABoxATitleForEachBuffer) {
  const std::string svg = to_svg(three_buffers());
  EXPECT_EQ(count(svg, "<title>"), 3u);
  EXPECT_NE(svg.find("<title>y\n8,192 bytes at offset 0\nlifetime [1, 2)\nforward</title>"),
            std::string::npos);
  EXPECT_NE(svg.find("peak = lower bound: 12.0 KiB"), std::string::npos);
  EXPECT_NE(svg.find("class=\"live\""), std::string::npos);
  EXPECT_EQ(count(svg, "<svg"), count(svg, "</svg>"));
  EXPECT_EQ(svg.find("http://", svg.find("xmlns") + 30), std::string::npos) << "self-contained";
}

TEST(DrawSvg, EscapesWhatXmlCannotHold) {
  Problem problem;
  problem.add({.name = "<a&b>\"\x01\xff\xc0\xaf\xed\xa0\x80 \xc3\xa9",
               .bytes = 256,
               .lifetime = {0, 1},
               .label = "</style>"});
  const std::string svg = to_svg(solve(problem));
  EXPECT_NE(svg.find("&lt;a&amp;b&gt;&quot;??\?\?\?\?\? \xc3\xa9"), std::string::npos);
  EXPECT_EQ(count(svg, "</style>"), 1u);
}

TEST(DrawSvg, WritesAFile) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "arenite_plan_draw_test.svg";
  draw(three_buffers(), file);
  std::stringstream contents;
  contents << std::ifstream(file).rdbuf();
  EXPECT_EQ(contents.str(), to_svg(three_buffers()));
  std::filesystem::remove(file);
}

TEST(Draw, RefusesPlansThatDoNotFitTogether) {
  Plan plan = three_buffers();
  plan.offsets.pop_back();
  EXPECT_ERROR("2 offsets; expected 3", to_svg(plan));
  plan = three_buffers();
  plan.spaces.clear();
  EXPECT_ERROR("expected a space that the plan lists", draw_text(plan));
  plan = three_buffers();
  plan.spaces[0].peak = INT64_MAX;
  EXPECT_ERROR("a peak of 9,223", to_svg(plan));
  plan = three_buffers();
  plan.offsets[0] = INT64_MAX;
  EXPECT_ERROR("offsets to 2^61", draw_text(plan));
}

}  // namespace
}  // namespace arenite::plan
