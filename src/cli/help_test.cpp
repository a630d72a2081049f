#include "src/cli/help.hpp"

#include <gtest/gtest.h>

namespace arenite::cli {
namespace {

const std::string word(30, 'w');

TEST(Help, ColumnsOfLetters) {
  EXPECT_EQ(columns_of(""), 0u);
  EXPECT_EQ(columns_of("[OPTION]…"), 9u);
  EXPECT_EQ(columns_of("µs"), 2u);
}

TEST(Help, BreaksLinesAtBlanks) {
  const std::string three = word + " " + word + " " + word;
  EXPECT_EQ(wrapped("  -x", "does it", 6), "  -x  does it\n");
  EXPECT_EQ(wrapped("", three, 4), "    " + three + "\n");
  EXPECT_EQ(wrapped("", three + " " + word, 4), "    " + three + "\n    " + word + "\n");
  const std::string long_word(150, 'x');
  EXPECT_EQ(wrapped("", "a " + long_word + " b", 2), "  a\n  " + long_word + "\n  b\n");
}

TEST(Help, PutsWhatIsTooLongAbove) {
  EXPECT_EQ(wrapped("  --name", "does it", 8), "  --name\n        does it\n");
}

TEST(Help, ItemsHang) {
  EXPECT_EQ(wrapped("", "list:\none: " + word + " " + word + " " + word + " " + word + "\ntwo", 1),
            " list:\n one: " + word + " " + word + " " + word + "\n   " + word + "\n two\n");
}

TEST(Help, NothingToSay) { EXPECT_EQ(wrapped("  x", "", 6), "  x\n"); }

}  // namespace
}  // namespace arenite::cli
