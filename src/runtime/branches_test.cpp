#include "src/runtime/branches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace arenite::runtime {
namespace {

Footprint of(std::vector<Footprint::Range> ranges) {
  Footprint made;
  made.ranges = std::move(ranges);
  return made;
}
Footprint::Range reads(std::int64_t at) { return {.block = 0, .begin = at, .end = at + 1}; }
Footprint::Range writes(std::int64_t at) {
  return {.block = 0, .begin = at, .end = at + 1, .writes = true};
}

/// "0 1<0 0<1": the branch of each op, and whom it waits for besides.
std::string text(const std::vector<BranchedOp>& placed) {
  std::string all;
  for (const BranchedOp& op : placed) {
    all += (all.empty() ? "" : " ") + std::to_string(op.branch);
    for (const std::size_t first : op.follows) all += "<" + std::to_string(first);
  }
  return all;
}

TEST(Branches, StandBehindWhoWritesWhatTheyTouch) {
  // A chain, two that read the same, who writes what one of them reads, and who reads both.
  EXPECT_EQ(text(branch({of({writes(0)}), of({reads(0), writes(1)}), of({reads(0), writes(2)}),
                         of({writes(0)}), of({reads(1), reads(2)})},
                        4)),
            "0 0 1<0 1<1 0<2");
  EXPECT_EQ(text(branch({}, 4)), "");
}

TEST(Branches, AreBytesOfOneBlock) {
  Footprint elsewhere = of({writes(0)});
  elsewhere.ranges[0].block = 1;
  EXPECT_EQ(text(branch({of({writes(0)}), elsewhere, of({writes(1)})}, 4)), "0 1 2");
}

TEST(Branches, KeepTheOrderOfFaultsAndState) {
  Footprint reporting = of({writes(0)}), updating = of({writes(1)});
  reporting.reports = true;
  updating.updates_state = true;
  EXPECT_EQ(text(branch({updating, reporting, of({writes(2)}), updating}, 4)), "0 0 1 0");
}

TEST(Branches, KeepLibrariesInOrder) {
  Footprint one = of({writes(0)}), other = of({writes(1)});
  one.exclusive = other.exclusive = true;
  EXPECT_EQ(text(branch({one, of({writes(2)}), other}, 4)), "0 1 0");
}

TEST(Branches, AreNoMoreThanThereMayBe) {
  std::vector<Footprint> apart;
  for (std::int64_t i = 0; i < 6; ++i) apart.push_back(of({writes(i)}));
  EXPECT_EQ(text(branch(apart, 1)), "0 0 0 0 0 0");
  EXPECT_EQ(text(branch(apart, 2)), "0 1 0 1 0 1");
}

/// Whoever has to follow does, by its branch and those it waits for.
TEST(Branches, OrderAllThatMeet) {
  std::mt19937 random(7);
  const auto draw = [&](int most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  };
  int side_by_side = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t most = 1 + static_cast<std::size_t>(draw(4));
    std::vector<Footprint> ops;
    for (int i = 0; i < 24; ++i) {
      Footprint op;
      for (int r = 0; r < 3; ++r) {
        const std::int64_t begin = draw(40);
        op.ranges.push_back({.block = static_cast<std::size_t>(draw(2)),
                             .begin = begin,
                             .end = begin + 1 + draw(6),
                             .writes = draw(3) == 0});
      }
      op.reports = draw(9) == 0;
      op.updates_state = draw(9) == 0;
      op.exclusive = draw(5) == 0;
      ops.push_back(op);
    }
    const std::vector<BranchedOp> placed = branch(ops, most);
    std::vector<std::vector<bool>> follows(ops.size(), std::vector<bool>(ops.size(), false));
    for (std::size_t i = 0; i < ops.size(); ++i) {
      ASSERT_LT(placed[i].branch, most);
      std::vector<std::size_t> direct = placed[i].follows;
      for (std::size_t j = 0; j < i; ++j) {
        if (placed[j].branch == placed[i].branch) direct.push_back(j);
      }
      for (const std::size_t j : direct) {
        ASSERT_LT(j, i);
        follows[i][j] = true;
        for (std::size_t k = 0; k < j; ++k) follows[i][k] = follows[i][k] || follows[j][k];
      }
      for (std::size_t j = 0; j < i; ++j) {
        const bool must =
            std::ranges::any_of(ops[i].ranges,
                                [&](const auto& a) {
                                  return std::ranges::any_of(ops[j].ranges, [&](const auto& b) {
                                    return a.block == b.block && (a.writes || b.writes) &&
                                           std::max(a.begin, b.begin) < std::min(a.end, b.end);
                                  });
                                }) ||
            (ops[j].reports && ops[i].updates_state) || (ops[j].updates_state && ops[i].reports) ||
            (ops[j].exclusive && ops[i].exclusive);
        EXPECT_TRUE(!must || follows[i][j]) << j << " before " << i;
        side_by_side += follows[i][j] ? 0 : 1;
      }
    }
  }
  EXPECT_GT(side_by_side, 1000);
}

}  // namespace
}  // namespace arenite::runtime
