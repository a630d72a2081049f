// Peaks, bounds and proofs to the byte: tables against every order in which their blocks can be
// stacked.
#include <arenite/plan/csv.hpp>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

/// The proved peak of a table; one byte less must be refused with the proof, as many taken.
void expect_exactly(const std::string& table, std::int64_t bytes) {
  SCOPED_TRACE(table);
  const Problem problem = read_csv(table, "table");
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.peak, bytes);
  EXPECT_EQ(plan.lower_bound, bytes);
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(solve(problem, {.capacity = bytes}).peak, bytes);
  EXPECT_ERROR("infeasible: proved: at least " + std::to_string(bytes) + " bytes",
               solve(problem, {.capacity = bytes - 1}));
}

TEST(Exact, NothingLiesUponTheTopmostBuffer) {
  const std::string one = "id,lower,upper,size,alignment\na,0,2,100,64\n";
  expect_exactly(one, 100);
  EXPECT_NO_THROW(solve(read_csv(one, "one"), {.capacity = 104}));
  expect_exactly(one + "b,0,2,4,4\n", 104);
  // The one with the most padding belongs on top; of these all live as long as the others.
  expect_exactly(one + "b,0,2,120,64\nc,0,2,65,64\n", 128 + 128 + 65);
  // Here what is above lives shorter than what is padded.
  expect_exactly("id,lower,upper,size,alignment\na,0,2,100,64\nb,0,1,64,64\nc,1,2,64,64\n", 164);
}

TEST(Exact, AGroupHasTheBytesOfItsLargest) {
  const std::string table = "id,lower,upper,size,alignment,alias\nb1,6,8,7,1,k\nb2,8,11,3,4,k\n";
  expect_exactly(table, 7);
  EXPECT_EQ(solve(read_csv(table, "table"), {.capacity = 7}).offsets,
            (std::vector<std::int64_t>{0, 0}));
}

TEST(Exact, BlocksInMultiplesOfMoreBytesSaySo) {
  Problem problem = read_csv("id,lower,upper,size,alignment\na,0,2,100,64\n", "table");
  problem.set_granule(256);
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.peak, 256);
  EXPECT_TRUE(plan.optimal);
  Plan less = plan;
  less.peak = less.spaces[0].peak = 100;
  EXPECT_ERROR("256, the highest end of a buffer, in multiples of 256 bytes",
               verify(problem, less));
  EXPECT_ERROR("expected a power of two", problem.set_granule(96));
  EXPECT_ERROR("expected a power of two", problem.set_granule(0));
}

struct Row {
  std::vector<Lifetime> pieces;
  std::int64_t bytes = 0;
  std::int64_t alignment = 1;
  std::optional<std::int64_t> offset;
  std::string alias;
};

std::vector<Row> draw_rows(std::mt19937& random) {
  std::vector<Row> rows(static_cast<std::size_t>(1 + below(random, 7)));
  const std::int64_t sizes = random() % 2 == 0 ? 12 : 150;
  const std::int64_t alignments = random() % 2 == 0 ? 4 : 8;
  const bool fixed = random() % 3 == 0, aliases = random() % 3 == 0, gaps = random() % 3 == 0;
  for (Row& row : rows) {
    row.bytes = below(random, 20) == 0 ? 0 : 1 + below(random, sizes);
    row.alignment = std::int64_t{1} << below(random, alignments);
    std::int64_t time = below(random, 6);
    for (std::int64_t left = gaps ? below(random, 3) : 0; left >= 0; --left) {
      const std::int64_t end = time + 1 + below(random, 4);
      row.pieces.push_back({time, end});
      time = end + 1 + below(random, 2);
    }
    if (fixed && random() % 3 == 0) row.offset = row.alignment * below(random, 4);
    if (aliases && random() % 2 == 0) row.alias = random() % 2 == 0 ? "k" : "l";
  }
  return rows;
}

std::string table_of(const std::vector<Row>& rows) {
  std::string text = "id,lower,upper,size,alignment,gaps,alias,offset\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    std::string gaps;
    for (std::size_t p = 1; p < row.pieces.size(); ++p) {
      gaps += (p == 1 ? "" : " ") + std::to_string(row.pieces[p - 1].end) + "-" +
              std::to_string(row.pieces[p].begin);
    }
    text += "b" + std::to_string(i) + "," + std::to_string(row.pieces.front().begin) + "," +
            std::to_string(row.pieces.back().end) + "," + std::to_string(row.bytes) + "," +
            std::to_string(row.alignment) + "," + gaps + "," + row.alias + "," +
            (row.offset ? std::to_string(*row.offset) : "") + "\n";
  }
  return text;
}

/// Rows of one alias as one, from the first begin to the last end; without those of no bytes.
std::vector<Row> blocks_of(const std::vector<Row>& rows) {
  std::vector<Row> blocks;
  std::map<std::string, std::size_t> known;
  for (const Row& row : rows) {
    if (row.alias.empty() || known.try_emplace(row.alias, blocks.size()).second) {
      blocks.push_back(row);
      continue;
    }
    Row& block = blocks[known[row.alias]];
    block.pieces = {{std::min(block.pieces.front().begin, row.pieces.front().begin),
                     std::max(block.pieces.back().end, row.pieces.back().end)}};
    block.bytes = std::max(block.bytes, row.bytes);
    block.alignment = std::max(block.alignment, row.alignment);
    if (row.offset) block.offset = row.offset;
  }
  std::erase_if(blocks, [](const Row& block) { return block.bytes == 0; });
  return blocks;
}

bool meet(const Row& a, const Row& b) {
  for (const Lifetime& p : a.pieces) {
    for (const Lifetime& q : b.pieces) {
      if (p.begin < q.end && q.begin < p.end) return true;
    }
  }
  return false;
}

/// The least peak: of every order, with each block as low as those before it that it meets allow.
/// Taken in the order of its offsets, any packing becomes such a one without growing. Nothing where
/// no order leaves the fixed blocks where they are.
std::optional<std::int64_t> least_peak(const std::vector<Row>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::optional<std::int64_t> least;
  do {
    std::vector<std::int64_t> ends;  // by position
    std::int64_t peak = 0;
    bool sound = true;
    for (const std::size_t i : order) {
      const Row& block = blocks[i];
      std::int64_t offset = 0;
      for (std::size_t before = 0; before < ends.size(); ++before) {
        if (meet(blocks[order[before]], block)) offset = std::max(offset, ends[before]);
      }
      while (offset % block.alignment != 0) ++offset;
      sound = !block.offset || (offset <= *block.offset && *block.offset % block.alignment == 0);
      if (!sound) break;
      ends.push_back(block.offset.value_or(offset) + block.bytes);
      peak = std::max(peak, ends.back());
    }
    if (sound && (!least || peak < *least)) least = peak;
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

/// What the planner says of a table whose least peak is known.
void check(const Problem& problem, std::int64_t least, bool all_strategies) {
  for (const StrategyInfo& info : strategies()) {
    // It uses up its work where it cannot see that it is done.
    if (!all_strategies && info.name == "large_neighbourhoods") continue;
    const Plan plan = solve(problem, {.strategy = std::string(info.name), .effort = Effort::fast});
    ASSERT_NO_THROW(verify(problem, plan));
    ASSERT_GE(plan.peak, least) << info.name;
    ASSERT_LE(plan.lower_bound, least) << info.name;
    ASSERT_TRUE(!plan.optimal || plan.peak == least) << info.name;
  }
  const Plan plan = solve(problem, {.capacity = least});
  ASSERT_NO_THROW(verify(problem, plan));
  ASSERT_EQ(plan.peak, least);
  ASSERT_TRUE(plan.optimal);
  ASSERT_NE(error_of([&] { solve(problem, {.capacity = least - 1}); }).find("infeasible: proved"),
            std::string::npos);
  // What is added never lowers a bound.
  Problem part;
  for (const Buffer& buffer : problem.buffers()) {
    const auto before = lower_bounds(part);
    part.add(buffer);
    if (!before.empty()) {
      ASSERT_LE(before[0].lower_bound, lower_bounds(part)[0].lower_bound);
    }
  }
}

TEST(Exact, RandomTablesAgreeWithEveryOrderOfStacking) {
  constexpr int tables = fewer_where_slow(2000);
  std::mt19937 random(29);
  int checked = 0, above = 0, odd = 0, refused = 0;
  while (checked < tables) {
    const std::vector<Row> rows = draw_rows(random);
    const std::string table = table_of(rows);
    SCOPED_TRACE(table);
    const Problem problem = read_csv(table, "table");
    const std::optional<std::int64_t> least = least_peak(blocks_of(rows));
    if (error_of([&] { problem.validate(); }) != "(no error)") {
      ++refused;
      continue;
    }
    ASSERT_TRUE(least.has_value());
    check(problem, *least, checked % 10 == 0);
    if (HasFatalFailure()) return;
    ++checked;
    above += *least > lower_bounds(problem)[0].lower_bound;
    odd += *least % 4 != 0;
  }
  EXPECT_GT(above, tables / 20);
  EXPECT_GT(odd, tables / 4);
  EXPECT_GT(refused, tables / 100);
}

}  // namespace
}  // namespace arenite::plan
