// Whole programs on a GPU: small ones, that compute-sanitizer can watch, too. Skipped where there
// is none; tests/simulated_gpu_test.cpp has more of them for any machine.
#include <arenite/arenite.hpp>
#include <arenite/error.hpp>
#include <arenite/runtime/devices.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace arenite {
namespace {

const data::ImageData& small_set() {
  // 141 and 37 are no multiples of the batch: remainders in both passes.
  static const data::ImageData data = data::synthetic({.seed = 3, .train = 141, .test = 37});
  return data;
}

struct How {
  std::string device = "cuda";
  int lanes = 0;
  bool cuda_graphs = true;
  int workers = 1;
};

struct Outcome {
  train::EpochReport report;
  std::string sha256;
  std::vector<float> weights;
};

Outcome train_once(const std::string& model, const How& how) {
  runtime::Session session({.workers = how.workers, .device = how.device});
  train::Trainer trainer(session, nn::model(model).layers, small_set().shape(),
                         {.batch = 32,
                          .optimizer = optim::sgd({.lr = 0.02f, .momentum = 0.9f}),
                          .init = {.seed = 5, .range = {}},
                          .lanes = how.lanes,
                          .cuda_graphs = how.cuda_graphs});
  Outcome outcome;
  outcome.report = trainer.fit(small_set().train, {.epochs = 2, .validation = &small_set().test});
  outcome.sha256 = trainer.weights_sha256();
  for (const auto& parameter : trainer.parameters())
    outcome.weights.insert(outcome.weights.end(), parameter.values.begin(), parameter.values.end());
  return outcome;
}

class CudaProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    const runtime::CudaSupport support = runtime::cuda_support();
    if (support.devices.empty()) GTEST_SKIP() << "no device: " << support.reason;
  }
};

TEST_F(CudaProgram, TrainsAsTheCpuDoes) {
  for (const char* model : {"mlp", "cnn1", "lenet5", "cnn2"}) {
    SCOPED_TRACE(model);
    const Outcome cpu = train_once(model, {.device = "cpu"}), gpu = train_once(model, {});
    EXPECT_NEAR(gpu.report.train.loss, cpu.report.train.loss, 5e-3 * cpu.report.train.loss);
    EXPECT_NEAR(gpu.report.validation->loss, cpu.report.validation->loss,
                5e-3 * cpu.report.validation->loss);
    ASSERT_EQ(gpu.weights.size(), cpu.weights.size());
    double most = 0, difference = 0;
    for (std::size_t i = 0; i < cpu.weights.size(); ++i) {
      most = std::max(most, std::fabs(static_cast<double>(cpu.weights[i])));
      difference = std::max(difference, std::fabs(static_cast<double>(gpu.weights[i]) -
                                                  static_cast<double>(cpu.weights[i])));
    }
    EXPECT_LT(difference, 5e-3 * most);
  }
}

TEST_F(CudaProgram, HasTheSameBitsEachTimeRecordedOrNot) {
  const Outcome first = train_once("cnn1", {});
  EXPECT_EQ(train_once("cnn1", {}).sha256, first.sha256);
  EXPECT_EQ(train_once("cnn1", {.workers = 2}).sha256, first.sha256);
  EXPECT_EQ(train_once("cnn1", {.cuda_graphs = false}).sha256, first.sha256);
}

TEST_F(CudaProgram, DealsLanesOutOnGpuAndCpu) {
  const Outcome first = train_once("cnn1", {.device = "cuda+cpu", .lanes = 3});
  EXPECT_EQ(train_once("cnn1", {.device = "cuda+cpu", .lanes = 3, .workers = 2}).sha256,
            first.sha256);
}

TEST_F(CudaProgram, RefusesWhatDoesNotFit) {
  runtime::Session session({.workers = 1, .device = "cuda", .device_memory = 100'000});
  EXPECT_THROW(
      {
        train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(),
                               {.batch = 32});
        trainer.prepare(&small_set().train, nullptr);
      },
      Error);
}

}  // namespace
}  // namespace arenite
