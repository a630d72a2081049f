#include "src/base/installed.hpp"

#include "src/base/shell_word.hpp"

#include <gtest/gtest.h>

namespace arenite {
namespace {

// What an installed program says is install_test's.
TEST(Installed, ABuildNamesWhatTheSourceHas) {
  EXPECT_EQ(by_script("fetch it", "datasets/fetch", "mnist"),
            "fetch it, in Arenite's source: datasets/fetch mnist");
  EXPECT_EQ(by_script("build it", "scripts/build", ""),
            "build it, in Arenite's source: scripts/build");
  EXPECT_EQ(page("docs/gpu.md"), "docs/gpu.md in Arenite's source");
  EXPECT_EQ(place_of_pages(), "Arenite's source");
}

TEST(ShellWord, IsQuotedWhereItHasToBe) {
  EXPECT_EQ(shell_word("/a/b-c_d.e+f=1:2,@%9Z"), "/a/b-c_d.e+f=1:2,@%9Z");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  for (const char* text : {"~", "$x", "a*", "a;b", "\"", "\\", "a\nb", "ü"})
    EXPECT_EQ(shell_word(text), "'" + std::string(text) + "'");
  EXPECT_EQ(quoted_for_shell("plain"), "'plain'");
}

}  // namespace
}  // namespace arenite
