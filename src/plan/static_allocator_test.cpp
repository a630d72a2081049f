#include <arenite/plan/static_allocator.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

TEST(StaticAllocator, RoundsSizesInside) {
  StaticAllocator arena;
  EXPECT_EQ(arena.allocate(1), 0);
  EXPECT_EQ(arena.allocate(256), 256);
  EXPECT_EQ(arena.allocate(257), 512);
  EXPECT_EQ(arena.used(), 256 + 256 + 512);
  EXPECT_EQ(arena.peak(), 1024);
}

TEST(StaticAllocator, FreeTakesTheUnroundedSize) {
  StaticAllocator arena;
  const auto a = arena.allocate(100);
  EXPECT_EQ(error_of([&] { arena.free(a, 256); }),
            "StaticAllocator: free(0, 256) of an allocation of 100 bytes; expected the size that "
            "was asked for, unrounded");
  arena.free(a, 100);
  EXPECT_EQ(arena.used(), 0);
  EXPECT_EQ(arena.info().largest_free, 256);
}

TEST(StaticAllocator, ZeroBytesTakeNoRoom) {
  StaticAllocator arena;
  const auto a = arena.allocate(0);
  const auto b = arena.allocate(512);
  const auto c = arena.allocate(0);
  EXPECT_EQ(b, 0);
  EXPECT_EQ(arena.peak(), 512);
  EXPECT_EQ(arena.info().live_allocations, 3u);
  arena.free(c, 0);
  arena.free(a, 0);
  EXPECT_NE(error_of([&] { arena.free(a, 0); }).find("free(0, 0)"), std::string::npos);
  arena.free(b, 512);
  EXPECT_EQ(arena.info().live_allocations, 0u);
  EXPECT_NE(error_of([&] { arena.free(0, 0); }).find("no live allocation of 0 bytes"),
            std::string::npos);
}

TEST(StaticAllocator, ReusesAFreedMiddleBlock) {
  StaticAllocator arena;
  arena.allocate(256);
  const auto middle = arena.allocate(512);
  arena.allocate(256);
  arena.free(middle, 512);
  EXPECT_EQ(arena.allocate(300), middle);
  EXPECT_EQ(arena.peak(), 1024);
}

TEST(StaticAllocator, TakesTheBestFitAndKeepsTheRest) {
  StaticAllocator arena(1);
  const auto large = arena.allocate(100);
  arena.allocate(1);
  const auto small = arena.allocate(40);
  arena.allocate(1);
  arena.free(large, 100);
  arena.free(small, 40);
  EXPECT_EQ(arena.allocate(30), small);
  EXPECT_EQ(arena.allocate(10), small + 30);
  EXPECT_EQ(arena.allocate(10), large);
}

TEST(StaticAllocator, TakesTheLowestOfEqualFits) {
  StaticAllocator arena(1);
  const auto low = arena.allocate(10);
  arena.allocate(1);
  const auto high = arena.allocate(10);
  arena.allocate(1);
  arena.free(high, 10);
  arena.free(low, 10);
  EXPECT_EQ(arena.allocate(10), low);
  EXPECT_EQ(arena.allocate(10), high);
}

TEST(StaticAllocator, MergesThreeNeighbours) {
  StaticAllocator arena;
  const auto a = arena.allocate(256);
  const auto b = arena.allocate(256);
  const auto c = arena.allocate(256);
  arena.allocate(256);
  arena.free(a, 256);
  arena.free(c, 256);
  EXPECT_EQ(arena.info().free_blocks, 2u);
  arena.free(b, 256);
  EXPECT_EQ(arena.info().free_blocks, 1u);
  EXPECT_EQ(arena.info().largest_free, 768);
  EXPECT_EQ(arena.allocate(768), 0);
}

TEST(StaticAllocator, ALargerRequestExtendsTheTailBlock) {
  StaticAllocator arena;
  arena.allocate(256);
  const auto tail = arena.allocate(256);
  arena.free(tail, 256);
  EXPECT_EQ(arena.allocate(1024), tail);
  EXPECT_EQ(arena.peak(), 256 + 1024);
  EXPECT_EQ(arena.info().free_blocks, 0u);
}

TEST(StaticAllocator, GrowsAtTheTailOnlyWhenNothingFits) {
  StaticAllocator arena;
  const auto hole = arena.allocate(1024);
  arena.allocate(256);
  const auto tail = arena.allocate(512);
  arena.free(hole, 1024);
  arena.free(tail, 512);
  EXPECT_EQ(arena.allocate(512), tail);  // the better fit, and it happens to be the tail
  EXPECT_EQ(arena.allocate(1000), hole);
  const auto top = arena.peak();
  EXPECT_EQ(arena.allocate(1), top);
}

TEST(StaticAllocator, PeakNeverShrinks) {
  StaticAllocator arena;
  const auto a = arena.allocate(1000);
  arena.free(a, 1000);
  EXPECT_EQ(arena.used(), 0);
  EXPECT_EQ(arena.peak(), 1024);
  EXPECT_EQ(arena.info().free_bytes, 1024);
}

TEST(StaticAllocator, RefusesADoubleFree) {
  StaticAllocator arena;
  const auto a = arena.allocate(256);
  arena.allocate(256);
  arena.free(a, 256);
  EXPECT_EQ(error_of([&] { arena.free(a, 256); }),
            "StaticAllocator: free(0, 256) of bytes that are free already; expected an offset that "
            "allocate() returned and nobody freed since (hint: a double free, or an offset of "
            "another allocator)");
}

TEST(StaticAllocator, RefusesAForeignFree) {
  StaticAllocator arena;
  arena.allocate(512);
  EXPECT_NE(error_of([&] { arena.free(256, 256); }).find("inside the allocation of 512 bytes"),
            std::string::npos);
  EXPECT_NE(error_of([&] { arena.free(4096, 256); }).find("never handed out"), std::string::npos);
  EXPECT_NE(error_of([&] { arena.free(-256, 256); }).find("never handed out"), std::string::npos);
  EXPECT_EQ(arena.used(), 512);
  arena.free(0, 512);
}

TEST(StaticAllocator, RefusesWhatNoBlockCanHold) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  StaticAllocator arena;
  EXPECT_NE(error_of([&] { arena.allocate(-1); }).find("a request of -1 bytes"), std::string::npos);
  EXPECT_NE(error_of([&] { arena.allocate(most); }).find("expected at most"), std::string::npos);
  arena.allocate(most - 512);
  EXPECT_NE(error_of([&] { arena.allocate(512); }).find("on top of"), std::string::npos);
  EXPECT_EQ(arena.info().live_allocations, 1u);
  EXPECT_THROW(StaticAllocator(0), Error);
  EXPECT_THROW(StaticAllocator(-256), Error);
  EXPECT_THROW(StaticAllocator(48), Error);
}

/// The same policy without any index: looks at all gaps every time.
struct NaiveAllocator {
  std::map<std::int64_t, std::int64_t> live;  // offset -> rounded size
  std::int64_t end = 0;

  std::int64_t allocate(std::int64_t size) {
    std::int64_t best = -1;
    std::int64_t best_size = std::numeric_limits<std::int64_t>::max();
    std::int64_t at = 0;
    const auto consider = [&](std::int64_t next) {
      if (next - at >= size && next - at < best_size) {
        best = at;
        best_size = next - at;
      }
    };
    for (const auto& [offset, bytes] : live) {
      consider(offset);
      at = offset + bytes;
    }
    consider(end);
    if (best < 0) {
      best = at;  // the top of the highest allocation
      end = at + size;
    }
    live[best] = size;
    return best;
  }
};

TEST(StaticAllocator, AgreesWithANaiveModel) {
  for (const std::int64_t alignment : {1, 16, 256}) {
    std::mt19937 random(static_cast<unsigned>(alignment));
    StaticAllocator arena(alignment);
    NaiveAllocator model;
    std::vector<std::pair<std::int64_t, std::int64_t>> live;
    for (int step = 0; step < 20000; ++step) {
      // Phases of growth and of shrinking, so that the block is at times nearly empty.
      const bool grow = random() % 100 < (step / 1000 % 2 == 0 ? 60u : 40u);
      if (grow || live.empty()) {
        const std::int64_t bytes = 1 + random() % 2000;
        const auto offset = arena.allocate(bytes);
        ASSERT_EQ(offset, model.allocate(round_up(bytes, alignment)));
        live.emplace_back(offset, bytes);
      } else {
        std::swap(live[random() % live.size()], live.back());
        const auto [offset, bytes] = live.back();
        live.pop_back();
        arena.free(offset, bytes);
        model.live.erase(offset);
      }
      std::int64_t used = 0;
      for (const auto& [offset, size] : model.live) used += size;
      ASSERT_EQ(arena.used(), used);
      ASSERT_EQ(arena.peak(), model.end);
      ASSERT_EQ(arena.info().live_allocations, live.size());
    }
    for (const auto& [offset, bytes] : live) arena.free(offset, bytes);
    EXPECT_EQ(arena.info().free_blocks, 1u);
    EXPECT_EQ(arena.info().largest_free, arena.peak());
  }
}

}  // namespace
}  // namespace arenite::plan
