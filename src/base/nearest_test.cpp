#include "src/base/nearest.hpp"

#include <gtest/gtest.h>

namespace arenite {
namespace {

std::string hint(std::string_view name, std::initializer_list<std::string_view> candidates) {
  Nearest nearest(name);
  for (const std::string_view candidate : candidates) nearest.consider(candidate);
  return nearest.hint("none");
}

TEST(Nearest, PrefersTheSameWordInOtherCases) {
  Nearest nearest("Relu");
  for (const char* candidate : {"gelu", "relu", "rely"}) nearest.consider(candidate);
  EXPECT_EQ(nearest.found(), "relu");
}

TEST(Nearest, IsTheFirstOfThoseWithTheFewestEdits) {
  EXPECT_EQ(hint("bacth", {"lanes", "batch", "mode"}), "did you mean 'batch'?");
  EXPECT_EQ(hint("cnn3", {"mlp", "cnn1", "cnn2"}), "did you mean 'cnn1'?");
  EXPECT_EQ(hint("batch", {"batch"}), "did you mean 'batch'?");
}

TEST(Nearest, IsNoFurtherThanThreeEditsAway) {
  EXPECT_EQ(hint("abcdef", {"abc"}), "did you mean 'abc'?");
  EXPECT_EQ(hint("vgg", {"mlp", "vg"}), "did you mean 'vg'?");
  EXPECT_EQ(hint("vgg", {"mlp"}), "none");
  EXPECT_EQ(hint("abcdefg", {"abc"}), "none");
  EXPECT_EQ(hint("wxyz", {"abcd"}), "none");
  EXPECT_EQ(hint(std::string(1 << 20, 'x'), {"x"}), "none");
  EXPECT_EQ(hint("x", {}), "none");
}

}  // namespace
}  // namespace arenite
