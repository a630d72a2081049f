// The exact search against every packing there is, on instances small enough for that.
#include "src/plan/search/search.hpp"

#include <gtest/gtest.h>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>
#include <arenite/random.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/plan/search/orders.hpp"
#include "src/plan/search/packer.hpp"
#include "src/plan/search/sections.hpp"
#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

constexpr std::int64_t plenty = 1'000'000'000;

Buffer plain(std::size_t number, std::int64_t bytes, Lifetime lifetime) {
  return {.name = std::string(1, static_cast<char>('a' + number)),
          .bytes = bytes,
          .lifetime = lifetime,
          .alignment = 1,
          .space = {},
          .label = {},
          .offset = {}};
}

/// 4 bytes are live at any time, but no plan takes less than 5. Plain intervals that need more than
/// max-live are rare.
std::vector<Buffer> gadget() {
  const std::vector<std::pair<std::int64_t, Lifetime>> rows = {
      {2, {0, 1}}, {2, {0, 3}}, {1, {1, 5}}, {1, {1, 4}},
      {1, {3, 4}}, {1, {3, 5}}, {2, {4, 6}}, {2, {5, 6}}};
  std::vector<Buffer> buffers;
  for (const auto& [bytes, lifetime] : rows) {
    buffers.push_back(plain(buffers.size(), bytes, lifetime));
  }
  return buffers;
}

/// A few buffers in one space, drawn.
class Draw {
 public:
  explicit Draw(std::uint32_t number) : random_(7, Purpose{2000}, number) {}

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_.bits(drawn_++)) % n;
  }

  /// The gadget below, a little changed: sizes, lifetimes, up to two buffers more.
  Problem near_gadget() {
    std::vector<Buffer> buffers = gadget();
    for (std::int64_t edits = below(4); edits > 0; --edits) {
      Buffer& buffer = buffers[static_cast<std::size_t>(below(8))];
      switch (below(3)) {
        case 0:
          buffer.bytes = 1 + below(3);
          break;
        case 1:
          buffer.lifetime.end = buffer.lifetime.begin + 1 + below(4);
          break;
        default:
          buffer.lifetime.begin = buffer.lifetime.end - 1 - below(4);
          break;
      }
    }
    for (std::int64_t more = below(3); more > 0; --more) {
      const std::int64_t begin = below(6);
      buffers.push_back(plain(buffers.size(), 1, {begin, begin + 1 + below(3)}));
    }
    Problem problem;
    for (const Buffer& buffer : buffers) problem.add(buffer);
    return problem;
  }

  Problem problem(int buffers, bool aligned, bool ordered, bool fixed) {
    Problem problem;
    const std::int64_t ticks = 2 + below(8);
    for (int i = 0; i < buffers; ++i) {
      const std::int64_t begin = below(ticks);
      Buffer buffer{.name = std::string(1, static_cast<char>('a' + i)),
                    .bytes = 1 + below(12),
                    .lifetime = {begin, begin + 1 + below(ticks - begin)},
                    .alignment = aligned ? std::int64_t{1} << below(4) : 1,
                    .space = {},
                    .label = {},
                    .offset = {}};
      if (ordered) buffer.lifetime = {};
      problem.add(buffer);
    }
    if (fixed) problem = with_fixed(problem);
    if (ordered) problem.set_precedence(order(static_cast<std::size_t>(buffers)));
    return problem;
  }

  /// Half of what is long enough is left alone for a tick.
  Problem with_gaps(const Problem& whole) {
    Problem result;
    for (Buffer buffer : whole.buffers()) {
      const std::int64_t inner = buffer.lifetime.end - buffer.lifetime.begin - 2;
      if (inner > 0 && below(2) == 0) {
        const std::int64_t gap = buffer.lifetime.begin + 1 + below(inner);
        buffer.gaps.push_back({gap, gap + 1});
      }
      result.add(std::move(buffer));
    }
    return result;
  }

 private:
  /// One or two buffers get a place that overlaps nothing.
  Problem with_fixed(const Problem& loose) {
    Problem result;
    for (std::size_t i = 0; i < loose.size(); ++i) {
      Buffer buffer = loose[i];
      if (i == 0) buffer.offset = below(4) * buffer.alignment;
      if (i == 1 && below(2) == 0) {
        buffer.offset = round_up(*result[0].offset + result[0].bytes + below(6), buffer.alignment);
      }
      result.add(buffer);
    }
    return result;
  }

  Precedence order(std::size_t n) {
    Precedence order(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) {
        if (below(3) == 0) order.set_before(i, j);
      }
    }
    order.close();
    return order;
  }

  Philox random_;
  std::uint64_t drawn_ = 0;
};

/// Every packing that cannot be pushed down comes from first fit in the order of its offsets: so
/// the best over all orders is the optimum.
class Exhaustive {
 public:
  explicit Exhaustive(const Instance& instance)
      : instance_(instance), offsets_(instance.items.size(), -1) {
    for (std::size_t i = 0; i < offsets_.size(); ++i) offsets_[i] = instance.items[i].fixed;
  }

  /// No packing is below `bound`: the first one that meets it will do.
  std::int64_t optimum(std::int64_t bound) {
    bound_ = bound;
    best_.reset();
    descend();
    return *best_;
  }

 private:
  void descend() {
    if (best_ && (*best_ == bound_ || peak_of(instance_, offsets_) >= *best_)) return;
    bool open = false;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      if (offsets_[i] >= 0) continue;
      open = true;
      offsets_[i] = lowest(i);
      descend();
      offsets_[i] = -1;
    }
    if (!open) best_ = std::min(best_.value_or(plenty), peak_of(instance_, offsets_));
  }

  std::int64_t lowest(std::size_t item) const {
    const std::int64_t step = instance_.items[item].alignment;
    for (std::int64_t offset = 0;; offset += step) {
      bool fits = true;
      for (std::size_t other = 0; other < offsets_.size(); ++other) {
        fits = fits && (other == item || offsets_[other] < 0 || !instance_.conflict(item, other) ||
                        offset >= offsets_[other] + instance_.items[other].bytes ||
                        offsets_[other] >= offset + instance_.items[item].bytes);
      }
      if (fits) return offset;
    }
  }

  const Instance& instance_;
  std::vector<std::int64_t> offsets_;
  std::int64_t bound_ = 0;
  std::optional<std::int64_t> best_;
};

/// What search() says must be true and, without a limit to its work, the whole truth. Counts the
/// problems whose optimum is above what lower_bounds() knows.
void compare(const Problem& problem, const std::string& what, int& above) {
  SCOPED_TRACE(what);
  const auto bounds = lower_bounds(problem);
  const std::vector<SpaceInstance> spaces = split_by_space(problem);
  ASSERT_EQ(spaces.size(), 1u);
  const Instance& instance = spaces[0].instance;
  const std::int64_t optimum = Exhaustive(instance).optimum(bounds[0].lower_bound);
  above += optimum > bounds[0].lower_bound ? 1 : 0;
  for (const std::int64_t work : {std::int64_t{0}, std::int64_t{40}, plenty}) {
    const Packing found = search(instance, {bounds[0].lower_bound, work});
    ASSERT_EQ(found.offsets.size(), instance.items.size());
    for (std::size_t i = 0; i < instance.items.size(); ++i) {
      const Item& item = instance.items[i];
      ASSERT_GE(found.offsets[i], 0);
      ASSERT_EQ(found.offsets[i] % item.alignment, 0);
      if (item.fixed >= 0) {
        ASSERT_EQ(found.offsets[i], item.fixed);
      }
      for (std::size_t j = 0; j < i; ++j) {
        ASSERT_TRUE(!instance.conflict(i, j) ||
                    found.offsets[i] >= found.offsets[j] + instance.items[j].bytes ||
                    found.offsets[j] >= found.offsets[i] + item.bytes);
      }
    }
    ASSERT_GE(peak_of(instance, found.offsets), optimum);
    ASSERT_LE(found.lower_bound, optimum);
    if (work == plenty) {
      ASSERT_EQ(peak_of(instance, found.offsets), optimum);
      ASSERT_EQ(found.lower_bound, optimum);
    }
  }
}

constexpr int instances = fewer_where_slow(2000);

void compare_many(std::uint32_t first, int count, bool aligned, bool ordered, bool fixed) {
  int above = 0;
  for (int i = 0; i < count && !::testing::Test::HasFatalFailure(); ++i) {
    const std::uint32_t number = first + static_cast<std::uint32_t>(i);
    Draw draw(number);
    const int buffers = 1 + static_cast<int>(draw.below(ARENITE_CHECKED ? 6 : 7));
    compare(draw.problem(buffers, aligned, ordered, fixed), "number " + std::to_string(number),
            above);
  }
  if (aligned || fixed) {
    EXPECT_GT(above, count / 100);
  }
}

TEST(Search, IsTheOptimumNearTheGadget) {
  int above = 0;
  for (std::uint32_t i = 0; i < instances && !HasFatalFailure(); ++i) {
    compare(Draw(70000 + i).near_gadget(), "number " + std::to_string(i), above);
  }
  EXPECT_GT(above, instances / 20);
}

TEST(Search, ProvesAnOptimumAboveMaxLive) {
  Problem problem;
  for (const Buffer& buffer : gadget()) problem.add(buffer);
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.max_live, 4);
  EXPECT_EQ(plan.lower_bound, 5);
  EXPECT_EQ(plan.peak, 5);
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(plan.spaces[0].proof, Proof::search);

  Plan boast = plan;
  boast.spaces[0].proof = Proof::live;
  EXPECT_ERROR("which can be confirmed", verify(problem, boast));
  EXPECT_ERROR("infeasible: proved: at least 5 bytes", solve(problem, {.capacity = 4}));
}

TEST(Search, IsTheOptimum) { compare_many(0, instances, false, false, false); }
TEST(Search, IsTheOptimumWithAlignments) { compare_many(10000, instances, true, false, false); }
TEST(Search, IsTheOptimumWithPrecedence) { compare_many(20000, instances, false, true, false); }
TEST(Search, IsTheOptimumWithPrecedenceAndAlignments) {
  compare_many(30000, instances, true, true, false);
}
TEST(Search, IsTheOptimumAroundFixedOffsets) { compare_many(40000, instances, false, false, true); }
TEST(Search, IsTheOptimumAroundAlignedFixedOffsets) {
  compare_many(50000, instances, true, false, true);
}
TEST(Search, IsTheOptimumAroundFixedOffsetsWithPrecedence) {
  compare_many(60000, instances, true, true, true);
}

TEST(Search, IsTheOptimumWithGaps) {
  int above = 0;
  for (std::uint32_t i = 0; i < instances && !HasFatalFailure(); ++i) {
    Draw draw(80000 + i);
    const Problem whole =
        i % 2 == 0 ? draw.near_gadget() : draw.problem(6, true, false, i % 4 == 1);
    compare(draw.with_gaps(whole), "number " + std::to_string(i), above);
  }
  EXPECT_GT(above, instances / 50);
}

// What cannot be searched is no reason to leave the rest.
TEST(Search, WorksBesideALongChain) {
  Problem problem;
  std::mt19937 random(7);
  Problem hard;
  std::int64_t found = 0;
  std::int64_t least = 0;
  while (found == least) {
    hard = Problem();
    for (std::int64_t i = 0; i < 24; ++i) {
      const std::int64_t begin = below(random, 12);
      hard.add({.name = "h" + std::to_string(i),
                .bytes = 1 + below(random, 9),
                .lifetime = {begin, begin + 1 + below(random, 5)},
                .alignment = 1});
    }
    least = solve(hard).peak;
    found = std::numeric_limits<std::int64_t>::max();
    for (const char* name : {"first_fit_by_size", "first_fit_by_area", "first_fit_by_lifetime"}) {
      found = std::min(found, solve(hard, {.strategy = name}).peak);
    }
  }
  for (const Buffer& buffer : hard.buffers()) problem.add(buffer);
  for (std::int64_t i = 0; i < std::int64_t{most_items_on_a_line} + 1000; ++i) {
    problem.add({.name = "c" + std::to_string(i),
                 .bytes = 1,
                 .lifetime = {100 + i, 102 + i},
                 .alignment = 1});
  }
  EXPECT_EQ(solve(problem, {.strategy = "search"}).peak, least);
}

// As deep as a search can be: a level for each item.
TEST(Search, NeedsLittleStackForTheLargestLeaf) {
  Problem problem;
  for (std::size_t i = 0; i < most_items_on_a_line; ++i) {
    const auto begin = static_cast<std::int64_t>(i / 16);
    problem.add({.name = "c" + std::to_string(i),
                 .bytes = 1 + static_cast<std::int64_t>(i % 3),
                 .lifetime = {begin, begin + 5},
                 .alignment = 1});
  }
  const Instance instance = split_by_space(problem).front().instance;
  const Sections sections = make_sections(instance);
  Packer packer(instance, sections);
  const Orders orders(instance, sections);
  ASSERT_EQ(packer.pack(300, {orders.ranks(0), false}, plenty), Packer::Outcome::found);
  EXPECT_LE(peak_of(instance, packer.offsets()), 300);
}

}  // namespace
}  // namespace arenite::plan
