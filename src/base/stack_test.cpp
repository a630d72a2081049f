#include "src/base/stack.hpp"

#include "src/base/stack_testing.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace arenite {
namespace {

using testing::kib;
using testing::on_thread;

/// Writes to that much of the stack.
[[gnu::noinline]] int fill() {
  volatile char bytes[200 * kib];
  for (std::size_t i = 0; i < sizeof bytes; i += kib) bytes[i] = 1;
  return bytes[0] + bytes[199 * kib];
}

TEST(Stack, OfAThreadIsKnown) {
  on_thread(512 * kib, [] {
    EXPECT_GT(stack_left(), 400 * kib);
    EXPECT_LE(stack_left(), 512 * kib);
  });
}

TEST(Stack, SufficesWhereTheThreadHasNone) {
  on_thread(128 * kib, [] {
    int sum = 0;
    const auto caller = std::this_thread::get_id();
    std::thread::id ran_on;
    with_stack(256 * kib, [&] {
      sum = fill();
      ran_on = std::this_thread::get_id();
      EXPECT_GE(stack_left(), 250 * kib);
    });
    EXPECT_EQ(sum, 2);
    EXPECT_NE(ran_on, caller);
    EXPECT_THROW(with_stack(256 * kib, [] { throw std::logic_error("as it was"); }),
                 std::logic_error);
  });
}

TEST(Stack, OfTheCallerServesWhereItIsLargeEnough) {
  on_thread(1024 * kib, [] {
    const auto caller = std::this_thread::get_id();
    with_stack(256 * kib, [&] { EXPECT_EQ(std::this_thread::get_id(), caller); });
  });
}

std::size_t default_stack() {
  pthread_attr_t attributes;
  std::size_t bytes = 0;
  pthread_getattr_default_np(&attributes);
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

TEST(Stack, OfNewThreadsIsRaisedForAWhile) {
  const std::size_t before = default_stack();
  {
    const RoomyThreads roomy(before + 1024 * kib);
    EXPECT_EQ(default_stack(), before + 1024 * kib);
    const RoomyThreads less(64 * kib);
    EXPECT_EQ(default_stack(), before + 1024 * kib);
  }
  EXPECT_EQ(default_stack(), before);
}

}  // namespace
}  // namespace arenite
