// What the stand-in says of kernels that nvcc compiled and that are wrong: it ends the process.
#include "tests/cuda_stand_in/kernel_mistakes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cuda_stand_in {
namespace {

constexpr std::uint32_t words = 128;

TEST(KernelMistakes, NoneOfAKernelThatIsRight) {
  const std::vector<std::uint32_t> left = run_with(Mistake::none, words);
  for (std::uint32_t i = 0; i < words; ++i) EXPECT_EQ(left[i], i);
}

TEST(KernelMistakes, EndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string kernel =
      "CUDA's stand-in refuses .*number.*: line [0-9]+, thread [0-9]+ of block ";
  EXPECT_DEATH(
      run_with(Mistake::writes_beyond, words),
      kernel + "2: 4 bytes at 0x[0-9a-f]+, which are not in the device's memory: st.global");
  EXPECT_DEATH(run_with(Mistake::reads_host_memory, words),
               kernel + "[01]: 4 bytes at .*: ld.global");
  EXPECT_DEATH(run_with(Mistake::writes_the_same, words),
               kernel + "[01]: writes global memory at .* writes at the same time");
  EXPECT_DEATH(run_with(Mistake::leaves_a_barrier, words),
               kernel + "[01]: a barrier that thread 63 of the block left before: .*bar.sync");
  EXPECT_DEATH(run_with(Mistake::begins_too_early, words),
               kernel + "[01]: .*no griddepcontrol.wait");
}

}  // namespace
}  // namespace cuda_stand_in
