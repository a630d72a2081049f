#include "codelets/guarded_bytes.hpp"

#include <gtest/gtest.h>

namespace arenite::codelets::testing {
namespace {

using Side = GuardedBytes::Side;

TEST(GuardedBytes, KeepWhatTheyHoldWhenTheyMove) {
  GuardedBytes bytes(5000);
  EXPECT_TRUE(
      std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes.data()[i] = static_cast<std::byte>(i % 251);
  for (const Side side : {Side::back, Side::front, Side::back}) {
    bytes.move_to(side);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(bytes.data()[i], static_cast<std::byte>(i % 251));
    }
  }
}

TEST(GuardedBytes, NoticeWritesToWhatIsLeftOver) {
  GuardedBytes bytes(100, 64);
  bytes.move_to(Side::back);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0u);
  EXPECT_TRUE(bytes.intact());
  *bytes.end() = std::byte{1};
  EXPECT_FALSE(bytes.intact());
  bytes.move_to(Side::front);
  EXPECT_TRUE(bytes.intact());
  *bytes.end() = std::byte{1};
  EXPECT_FALSE(bytes.intact());
}

using GuardedBytesDeathTest = ::testing::Test;

TEST(GuardedBytesDeathTest, FaultOutside) {
  GuardedBytes bytes(100);
  const auto read = [&](std::ptrdiff_t at) {
    const volatile std::byte* first = bytes.data();
    return first[at];
  };
  bytes.move_to(Side::front);
  EXPECT_DEATH(read(-1), "");
  bytes.move_to(Side::back);
  EXPECT_DEATH(read(100), "");
  EXPECT_EQ(read(99), std::byte{0});
  GuardedBytes none(0);
  EXPECT_DEATH(*none.data() = std::byte{1}, "");
}

}  // namespace
}  // namespace arenite::codelets::testing
