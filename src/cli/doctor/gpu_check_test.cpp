// The check of GPUs, on simulated ones.
#include <arenite/operators.hpp>

#include "src/cli/doctor/checks.hpp"
#include "src/runtime/simulated_device.hpp"
#include "tests/grids_as_loops.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace arenite::cli::doctor {
namespace {

using runtime::testing::SimulatedDevice;
using runtime::testing::SimulatedGpus;

class GpuCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto on_gpus = [](const runtime::Kernel& kernel) {
      return kernel.device == DeviceKind::cuda;
    };
    static const bool has_kernels = std::ranges::any_of(kernels().find("relu"), on_gpus);
    if (has_kernels) GTEST_SKIP() << "a build with CUDA";
    static const bool added = (testing::add_grids_as_loops(kernels()), true);
    ASSERT_TRUE(added);
  }
};

TEST_F(GpuCheck, RunsAGraphOnTheFirst) {
  const SimulatedGpus gpus(2);
  const Finding finding = check_gpu();
  EXPECT_EQ(finding.says, "0 simulated GPU 0, 1 GiB; 1 simulated GPU 1, 1 GiB");
  EXPECT_EQ(finding.facts.at("devices").size(), 2u);
  EXPECT_EQ(finding.facts.at("right"), true);
  // Their host memory is the process's own.
  ASSERT_EQ(finding.problems.size(), 1u);
  EXPECT_EQ(finding.problems[0].what,
            "the host's memory is not registered with CUDA, so that copies are slower");
}

TEST_F(GpuCheck, SaysWhyThereIsNone) {
  const SimulatedGpus gpus(0);
  const Finding finding = check_gpu();
  EXPECT_EQ(finding.says, "none: none is simulated");
  EXPECT_EQ(finding.mark(), Mark::note);
  EXPECT_EQ(finding.facts.at("reason"), "none is simulated");
}

TEST_F(GpuCheck, FailsWhereTheDeviceDoes) {
  const SimulatedGpus gpus(1);
  SimulatedDevice::deeds_left() = 1;
  const Finding finding = check_gpu();
  SimulatedDevice::deeds_left() = -1;
  EXPECT_EQ(finding.mark(), Mark::fails);
  EXPECT_EQ(SimulatedDevice::all_in_use(), 0);
}

}  // namespace
}  // namespace arenite::cli::doctor
