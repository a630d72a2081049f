#include <arenite/error.hpp>
#include <arenite/plan/handle_classes.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <algorithm>
#include <random>
#include <set>

namespace arenite::plan {
namespace {

bool always(std::size_t, std::size_t) { return true; }
bool never(std::size_t a, std::size_t b) { return a == b; }

std::size_t classes_of(const HandleProblem& problem, const std::vector<HandleClass>& classes,
                       std::size_t task) {
  return static_cast<std::size_t>(
      std::count_if(classes.begin(), classes.end(), [&](const HandleClass& c) {
        return std::any_of(
            problem.accesses.begin(), problem.accesses.end(), [&](const HandleAccess& a) {
              return a.task == task && a.block == c.block && a.begin < c.end && a.end > c.begin;
            });
      }));
}

TEST(HandleClasses, MergesBytesThatTheSameTasksAccess) {
  const HandleProblem problem{
      .block_bytes = {1024},
      .accesses = {{.block = 0, .begin = 0, .end = 256, .task = 0, .writes = true},
                   {.block = 0, .begin = 256, .end = 512, .task = 0, .writes = true},
                   {.block = 0, .begin = 512, .end = 768, .task = 1, .writes = true}},
      .task_count = 2,
      .ordered = never};
  const auto classes = handle_classes(problem);
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].end, 512);
  EXPECT_EQ(classes[1].begin, 512);
  EXPECT_EQ(classes[1].end, 1024);  // the gap behind goes with what precedes it
  EXPECT_TRUE(classes[0].ordered);
}

TEST(HandleClasses, PrefersMergesThatKeepTasksApart) {
  // Task 0 has ten scattered pieces; task 1, side by side with it, has one between the last two.
  HandleProblem problem{
      .block_bytes = {11 * 256}, .accesses = {}, .task_count = 12, .ordered = never};
  for (std::size_t piece = 0; piece < 11; ++piece) {
    const auto begin = static_cast<std::int64_t>(piece) * 256;
    if (piece == 9) {
      problem.accesses.push_back(
          {.block = 0, .begin = begin, .end = begin + 256, .task = 11, .writes = true});
      continue;
    }
    problem.accesses.push_back(
        {.block = 0, .begin = begin, .end = begin + 256, .task = 0, .writes = true});
    // A reader of its own for each piece, so that equal pieces are not merged for free.
    problem.accesses.push_back({.block = 0,
                                .begin = begin,
                                .end = begin + 256,
                                .task = piece == 10 ? 10 : piece + 1,
                                .writes = false});
  }
  problem.ordered = [](std::size_t a, std::size_t b) { return a != 11 && b != 11; };
  const auto classes = handle_classes(problem);
  EXPECT_LE(classes_of(problem, classes, 0), 8u);
  EXPECT_TRUE(
      std::all_of(classes.begin(), classes.end(), [](const HandleClass& c) { return c.ordered; }));
}

TEST(HandleClasses, SaysWhenOnlyEdgesOrderAClass) {
  // Two tasks side by side with 20 interleaved pieces each: no partition keeps them apart.
  HandleProblem problem{
      .block_bytes = {40 * 256}, .accesses = {}, .task_count = 2, .ordered = never};
  for (std::int64_t piece = 0; piece < 40; ++piece) {
    problem.accesses.push_back({.block = 0,
                                .begin = piece * 256,
                                .end = piece * 256 + 256,
                                .task = static_cast<std::size_t>(piece % 2),
                                .writes = true});
  }
  const auto classes = handle_classes(problem);
  EXPECT_LE(classes_of(problem, classes, 0), 8u);
  EXPECT_LE(classes_of(problem, classes, 1), 8u);
  EXPECT_TRUE(
      std::any_of(classes.begin(), classes.end(), [](const HandleClass& c) { return !c.ordered; }));
}

TEST(HandleClasses, RefusesATaskOverTooManyBlocks) {
  HandleProblem problem{.block_bytes = std::vector<std::int64_t>(9, 256),
                        .accesses = {},
                        .task_count = 1,
                        .ordered = always};
  for (std::size_t b = 0; b < 9; ++b)
    problem.accesses.push_back({.block = b, .begin = 0, .end = 256, .task = 0, .writes = true});
  try {
    handle_classes(problem);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "task 0 touches 9 blocks; expected at most 8");
  }
}

TEST(HandleClasses, MergesForThousandsOfTasks) {
  // A chain of tasks, each with its own piece and 11 far ones that are other tasks' too; the last
  // reads everything.
  constexpr std::size_t tasks = 3000;
  HandleProblem problem{
      .block_bytes = {tasks * 256}, .accesses = {}, .task_count = tasks, .ordered = always};
  for (std::size_t task = 0; task < tasks; ++task) {
    for (std::size_t far = 0; far < 12; ++far) {
      const auto piece = static_cast<std::int64_t>((task + far) % tasks);
      problem.accesses.push_back({.block = 0,
                                  .begin = piece * 256,
                                  .end = piece * 256 + 256,
                                  .task = task,
                                  .writes = far == 0});
    }
  }
  problem.accesses.push_back(
      {.block = 0, .begin = 0, .end = tasks * 256, .task = tasks - 1, .writes = false});
  std::vector<int> touched(tasks, 0);
  for (const HandleClass& c : handle_classes(problem)) {
    std::set<std::size_t> in;
    for (const HandleAccess& a : problem.accesses) {
      if (a.begin < c.end && a.end > c.begin) in.insert(a.task);
    }
    for (std::size_t task : in) ++touched[task];
  }
  EXPECT_LE(*std::max_element(touched.begin(), touched.end()), 8);
}

TEST(HandleClasses, PartitionsRandomBlocks) {
  std::mt19937 random(7);
  const auto below = [&](int n) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
  };
  for (int round = 0; round < arenite::testing::fewer_where_slow(200); ++round) {
    HandleProblem problem{
        .block_bytes = {}, .accesses = {}, .task_count = 6, .ordered = round % 2 ? always : never};
    for (int b = 0; b < 3; ++b) problem.block_bytes.push_back(256 * below(40));
    for (int i = 0; i < 60; ++i) {
      const auto block = static_cast<std::size_t>(below(3));
      const std::int64_t bytes = problem.block_bytes[block];
      if (bytes == 0) continue;
      const std::int64_t begin = below(static_cast<int>(bytes)),
                         end = begin + 1 + below(static_cast<int>(bytes - begin));
      problem.accesses.push_back({.block = block,
                                  .begin = begin,
                                  .end = end,
                                  .task = static_cast<std::size_t>(below(6)),
                                  .writes = random() % 2 == 0});
    }
    const auto classes = handle_classes(problem);
    // Every byte belongs to exactly one class, in address order.
    std::vector<std::int64_t> end(3, 0);
    for (const HandleClass& c : classes) {
      EXPECT_EQ(c.begin, end[c.block]);
      EXPECT_LT(c.begin, c.end);
      end[c.block] = c.end;
    }
    EXPECT_EQ(end, problem.block_bytes);
    for (std::size_t task = 0; task < problem.task_count; ++task)
      EXPECT_LE(classes_of(problem, classes, task), 8u);
  }
}

}  // namespace
}  // namespace arenite::plan
