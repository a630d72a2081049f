#include "src/base/words.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace arenite {
namespace {

TEST(Words, DigitsStandInThrees) {
  EXPECT_EQ(digits(0), "0");
  EXPECT_EQ(digits(999), "999");
  EXPECT_EQ(digits(-1000), "-1,000");
  EXPECT_EQ(digits(1048576), "1,048,576");
  EXPECT_EQ(digits(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Words, AreCounted) {
  EXPECT_EQ(counted(0, "op"), "0 ops");
  EXPECT_EQ(counted(1, "op"), "1 op");
  EXPECT_EQ(counted(2000, "NUMA node"), "2,000 NUMA nodes");
  EXPECT_EQ(counted(1, "copy"), "1 copy");
  EXPECT_EQ(counted(2, "copy"), "2 copies");
  EXPECT_EQ(counted(2, "array"), "2 arrays");
}

}  // namespace
}  // namespace arenite
