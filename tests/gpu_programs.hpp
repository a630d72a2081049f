// Small networks trained on a device, and the fixture of the tests that do: real GPUs in a build
// with CUDA, elsewhere simulated ones: programs, copies, streams and recordings are the same, and
// grids are loops. With ARENITE_CUDA_STAND_IN they are loops, too, and all else is a CUDA build's.
#pragma once

#include <arenite/arenite.hpp>
#include <arenite/graph/spaces.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/devices.hpp>

#include <gtest/gtest.h>

#include "src/runtime/simulated_device.hpp"
#if ARENITE_CUDA_STAND_IN
#include "tests/cuda_stand_in/enqueued_loops.hpp"
#endif
#include "tests/grids_as_loops.hpp"
#include "tests/heap_counted.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace arenite::testing {

using runtime::testing::SimulatedDevice;
using runtime::testing::SimulatedGpus;

inline const data::ImageData& small_set() {
  // No multiples of the batch: remainders in both sweeps.
  static const data::ImageData data =
      data::synthetic({.seed = 3, .train = ARENITE_CHECKED ? 109 : 333, .test = 77});
  return data;
}

/// Whether this build's programs find simulated GPUs.
inline bool simulated = false;

struct How {
  std::string device = "cpu";
  int lanes = 0;
  bool cuda_graphs = true;
  std::int64_t batch = 32;
  int workers = 1;
  std::optional<bool> resident_data = std::nullopt;
  runtime::KernelChoices kernels = {};
};

struct Outcome {
  train::EpochReport report;
  std::string sha256;
  std::vector<float> weights;
  std::int64_t device_bytes = 0;
};

inline Outcome train_once(const std::string& model, const How& how) {
  runtime::Session session({.workers = how.workers, .device = how.device});
  train::Trainer trainer(session, nn::model(model).layers, small_set().shape(),
                         {.batch = how.batch,
                          .optimizer = optim::sgd({.lr = 0.02f, .momentum = 0.9f}),
                          .init = {.seed = 5, .range = {}},
                          .lanes = how.lanes,
                          .kernels = how.kernels,
                          .cuda_graphs = how.cuda_graphs,
                          .resident_data = how.resident_data});
  Outcome outcome;
  outcome.report = trainer.fit(small_set().train, {.epochs = 2, .validation = &small_set().test});
  outcome.sha256 = trainer.weights_sha256();
  for (const auto& parameter : trainer.parameters())
    outcome.weights.insert(outcome.weights.end(), parameter.values.begin(), parameter.values.end());
  outcome.device_bytes = SimulatedDevice::all_in_use();
  // Of a real GPU's driver nobody promises anything: gpu-check tells its calls from ours.
  if (simulated) {
    EXPECT_EQ(trainer.costs().heap_calls.has_value(), heap_counted);
    EXPECT_EQ(trainer.costs().heap_calls.value_or(0), 0);
  }
  return outcome;
}

inline void expect_alike(const Outcome& a, const Outcome& b) {
  EXPECT_NEAR(a.report.train.loss, b.report.train.loss, 5e-3 * b.report.train.loss);
  EXPECT_NEAR(a.report.validation->loss, b.report.validation->loss,
              5e-3 * b.report.validation->loss);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  double most = 0, difference = 0;
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    most = std::max(most, std::fabs(static_cast<double>(b.weights[i])));
    difference = std::max(difference, std::fabs(static_cast<double>(a.weights[i] - b.weights[i])));
  }
  EXPECT_LT(difference, 5e-3 * most);
}

/// Libraries answer for the calling thread's device: a kernel is only asked where it is the op's.
inline runtime::Kernel asked_there(runtime::Kernel kernel) {
  kernel.prepare = [prepare = kernel.prepare](const graph::OpView& op) {
    EXPECT_EQ(SimulatedDevice::current(), graph::space_of(op.graph(), op.op()).index);
    return prepare(op);
  };
  kernel.supports = [supports = kernel.supports](const graph::OpView& op) {
    EXPECT_GE(SimulatedDevice::current(), 0);
    return supports ? supports(op) : graph::Support();
  };
  return kernel;
}

class OnGpus : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
#if ARENITE_CUDA_STAND_IN
    put_loops_in_streams(kernels());
#endif
    if (has_kernels()) return;
    simulated = true;
    runtime::KernelTable loops;
    add_grids_as_loops(loops);
    for (const std::string& op : operators().names()) {
      for (const runtime::Kernel& kernel : loops.find(op)) kernels().add(op, asked_there(kernel));
    }
  }
  void SetUp() override {
    if (simulated) gpus.emplace(2);
    const runtime::CudaSupport support = runtime::cuda_support();
    if (support.devices.empty()) GTEST_SKIP() << "no device: " << support.reason;
  }
  static bool has_kernels() {
    return std::ranges::any_of(kernels().find("relu"), [](const runtime::Kernel& kernel) {
      return kernel.device == DeviceKind::cuda;
    });
  }
  static bool has_two() { return runtime::cuda_support().devices.size() > 1; }

  std::optional<SimulatedGpus> gpus;
};

}  // namespace arenite::testing
