// Kernels on NVIDIA's libraries without a GPU: stand-ins compute what the kernels ask the libraries
// for, and grids are loops. What remains for a GPU is whether the libraries do as they say.
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "codelets/cuda/grid.hpp"
#include "codelets/cuda/libraries.hpp"
#include "codelets/testing.hpp"
#include "tests/gpu_libraries/stand_ins.hpp"
#include "tests/reference/kernel_agreement.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

// Compiled as loops here; the library's own registry takes these instead of nvcc's.
namespace arenite::codelets {
#define ARENITE_LIBRARY_KERNELS(folder, library) \
  void register_##folder##_##library(runtime::KernelTable& kernels);
#include "library_kernels.def"
#undef ARENITE_LIBRARY_KERNELS
}  // namespace arenite::codelets

namespace arenite {
namespace {

using codelets::testing::OpHarness;

runtime::KernelTable library_kernels() {
  runtime::KernelTable table;
#define ARENITE_LIBRARY_KERNELS(folder, library) codelets::register_##folder##_##library(table);
#include "library_kernels.def"
#undef ARENITE_LIBRARY_KERNELS
  return table;
}

TEST(GpuLibraries, AreAskedForWhatOperatorsMean) {
  const runtime::KernelTable table = library_kernels();
  std::map<std::string, int> compared;
  for (const bool first : {true, false}) {
    codelets::cuda::from_the_first() = first;
    const int before = gpu_libraries::computed();
    compared = reference::compare_kernels(table, DeviceKind::cuda);
    EXPECT_GT(gpu_libraries::computed(), before);
  }
  for (const std::string& op : operators().names()) {
    if (table.find(op).empty()) continue;
    EXPECT_GT(compared[op], 0) << op;
  }
  EXPECT_EQ(codelets::cuda::take_failure(), "");
}

// A call that is refused while a program is built leaves the op to kernels of our own.
TEST(GpuLibraries, AreTriedBeforeTheyAreTaken) {
  const runtime::KernelTable table = library_kernels();
  OpHarness harness;
  gpu_libraries::refusing() = true;
  harness.op("matmul", {harness.random("a", {3, 5}), harness.random("b", {5, 2})});
  EXPECT_TRUE(harness.supporting(table, DeviceKind::cuda).empty());
  EXPECT_THROW(harness.run(table.at("matmul", "cublas", DeviceKind::cuda)), Error);
  gpu_libraries::refusing() = false;
  harness.op("matmul", {harness.random("c", {3, 5}), harness.random("d", {5, 3})});
  EXPECT_EQ(harness.supporting(table, DeviceKind::cuda).size(), 3u);
  EXPECT_EQ(codelets::cuda::take_failure(), "");
}

TEST(GpuLibraries, ThatRefuseInAStepAreNoted) {
  const runtime::KernelTable table = library_kernels();
  const runtime::Kernel& kernel = table.at("matmul", "cublas", DeviceKind::cuda);
  OpHarness harness;
  harness.op("matmul", {harness.random("a", {4, 5}), harness.random("b", {5, 2})});
  EXPECT_EQ(harness.run(kernel), runtime::StatusWord::ok);
  EXPECT_EQ(codelets::cuda::take_failure(), "");
  gpu_libraries::refusing() = true;
  EXPECT_EQ(harness.run(kernel), runtime::StatusWord::ok);
  gpu_libraries::refusing() = false;
  EXPECT_NE(codelets::cuda::take_failure().find("cublasLtMatmul: "), std::string::npos);
}

#if ARENITE_HAVE_CUDNN
// Its scratch grows with the images: however large, a thread an element would be slower.
TEST(GpuLibraries, TakeLargeConvolutions) {
  const runtime::KernelTable table = library_kernels();
  OpHarness harness;
  // Large, but with few products: the stand-in multiplies.
  const auto gradient = harness.declare("gradient", DType::float32, {512, 28, 28, 4}),
             weight = harness.declare("weight", DType::float32, {1, 1, 64, 4});
  using List = std::vector<std::int64_t>;
  harness.op("conv2d_grad_input", {gradient, weight}, {{"size", List{28, 28}}});
  std::set<std::string> names;
  for (const runtime::Kernel* kernel : harness.supporting(table, DeviceKind::cuda))
    names.insert(kernel->name);
  EXPECT_TRUE(names.contains("cudnn"));
}

// The stand-in ranks two algorithms that can, and a third that would not do twice the same. Only
// whoever has measured takes the second.
TEST(GpuLibraries, OfferWhatTheyRankBehindTheFirst) {
  const runtime::KernelTable table = library_kernels();
  OpHarness harness;
  harness.op("conv2d", {harness.random("x", {2, 5, 5, 3}), harness.random("w", {3, 3, 3, 4})});
  std::vector<std::string> names;
  for (const runtime::Kernel* kernel : harness.supporting(table, DeviceKind::cuda))
    names.push_back(kernel->name);
  EXPECT_EQ(names, (std::vector<std::string>{"cudnn", "cudnn.2", "cudnn_tf32", "cudnn_bf16"}));
}
#endif

/// As the stand-ins number themselves.
TEST(GpuLibraries, SayTheirVersions) {
#if ARENITE_HAVE_CUDNN
  EXPECT_EQ(codelets::cuda::library_versions(), "cuBLASLt 13.0.2, cuDNN 9.13.1");
#else
  EXPECT_EQ(codelets::cuda::library_versions(), "cuBLASLt 13.0.2");
#endif
}

/// A bias that does not begin where the library may read vectors.
TEST(GpuLibraries, LeaveBiasesThatLieAnywhere) {
  const runtime::KernelTable table = library_kernels();
  for (const char* op : {"dense", "dense_relu"}) {
    OpHarness harness;
    const auto x = harness.random("x", {6, 12}), weight = harness.random("weight", {12, 8}),
               biases = harness.random("biases", {11});
    const auto bias =
        harness.op("slice", {biases}, {{"begin", std::int64_t{3}}, {"end", std::int64_t{11}}});
    const auto y = harness.op(op, {x, weight, bias[0]});
    ASSERT_EQ(harness.run("plain"), runtime::StatusWord::ok);
    const auto expected = harness.read<float>(y[0]);
    ASSERT_EQ(harness.run(table.at(op, "cublas", DeviceKind::cuda)), runtime::StatusWord::ok);
    EXPECT_EQ(codelets::cuda::take_failure(), "") << op;  // the stand-in refuses such a bias
    codelets::testing::expect_close(harness.read<float>(y[0]), expected, 1e-5, op);
  }
}

/// A range of rows of a weight's gradient, as a slice of it, from several pairs.
TEST(GpuLibraries, AddPairsOfRowRanges) {
  const runtime::KernelTable table = library_kernels();
  for (const char* kernel : {"cublas", "cublas_tf32", "cublas_bf16"}) {
    OpHarness harness;
    std::vector<graph::ValueId> pairs;
    for (const std::int64_t samples : {4, 1, 6}) {
      const std::string name = std::to_string(samples);
      pairs.push_back(harness.random("x" + name, {samples, 11}));
      pairs.push_back(harness.random("g" + name, {samples, 5}));
    }
    const auto dweight =
        harness.op("dense_grad_weight", pairs, {{"rows", std::vector<std::int64_t>{3, 10}}});
    ASSERT_EQ(harness.run("plain"), runtime::StatusWord::ok);
    const auto expected = harness.read<float>(dweight[0]);
    ASSERT_EQ(harness.run(table.at("dense_grad_weight", kernel, DeviceKind::cuda)),
              runtime::StatusWord::ok);
    codelets::testing::expect_close(harness.read<float>(dweight[0]), expected,
                                    std::string(kernel) == "cublas" ? 1e-5 : 2e-2, kernel);
  }
}

// As on the CPU: the caller does not look before, so that the kernel must.
TEST(GpuLibraries, LeaveStateAloneOnceAStepHasFailed) {
  const runtime::KernelTable table = library_kernels();
  const runtime::Kernel& kernel = table.at("dense_grad_weight_sgd", "cublas", DeviceKind::cuda);
  EXPECT_TRUE(kernel.guards_state);
  runtime::StatusWord failed;
  failed.report(3, 1);
  OpHarness harness(1, [&](const codelets::testing::KernelRun& one) {
    runtime::KernelCall call = one.call;
    call.failed = &failed;
    one.run(call);
  });
  const auto weight = harness.random("weight", {7, 5}),
             velocity = harness.random("velocity", {7, 5}), rate = harness.random("rate", {1});
  harness.op("dense_grad_weight_sgd",
             {weight, rate, velocity, harness.random("x", {4, 7}), harness.random("g", {4, 5})},
             {{"momentum", 0.9}});
  const auto weights = harness.read<float>(weight), velocities = harness.read<float>(velocity);
  harness.run(kernel);
  EXPECT_EQ(harness.read<float>(weight), weights);
  EXPECT_EQ(harness.read<float>(velocity), velocities);
  failed.clear();
  harness.run(kernel);
  EXPECT_NE(harness.read<float>(weight), weights);
}

}  // namespace
}  // namespace arenite
