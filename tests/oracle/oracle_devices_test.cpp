// Random programs whose lanes are dealt out on the CPU and on GPUs that are simulated, or, with
// ARENITE_CUDA_STAND_IN, those of CUDA's stand-in: the same bits as op by op, whatever overtakes
// what.
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/runtime/simulated_device.hpp"
#if ARENITE_CUDA_STAND_IN
#include "tests/cuda_stand_in/enqueued_loops.hpp"
#endif
#include "tests/grids_as_loops.hpp"
#include "tests/oracle/on_runtime.hpp"

#include <algorithm>
#include <string>

namespace arenite::oracle {
namespace {

constexpr std::uint32_t programs = ARENITE_PLAIN_KERNELS ? 24 : 72;

bool has_gpu_kernels() {
  return std::ranges::any_of(kernels().find("relu"), [](const runtime::Kernel& kernel) {
    return kernel.device == DeviceKind::cuda;
  });
}

class OnDevices : public ::testing::TestWithParam<const char*> {
 protected:
#if ARENITE_CUDA_STAND_IN
  static void SetUpTestSuite() { arenite::testing::put_loops_in_streams(kernels()); }
#else
  static void SetUpTestSuite() {
    if (!has_gpu_kernels()) arenite::testing::add_grids_as_loops(kernels()), loops = true;
  }
  void SetUp() override {
    if (!loops) GTEST_SKIP() << "this build's GPU kernels run on real GPUs";
  }
  inline static bool loops = false;

  runtime::testing::SimulatedGpus gpus{2};
#endif
};

int ops_on_devices(const RandomProgram& program) {
  int found = 0;
  for (const runtime::ProgramSpec& spec : program.programs) {
    for (const graph::Task& task : spec.schedule.tasks) {
      if (task.space.device != DeviceKind::cpu) found += static_cast<int>(task.ops.size());
    }
  }
  return found;
}

TEST_P(OnDevices, BitsAreTheSame) {
  runtime::Session session({.workers = 2, .device = GetParam()});
  int there = 0;
  for (std::uint32_t number = 0; number < programs; ++number) {
    SCOPED_TRACE("program " + std::to_string(number));
    const RandomProgram program = random_program(number, 0, session.spaces());
    there += ops_on_devices(program);
    const Trace expected = reference(program, real_kernels(program));
    const RuntimeTrace found =
        run_on(session, program,
               {.task_sets = 2 + static_cast<int>(number % 2), .record = number % 3 != 0});
    EXPECT_EQ(difference(found.steps, expected), "");
    EXPECT_EQ(difference(found.crews, expected), "") << "by crews";
    EXPECT_EQ(difference({found.ahead}, {expected.back()}), "") << "submitted ahead";
  }
  EXPECT_GE(there, ARENITE_PLAIN_KERNELS ? 100 : 500);
}

INSTANTIATE_TEST_SUITE_P(Devices, OnDevices,
                         ::testing::Values("cuda", "cuda:0+cuda:1", "cpu+cuda", "cuda:1+cpu"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == ':' || c == '+'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace arenite::oracle
