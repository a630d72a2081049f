#include "src/base/processors.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace arenite {
namespace {

TEST(Processors, AnAffinityLeavesFewer) {
  const int before = allowed_processors();
  EXPECT_GE(before, 1);
  int bound = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    bound = allowed_processors();
  }).join();
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(allowed_processors(), before);
}

TEST(Processors, AGrantIsRoundedDownToAtLeastOne) {
  const int allowed = allowed_processors();
  EXPECT_EQ(usable_processors({}), allowed);
  EXPECT_EQ(usable_processors({.processors = 0.25}), 1);
  EXPECT_EQ(usable_processors({.processors = 1.9}), 1);
  EXPECT_EQ(usable_processors({.processors = allowed + 0.5}), allowed);
  EXPECT_EQ(usable_processors({.processors = 1e12}), allowed);
}

}  // namespace
}  // namespace arenite
