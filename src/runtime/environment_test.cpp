#include "src/runtime/environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace arenite::runtime {
namespace {

struct Environment : ::testing::Test {
  LentVariables outer;
};

TEST_F(Environment, IsPutBack) {
  outer.set("ARENITE_TEST_A", "a");
  outer.hide("ARENITE_TEST_B");
  {
    LentVariables lent;
    lent.set("ARENITE_TEST_A", "1");
    lent.set("ARENITE_TEST_A", "2");
    lent.hide("ARENITE_TEST_A");
    lent.set("ARENITE_TEST_B", "b");
    EXPECT_EQ(std::getenv("ARENITE_TEST_A"), nullptr);
    EXPECT_STREQ(std::getenv("ARENITE_TEST_B"), "b");
  }
  EXPECT_STREQ(std::getenv("ARENITE_TEST_A"), "a");
  EXPECT_EQ(std::getenv("ARENITE_TEST_B"), nullptr);
}

TEST_F(Environment, LeavesDevicesToWhoAsksForThem) {
  for (const char* name : {"HWLOC_PLUGINS_PATH", "HWLOC_COMPONENTS"}) outer.hide(name);
  {
    LentVariables lent;
    prepare_environment(lent);
    EXPECT_NE(std::getenv("HWLOC_PLUGINS_PATH"), nullptr);
    EXPECT_NE(std::getenv("HWLOC_COMPONENTS"), nullptr);
  }
  EXPECT_EQ(std::getenv("HWLOC_PLUGINS_PATH"), nullptr);
  outer.set("HWLOC_COMPONENTS", "x86");
  LentVariables lent;
  prepare_environment(lent);
  EXPECT_STREQ(std::getenv("HWLOC_COMPONENTS"), "x86");
}

}  // namespace
}  // namespace arenite::runtime
