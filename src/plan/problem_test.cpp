#include <arenite/plan/problem.hpp>

#include <gtest/gtest.h>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

TEST(Problem, RefusesWhatNoBufferCanBe) {
  Problem p;
  p.add({.name = "x", .bytes = 1, .lifetime = {0, 1}});
  EXPECT_ERROR("without a name", p.add({.bytes = 1, .lifetime = {0, 1}}));
  EXPECT_ERROR("buffer 'x': the name of buffer 0 again",
               p.add({.name = "x", .bytes = 1, .lifetime = {0, 1}}));
  EXPECT_ERROR("buffer 'y': a size of -4 bytes; expected at least 0",
               p.add({.name = "y", .bytes = -4, .lifetime = {0, 1}}));
  EXPECT_ERROR("buffer 'y': lifetime [3, 3); expected an end after the begin",
               p.add({.name = "y", .bytes = 1, .lifetime = {3, 3}}));
  EXPECT_ERROR("lifetime [3, 2)", p.add({.name = "y", .bytes = 1, .lifetime = {3, 2}}));
  EXPECT_ERROR("times within", p.add({.name = "y", .lifetime = {0, INT64_MAX}}));
  for (const std::int64_t alignment : {std::int64_t{0}, std::int64_t{-256}, std::int64_t{3}}) {
    EXPECT_ERROR("expected a power of two",
                 p.add({.name = "y", .lifetime = {0, 1}, .alignment = alignment}));
  }
  EXPECT_ERROR("a fixed offset of -256", p.add({.name = "y", .offset = -256}));
  EXPECT_ERROR("a fixed offset of 100; expected a multiple of the alignment 256",
               p.add({.name = "y", .offset = 100}));
  EXPECT_EQ(p.size(), 1u);
}

TEST(Problem, RefusesSumsThatCouldOverflow) {
  Problem p;
  EXPECT_ERROR("pass 2^60 bytes", p.add({.name = "x", .bytes = INT64_MAX}));
  p.add({.name = "x", .bytes = std::int64_t{1} << 59, .lifetime = {0, 1}});
  EXPECT_ERROR("pass 2^60 bytes",
               p.add({.name = "y", .bytes = std::int64_t{1} << 59, .lifetime = {0, 1}}));
  EXPECT_ERROR("pass 2^60 bytes", p.add({.name = "y", .offset = std::int64_t{1} << 62}));
  EXPECT_ERROR("pass 2^60 bytes", p.add({.name = "y", .alignment = std::int64_t{1} << 62}));
}

TEST(Problem, ASpaceHasOneCapacity) {
  Problem p;
  p.add({.name = "x", .lifetime = {0, 1}, .space = {.capacity = 100}});
  EXPECT_ERROR("cpu:0/host with a capacity of 200 bytes; expected 100",
               p.add({.name = "y", .lifetime = {0, 1}, .space = {.capacity = 200}}));
  EXPECT_ERROR("at least 0", p.add({.name = "z", .space = {.index = 1, .capacity = -1}}));
}

TEST(Problem, NeedsLifetimesWithoutAPrecedence) {
  Problem p;
  p.add({.name = "x", .bytes = 1});
  EXPECT_ERROR("buffer 'x': no lifetime", p.validate());
  p.set_precedence(Precedence(1));
  p.validate();
}

TEST(Problem, ConflictsFollowHalfOpenLifetimesAndSpaces) {
  Problem p;
  p.add({.name = "a", .bytes = 1, .lifetime = {0, 2}});
  p.add({.name = "b", .bytes = 1, .lifetime = {2, 3}});
  p.add({.name = "c", .bytes = 1, .lifetime = {1, 3}});
  p.add({.name = "d", .bytes = 1, .lifetime = {1, 3}, .space = {.index = 1}});
  EXPECT_TRUE(p.before(0, 1));
  EXPECT_FALSE(p.conflict(0, 1));
  EXPECT_TRUE(p.conflict(0, 2));
  EXPECT_TRUE(p.conflict(2, 1));
  EXPECT_FALSE(p.conflict(2, 3));
}

Problem three() {
  Problem p;
  for (const char* name : {"a", "b", "c"}) p.add({.name = name, .bytes = 1});
  return p;
}

TEST(Problem, RefusesAnOrderThatIsNone) {
  Problem p = three();
  p.set_precedence(Precedence(2));
  EXPECT_ERROR("an order of 2 buffers; expected 3", p.validate());

  Precedence reflexive(3);
  reflexive.set_before(1, 1);
  p.set_precedence(reflexive);
  EXPECT_ERROR("'b' before itself", p.validate());

  Precedence two_cycle(3);
  two_cycle.set_before(0, 2);
  two_cycle.set_before(2, 0);
  p.set_precedence(two_cycle);
  EXPECT_ERROR("'a' before 'c' and 'c' before 'a'", p.validate());

  Precedence chain(3);
  chain.set_before(0, 1);
  chain.set_before(1, 2);
  p.set_precedence(chain);
  EXPECT_ERROR("'a' before 'b' and 'b' before 'c', but not 'a' before 'c'", p.validate());
  chain.close();
  p.set_precedence(chain);
  p.validate();

  chain.set_before(2, 0);
  chain.close();
  p.set_precedence(chain);
  EXPECT_ERROR("before itself", p.validate());
  EXPECT_ERROR("index 3; expected an index below 3", chain.set_before(0, 3));
  EXPECT_ERROR("at most 131072", Precedence(std::size_t{1} << 40));
}

// Any missing or extra pair of a random order is found, unless what is left is an order again.
TEST(Problem, FindsEveryDefectOfAnOrder) {
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < fewer_where_slow(3000); ++round) {
    const std::size_t n = 2 + random() % 7;
    Problem p;
    for (std::size_t i = 0; i < n; ++i) p.add({.name = std::to_string(i), .bytes = 1});
    const Precedence good = random_order(random, n, 40);
    p.set_precedence(good);
    p.validate();

    Precedence changed(n);
    const std::size_t a = random() % n;
    const std::size_t b = random() % n;
    bool sound = true;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (good.before(i, j) != (i == a && j == b)) changed.set_before(i, j);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      sound = sound && !changed.before(i, i);
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < n; ++k) {
          if (changed.before(i, j) && changed.before(j, k)) {
            sound = sound && changed.before(i, k);
          }
        }
      }
    }
    p.set_precedence(changed);
    if (sound) {
      p.validate();
    } else {
      EXPECT_THROW(p.validate(), Error);
      ++refused;
    }
  }
  EXPECT_GT(refused, fewer_where_slow(1000));
}

TEST(Problem, LifetimesMustFollowThePrecedence) {
  Problem p;
  p.add({.name = "a", .bytes = 1, .lifetime = {0, 2}});
  p.add({.name = "b", .bytes = 1, .lifetime = {1, 3}});
  p.set_precedence(Precedence(2));
  p.validate();
  Precedence order(2);
  order.set_before(0, 1);
  p.set_precedence(order);
  EXPECT_ERROR("'a' before 'b', but with lifetimes [0, 2) and [1, 3)", p.validate());

  Problem mixed;
  mixed.add({.name = "a", .bytes = 1, .lifetime = {0, 2}});
  mixed.add({.name = "b", .bytes = 1});
  mixed.set_precedence(order);
  EXPECT_ERROR("lifetimes for 1 of 2 buffers", mixed.validate());
}

TEST(Problem, FixedOffsetsMustNotOverlap) {
  Problem p;
  p.add({.name = "a", .bytes = 300, .lifetime = {0, 2}, .offset = 0});
  p.add({.name = "b", .bytes = 300, .lifetime = {2, 3}, .offset = 256});
  p.validate();
  p.add({.name = "c", .bytes = 0, .lifetime = {0, 3}, .offset = 0});
  p.add({.name = "d", .bytes = 1, .lifetime = {0, 3}, .space = {.index = 1}, .offset = 0});
  p.validate();
  p.add({.name = "e", .bytes = 1, .lifetime = {1, 2}, .offset = 256});
  EXPECT_ERROR(
      "'a' (300 bytes, lifetime [0, 2)) fixed at 0 and 'e' (1 bytes, lifetime [1, 2)) "
      "fixed at 256 overlap",
      p.validate());
}

}  // namespace
}  // namespace arenite::plan
