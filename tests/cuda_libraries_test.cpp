// What holds of kernels on NVIDIA's libraries on any machine, with a GPU or without.
#include <arenite/operators.hpp>
#include <arenite/runtime/devices.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include "codelets/testing.hpp"

#include <string>
#include <vector>

namespace arenite {
namespace {

std::vector<std::string> gpu_kernels(std::string_view op) {
  std::vector<std::string> names;
  for (const runtime::Kernel& kernel : kernels().find(op)) {
    if (kernel.device == DeviceKind::cuda && !kernel.only_chosen) names.push_back(kernel.name);
  }
  return names;
}

// `select` takes the first that supports an op: what is made for what libraries do badly, then the
// libraries', then those of our own that take nearly all.
TEST(LibraryKernels, StandInFrontOfThoseThatTakeAll) {
  const auto behind_tiles = [](const std::string& op) {
    std::vector<std::string> names = gpu_kernels(op);
    std::erase(names, "thin");
    std::erase(names, "winograd");
    EXPECT_EQ(std::erase(names, "tiled"), op == "matmul" ? 0u : 1u) << op;
    return names;
  };
  for (const std::string& op : operators().names()) {
    const std::vector<std::string> names = gpu_kernels(op);
    EXPECT_EQ(names.empty() ? "own" : names.back(), "own") << op;
  }
  for (const char* op : {"dense", "dense_relu", "dense_grad_input", "dense_grad_input_relu",
                         "dense_grad_weight", "dense_grad_weight_sgd", "matmul"})
    EXPECT_EQ(behind_tiles(op).front(), "cublas") << op;
#if ARENITE_HAVE_CUDNN
  for (const char* op :
       {"conv2d", "conv2d_relu", "conv2d_grad_input", "conv2d_grad_input_relu",
        "conv2d_grad_weight", "conv2d_relu_max_pool2d", "conv2d_relu_max_pool2d_grad_input",
        "conv2d_relu_max_pool2d_grad_input_relu", "conv2d_relu_max_pool2d_grad_weight"})
    EXPECT_EQ(behind_tiles(op).front(), "cudnn") << op;
#endif
}

// Rounded factors are products of kernels of their own; what libraries do not take is multiplied in
// float32 by ours.
TEST(LibraryKernels, AreSelectedByWhatIsComputedIn) {
  const bool device = !runtime::cuda_support().devices.empty();
  codelets::testing::OpHarness harness;
  const auto a = harness.random("a", {4, 8}), b = harness.random("b", {8, 16});
  harness.op("matmul", {a, b});
  graph::Graph& graph = harness.graph();
  const auto select = [&](runtime::Compute compute) {
    for (std::size_t i = 0; i < graph.storage_count(); ++i)
      graph.storage(graph::StorageId(i)).space = {
          .device = DeviceKind::cuda, .index = 0, .memory = MemoryKind::device};
    const graph::OpView op(graph, graph[graph[graph::Graph::body].ops.back()]);
    return runtime::kernel_selector(kernels(), {.compute = compute})->choose(op);
  };
  EXPECT_EQ(select(runtime::Compute::float32), device ? "cublas" : "own");
  EXPECT_EQ(select(runtime::Compute::tfloat32), device ? "cublas_tf32" : "own");
  EXPECT_EQ(select(runtime::Compute::bfloat16), device ? "cublas_bf16" : "own");
  harness.op("relu", {a});
  EXPECT_EQ(select(runtime::Compute::tfloat32), "own");
}

// A program for GPUs can be looked at where there is none: kernels of our own stand in it then.
TEST(LibraryKernels, AreNotTakenWithoutADevice) {
  if (!runtime::cuda_support().devices.empty()) GTEST_SKIP() << "there is a device";
  codelets::testing::OpHarness harness;
  const auto supporting = [&] {
    std::vector<std::string> names;
    for (const runtime::Kernel* kernel : harness.supporting(kernels(), DeviceKind::cuda)) {
      if (!kernel->only_chosen) names.push_back(kernel->name);
    }
    return names;
  };
  const auto a = harness.random("a", {4, 8}), b = harness.random("b", {8, 16});
  harness.op("matmul", {a, b});
  EXPECT_EQ(supporting(), std::vector<std::string>{"own"});
  const auto x = harness.random("x", {2, 5, 5, 4}), weight = harness.random("weight", {3, 3, 4, 8});
  harness.op("conv2d", {x, weight});
  EXPECT_EQ(supporting(), (std::vector<std::string>{"tiled", "tiled.any", "own"}));
  // Of more than 10⁹ operations: cuDNN's where there is one, and then on tiles.
  const auto images = harness.declare("images", DType::float32, {64, 32, 32, 64}),
             taps = harness.declare("taps", DType::float32, {5, 5, 64, 64}),
             few = harness.declare("few", DType::float32, {3, 3, 64, 64});
  harness.op("conv2d", {images, taps});
  EXPECT_EQ(supporting(), (std::vector<std::string>{"tiled.any", "own"}));
  harness.op("conv2d", {images, few});
  EXPECT_EQ(supporting(), (std::vector<std::string>{"winograd", "tiled.any", "own"}));
}

}  // namespace
}  // namespace arenite
