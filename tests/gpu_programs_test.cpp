// Whole programs on GPUs, real ones in a build with CUDA. Elsewhere they are simulated: programs,
// copies, streams and recordings are the same, and grids are loops.
#include <arenite/arenite.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/devices.hpp>

#include <gtest/gtest.h>

#include "src/runtime/simulated_device.hpp"
#include "tests/grids_as_loops.hpp"
#include "tests/heap_counted.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace arenite {
namespace {

using runtime::testing::SimulatedDevice;
using runtime::testing::SimulatedGpus;

const data::ImageData& small_set() {
  // 333 and 77 are no multiples of the batch: remainders in both passes.
  static const data::ImageData data = data::synthetic({.seed = 3, .train = 333, .test = 77});
  return data;
}

/// Whether this build's programs find simulated GPUs.
bool simulated = false;

struct How {
  std::string device = "cpu";
  int lanes = 0;
  bool cuda_graphs = true;
  std::int64_t batch = 32;
  int workers = 1;
  std::optional<bool> resident_data = std::nullopt;
};

struct Outcome {
  train::EpochReport report;
  std::string sha256;
  std::vector<float> weights;
  std::int64_t device_bytes = 0;
};

Outcome train_once(const std::string& model, const How& how) {
  runtime::Session session({.workers = how.workers, .device = how.device});
  train::Trainer trainer(session, nn::model(model).layers, small_set().shape(),
                         {.batch = how.batch,
                          .optimizer = optim::sgd({.lr = 0.02f, .momentum = 0.9f}),
                          .init = {.seed = 5, .range = {}},
                          .lanes = how.lanes,
                          .cuda_graphs = how.cuda_graphs,
                          .resident_data = how.resident_data});
  Outcome outcome;
  outcome.report = trainer.fit(small_set().train, {.epochs = 2, .validation = &small_set().test});
  outcome.sha256 = trainer.weights_sha256();
  for (const auto& parameter : trainer.parameters())
    outcome.weights.insert(outcome.weights.end(), parameter.values.begin(), parameter.values.end());
  outcome.device_bytes = SimulatedDevice::in_use();
  // Of a real GPU's driver nobody promises anything: gpu-check tells its calls from ours.
  if (simulated) {
    EXPECT_EQ(trainer.costs().heap_calls.has_value(), arenite::testing::heap_counted);
    EXPECT_EQ(trainer.costs().heap_calls.value_or(0), 0);
  }
  return outcome;
}

void expect_alike(const Outcome& a, const Outcome& b) {
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

class OnGpus : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!has_kernels()) arenite::testing::add_grids_as_loops(kernels()), simulated = true;
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

TEST_F(OnGpus, TrainsAsTheCpuDoes) {
  std::vector<const char*> models{"mlp", "cnn1", "lenet5"};
  if (ARENITE_PLAIN_KERNELS) models.pop_back();  // under sanitizers all is slow
  if (!simulated) models.push_back("cnn2");      // as loops it would take minutes
  for (const char* model : models) {
    SCOPED_TRACE(model);
    const Outcome cpu = train_once(model, {}), gpu = train_once(model, {.device = "cuda"});
    expect_alike(gpu, cpu);
    EXPECT_EQ(cpu.device_bytes, 0);
    EXPECT_EQ(gpu.device_bytes > 0, simulated);
  }
  EXPECT_EQ(SimulatedDevice::in_use(), 0) << "all of it was given back";
}

/// gpu-check holds what CUDA was asked for against this number.
TEST_F(OnGpus, NamesTheBytesOnDevicesExactly) {
  if (!simulated) GTEST_SKIP() << "gpu-check counts what CUDA is asked for";
  runtime::Session session({.workers = 1, .device = "cuda"});
  train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(), {.batch = 32});
  trainer.prepare(&small_set().train, &small_set().test);
  std::ostringstream table;
  table << trainer.plan();
  const std::string bytes = "   " + std::to_string(SimulatedDevice::in_use()) + " bytes\n";
  EXPECT_NE(table.str().find("  on devices"), std::string::npos) << table.str();
  EXPECT_NE(table.str().find(bytes), std::string::npos) << table.str() << bytes;
}

TEST_F(OnGpus, HasTheSameBitsEachTimeRecordedOrNot) {
  const Outcome first = train_once("cnn1", {.device = "cuda"});
  EXPECT_EQ(train_once("cnn1", {.device = "cuda", .workers = 2}).sha256, first.sha256);
  if (has_two()) {
    EXPECT_EQ(train_once("cnn1", {.device = "cuda:1"}).sha256, first.sha256);
  }
  EXPECT_EQ(train_once("cnn1", {.device = "cuda", .cuda_graphs = false}).sha256, first.sha256);
}

TEST_F(OnGpus, GathersBatchesWhereTheDataIs) {
  for (const int lanes : {1, 3}) {
    const Outcome there = train_once("cnn1", {.device = "cuda", .lanes = lanes}),
                  here = train_once("cnn1",
                                    {.device = "cuda", .lanes = lanes, .resident_data = false});
    EXPECT_EQ(there.sha256, here.sha256);
  }
}

TEST_F(OnGpus, LeavesDataThatTakesTooMuchToTheHost) {
  if (!simulated) GTEST_SKIP() << "libraries' kernels need other scratch";
  const auto explained = [](std::int64_t memory, std::optional<bool> resident) {
    runtime::Session session({.workers = 1, .device = "cuda", .device_memory = memory});
    train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(),
                           {.batch = 32, .resident_data = resident});
    trainer.prepare(&small_set().train, nullptr);
    std::ostringstream out;
    trainer.explain(out);
    return out.str();
  };
  const auto bytes =
      static_cast<std::int64_t>(small_set().train.images.size() + small_set().train.labels.size());
  const std::string chosen = "dynamic_slice";  // the host only says which samples
  EXPECT_NE(explained(4 * bytes, {}).find(chosen), std::string::npos);
  EXPECT_EQ(explained(4 * bytes - 1, {}).find(chosen), std::string::npos);
  EXPECT_NE(explained(4 * bytes - 1, true).find(chosen), std::string::npos);
}

TEST_F(OnGpus, DealsLanesOutOnDevices) {
  const Outcome cpu = train_once("cnn1", {.lanes = 3}),
                one = train_once("cnn1", {.device = "cuda", .lanes = 3});
  expect_alike(one, cpu);
  for (const char* devices : {"cuda:0+cuda:1", "cuda+cpu", "cpu+cuda:1", "cuda:1+cpu+cuda:0"}) {
    SCOPED_TRACE(devices);
    if (!has_two() && std::string(devices) != "cuda+cpu") continue;
    const Outcome several = train_once("cnn1", {.device = devices, .lanes = 3});
    expect_alike(several, cpu);
    EXPECT_EQ(train_once("cnn1", {.device = devices, .lanes = 3, .workers = 2}).sha256,
              several.sha256);
  }
}

TEST_F(OnGpus, RefusesWhatDoesNotFit) {
  if (!simulated) GTEST_SKIP() << "libraries' kernels need other scratch";
  // One block alone is too large for the first, and their sum for the second.
  for (const auto& [memory, part] :
       {std::pair{100'000, "bytes; expected at most the capacity of 100,000"},
        std::pair{250'000, "in cuda:0/device; expected at most 250000, what they may take of"}}) {
    runtime::Session session({.workers = 1, .device = "cuda", .device_memory = memory});
    try {
      train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(), {.batch = 32});
      trainer.prepare(&small_set().train, nullptr);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    EXPECT_EQ(SimulatedDevice::in_use(), 0);
  }
}

/// What a step finds at fault there, the host hears of behind the step, and nothing is updated.
TEST_F(OnGpus, ReportsFaultsAndLeavesTheStateAlone) {
  const std::string script = R"(
$1 = InputTensor(x, float32, [4, 3]);
$2 = InputTensor(y, int32, [4]);
$3 = ParameterTensor(w, float32, [3, 3]);
$4 = matmul($1, $3);
$5, $6, $7 = softmax_cross_entropy($4, $2, divisor=4);
train($5, optimizer=sgd, learning_rate=0.5, momentum=0.9, parameters=[$3]);
result = $5;
)";
  const std::vector<float> x(12, 0.5f), w{1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (const char* device : {"cpu", "cuda"}) {
    SCOPED_TRACE(device);
    runtime::Session session({.workers = 1, .device = device});
    const std::vector<NamedBytes> constants{{"w", w.data()}};
    Model model(session, graph::parse(script, operators(), "net.txt"), constants);
    const auto weights = [&] {
      std::vector<float> values(w.size());
      std::memcpy(values.data(), model.state("w").data(), w.size() * sizeof(float));
      return values;
    };
    std::vector<std::int32_t> y{0, 1, 2, 7};
    const std::vector<NamedBytes> inputs{{"x", x.data()}, {"y", y.data()}};
    // Two steps ahead of the report: those behind the one at fault change nothing either.
    for (const bool wait : {false, true}) {
      y[3] = 7;
      std::string why = "no error";
      try {
        float loss = 0;
        void* const places[] = {&loss};
        model.train_step(inputs, wait ? std::span<void* const>(places) : std::span<void* const>());
        y[3] = 2;
        model.train_step(inputs, {});
        model.train_step(inputs, {});
        static_cast<void>(model.state("w"));
      } catch (const Error& error) {
        why = error.what();
      }
      EXPECT_NE(why.find("softmax_cross_entropy"), std::string::npos) << why;
      EXPECT_NE(why.find("step " + std::to_string(wait ? 2 : 0)), std::string::npos) << why;
      if (!wait) {
        EXPECT_EQ(weights(), w);
      }
    }
    y[3] = 2;
    model.train_step(inputs, {});
    EXPECT_NE(weights(), w) << "the next one goes on";
  }
}

/// The run ends and says why, wherever it was; what is built anew works.
TEST_F(OnGpus, EndsWhenADeviceFails) {
  if (!simulated) GTEST_SKIP() << "no real GPU is to fail";
  for (const long deeds : {1L, 2L, 5L, 6L, 17L}) {
    SCOPED_TRACE(deeds);
    runtime::Session session({.workers = 1, .device = "cuda"});
    train::Trainer trainer(session, nn::model("cnn1").layers, small_set().shape(), {.batch = 32});
    trainer.prepare(&small_set().train, nullptr);
    SimulatedDevice::deeds_left() = deeds;
    const auto why = [&] {
      try {
        trainer.fit(small_set().train, {.epochs = 3});
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string("no error");
    };
    EXPECT_NE(why().find("simulated GPU 0: out of order"), std::string::npos);
    SimulatedDevice::deeds_left() = -1;
    EXPECT_NE(why().find("a program set built anew"), std::string::npos);
  }
  EXPECT_EQ(train_once("cnn1", {.device = "cuda"}).report.train.samples, 333);
}

TEST_F(OnGpus, NamesDevicesThatAreNotThere) {
  if (!simulated) GTEST_SKIP() << "of simulated ones the names are known";
  const auto why = [](const char* device) {
    try {
      const runtime::Session session({.workers = 1, .device = device});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(why("cuda:2"),
            "device 'cuda:2'; expected one of cpu, cuda:0 (simulated GPU 0), cuda:1 (simulated GPU "
            "1)");
  EXPECT_EQ(why("gpu"),
            "device 'gpu'; expected cpu, cuda, cuda:N, auto, or several of them as in cuda:0+cpu");
  EXPECT_EQ(why("cuda:0+"),
            "device ''; expected cpu, cuda, cuda:N, auto, or several of them as in cuda:0+cpu");
  EXPECT_EQ(why("cuda+cuda:0"),
            "device 'cuda:0' twice in 'cuda+cuda:0'; expected each device once");
  EXPECT_EQ(why("auto"), "no error");
}

/// A script's model: what evaluate and train_step give, on one device after the other.
TEST_F(OnGpus, RunsScripts) {
  const std::string script = R"(
$1 = InputTensor(x, float32, [6, 4]);
$2 = InputTensor(y, int32, [6]);
$3 = ParameterTensor(w, float32, [4, 3]);
$4 = ConstantTensor(k, float32, [8, 4]);
$5 = slice($4, begin=2, end=8);
$6 = mul($1, $5);
$7 = matmul($6, $3);
$8, $9, $10 = softmax_cross_entropy($7, $2, divisor=6);
train($8, optimizer=sgd, learning_rate=0.5, parameters=[$3]);
result = $7;
)";
  std::vector<float> x(24), w(12), k(32);
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = 0.1f * static_cast<float>(i % 11) - 0.4f;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.3f * static_cast<float>(i % 7) - 1;
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.2f * static_cast<float>(i % 5) - 0.4f;
  const std::vector<std::int32_t> y{0, 1, 2, 2, 1, 0};
  std::vector<std::vector<float>> seen;
  for (const char* device : {"cpu", "cuda", "cuda+cpu"}) {
    runtime::Session session({.workers = 1, .device = device});
    const std::vector<NamedBytes> constants{{"k", k.data()}, {"w", w.data()}};
    Model model(session, graph::parse(script, operators(), "net.txt"), constants);
    const std::vector<NamedBytes> inputs{{"x", x.data()}, {"y", y.data()}};
    std::vector<float> logits(18);
    void* const places[] = {logits.data()};
    model.evaluate(inputs, places);
    auto& all = seen.emplace_back(logits);
    for (int step = 0; step < 5; ++step) {
      if (step % 2 == 0) {
        model.train_step(inputs, {});
      } else {
        model.train_step(inputs, places);
        all.insert(all.end(), logits.begin(), logits.end());
      }
    }
    const auto weights = model.state("w");
    std::vector<float> values(weights.size() / sizeof(float));
    std::memcpy(values.data(), weights.data(), weights.size());
    all.insert(all.end(), values.begin(), values.end());
  }
  for (std::size_t device = 1; device < seen.size(); ++device) {
    ASSERT_EQ(seen[device].size(), seen[0].size());
    for (std::size_t i = 0; i < seen[0].size(); ++i)
      EXPECT_NEAR(seen[device][i], seen[0][i], 1e-4) << device << ' ' << i;
  }
}

}  // namespace
}  // namespace arenite
