#include "codelets/cuda/libraries.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace arenite::codelets::cuda {
namespace {

TEST(NotedFailures, KeepTheFirstUntilItIsTaken) {
  EXPECT_EQ(take_failure(), "");
  note_failure("multiply", 7, "not supported");
  note_failure("convolve", 8);
  EXPECT_EQ(take_failure(), "multiply: not supported (7)");
  EXPECT_EQ(take_failure(), "");
  note_failure("convolve", 8);
  EXPECT_EQ(take_failure(), "convolve (8)");
}

TEST(NotedFailures, AreOneOfThoseThatManyThreadsNote) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 1000; ++n) note_failure("launch", 3, "too large");
    });
  }
  for (int n = 0; n < 1000; ++n) {
    const std::string found = take_failure();
    EXPECT_TRUE(found.empty() || found == "launch: too large (3)") << found;
  }
  for (std::thread& thread : threads) thread.join();
  static_cast<void>(take_failure());
  EXPECT_EQ(take_failure(), "");
}

}  // namespace
}  // namespace arenite::codelets::cuda
