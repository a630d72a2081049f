// Whole programs on GPUs, real ones in a build with CUDA, elsewhere simulated.
#include <arenite/arenite.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/train/step_on_gpu.hpp"
#include "tests/gpu_programs.hpp"

#include <cstring>
#include <string>
#include <vector>

namespace arenite::testing {
namespace {

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
  EXPECT_EQ(SimulatedDevice::all_in_use(), 0) << "all of it was given back";
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

/// Of each op that has several the last one, as if somebody had found it the fastest.
TEST_F(OnGpus, TakesTheKernelsThatWereChosen) {
  runtime::KernelChoices choices;
  {
    const runtime::Session session({.workers = 1, .device = "cuda"});
    const graph::Graph step = train::step_on_gpu("cnn1", 32).spec.graph;
    const auto selector = runtime::kernel_selector(kernels());
    for (graph::OpId id : step[graph::Graph::body].ops) {
      const graph::OpView op(step, step[id]);
      if (op.op().kernel.empty() || graph::space_of(step, step[id]).device == DeviceKind::cpu)
        continue;
      for (const runtime::Kernel& kernel : kernels().find(op.op())) {
        if (kernel.device == DeviceKind::cuda && kernel.compute == runtime::Compute::float32 &&
            selector->supports(op, kernel.name))
          choices.set(op, kernel.device, kernel.compute, kernel.name);
      }
    }
  }
  const auto first = train_once("cnn1", {.device = "cuda"});
  const auto chosen = train_once("cnn1", {.device = "cuda", .kernels = choices});
  EXPECT_NE(chosen.sha256, first.sha256) << "others add in another order";
  expect_alike(chosen, first);
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
    // Steps ahead of the report: those behind the one at fault change nothing either.
    std::int64_t begun = 0;
    for (const bool wait : {false, true}) {
      y[3] = 7;
      std::string why = "no error";
      const std::int64_t at_fault = begun;
      const auto step = [&](std::span<void* const> places) {
        model.train_step(inputs, places);
        ++begun;
      };
      try {
        float loss = 0;
        void* const places[] = {&loss};
        step(wait ? std::span<void* const>(places) : std::span<void* const>());
        y[3] = 2;
        step({});
        step({});
        static_cast<void>(model.state("w"));
      } catch (const Error& error) {
        why = error.what();
      }
      EXPECT_NE(why.find("softmax_cross_entropy"), std::string::npos) << why;
      EXPECT_NE(why.find("step " + std::to_string(at_fault)), std::string::npos) << why;
      if (!wait) {
        EXPECT_EQ(weights(), w);
      }
    }
    y[3] = 2;
    model.train_step(inputs, {});
    EXPECT_NE(weights(), w) << "the next one goes on";
  }
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

/// Programs come and go over state that a device has, and leave it as it is.
TEST_F(OnGpus, RunsScriptsAtAllSizes) {
  const std::string script = R"(
$1 = InputTensor(x, float32, [rows<=6, 4]);
$2 = InputTensor(y, int32, [rows]);
$3 = ParameterTensor(w, float32, [4, 3], uniform(-1, 1, seed=3));
$4 = ConstantTensor(k, float32, [1, 4]);
$5 = mul($1, $4);
$6 = matmul($5, $3);
$7, $8, $9 = softmax_cross_entropy($6, $2, divisor=rows);
train($7, optimizer=sgd, learning_rate=0.5, momentum=0.9, parameters=[$3]);
entry predict = $6;
result = $7;
)";
  const std::vector<float> k{0.5f, -1, 2, 0.25f};
  std::vector<std::vector<float>> seen;
  for (const char* device : {"cpu", "cuda", "cuda+cpu"}) {
    runtime::Session session({.workers = 1, .device = device});
    const std::vector<NamedBytes> constants{{"k", k.data()}};
    Model model(session, graph::parse(script, operators(), "net.txt"), constants,
                {.sizes_kept = 2});
    auto& all = seen.emplace_back();
    const auto note = [&](const float* values, std::size_t count) {
      all.insert(all.end(), values, values + count);
    };
    for (const std::size_t rows : {6, 3, 1, 3, 5, 2, 6, 4, 1}) {
      std::vector<float> x(4 * rows), logits(3 * rows);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.3f * static_cast<float>(i % 7) - 1;
      std::vector<std::int32_t> y(rows);
      for (std::size_t i = 0; i < rows; ++i) y[i] = static_cast<std::int32_t>(i % 3);
      const std::vector<NamedBytes> inputs{{"x", x.data()}, {"y", y.data()}};
      const graph::SizeValues sizes{{"rows", static_cast<std::int64_t>(rows)}};
      model.train_step(inputs, {}, sizes);
      void* const places[] = {logits.data()};
      model.run("predict", {inputs.data(), 1}, places, sizes);
      note(logits.data(), logits.size());
      for (const char* name : {"w", "w.velocity"}) {
        const auto bytes = model.state(name);
        note(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
      }
    }
    EXPECT_LE(model.programs().size(), 3U + 2 * 3);
  }
  for (std::size_t device = 1; device < seen.size(); ++device) {
    ASSERT_EQ(seen[device].size(), seen[0].size());
    for (std::size_t i = 0; i < seen[0].size(); ++i)
      EXPECT_NEAR(seen[device][i], seen[0][i], 1e-4) << device << ' ' << i;
  }
}

}  // namespace
}  // namespace arenite::testing
