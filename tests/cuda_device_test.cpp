// GPU kernels on a GPU, against the reference. Skipped where there is none.
#include <arenite/operators.hpp>
#include <arenite/runtime/devices.hpp>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "codelets/cuda/libraries.hpp"
#include "codelets/map/map_testing.hpp"
#include "tests/reference/exact_products.hpp"
#include "tests/reference/kernel_agreement.hpp"

#include <algorithm>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace arenite {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// A copy of some of the host's memory on the device, for one run of a kernel.
class Mirror {
 public:
  explicit Mirror(std::span<std::byte> host) : host_(host) {
    check(cudaMalloc(&device_, std::max<std::size_t>(host.size(), 1)), "cudaMalloc");
    check(cudaMemcpy(device_, host.data(), host.size(), cudaMemcpyHostToDevice), "copy in");
  }
  ~Mirror() { cudaFree(device_); }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  bool holds(const std::byte* at) const {
    return at == host_.data() || (at > host_.data() && at < host_.data() + host_.size());
  }
  void* on_device(const std::byte* at) const {
    return static_cast<std::byte*>(device_) + (at - host_.data());
  }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all(host_.size());
    check(cudaMemcpy(all.data(), device_, all.size(), cudaMemcpyDeviceToHost), "copy out");
    return all;
  }

 private:
  std::span<std::byte> host_;
  void* device_ = nullptr;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }  // as CUDA's functions take it

 private:
  cudaStream_t stream_ = nullptr;
};

enum class Launch { at_once, from_a_graph };

/// What the run leaves in the memory that it is given, and of its status word.
struct Outcome {
  std::vector<std::vector<std::byte>> memory;
  std::uint64_t status = runtime::StatusWord::ok;
};

/// Launches what the kernel enqueues, either way.
void launch(const codelets::testing::KernelRun& one, runtime::KernelCall call, Launch how) {
  static const Stream stream;  // libraries' handles remember the last one that they were given
  call.stream = stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaDeviceSynchronize(), "copies");  // into the memory, which may be under way still
  if (how == Launch::from_a_graph)
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin of a capture");
  one.run(call);
  if (how == Launch::from_a_graph) {
    check(cudaStreamEndCapture(stream, &graph), "end of a capture");
    check(cudaGraphInstantiate(&executable, graph, 0), "graph");
    check(cudaGraphLaunch(executable, stream), "launch of a graph");
  }
  check(cudaGetLastError(), "launch");
  check(cudaStreamSynchronize(stream), "kernel");
  if (executable != nullptr) check(cudaGraphExecDestroy(executable), "end of a graph");
  if (graph != nullptr) check(cudaGraphDestroy(graph), "end of a graph");
  if (const std::string failed = codelets::cuda::take_failure(); !failed.empty())
    throw std::runtime_error(failed);
}

Outcome run_once(const codelets::testing::KernelRun& one, Launch how) {
  std::vector<std::unique_ptr<Mirror>> mirrors;
  for (const std::span<std::byte> bytes : one.memory)
    mirrors.push_back(std::make_unique<Mirror>(bytes));
  const auto on_device = [&](void* address) -> void* {
    const auto* at = static_cast<const std::byte*>(address);
    for (const auto& mirror : mirrors) {
      if (at != nullptr && mirror->holds(at)) return mirror->on_device(at);
    }
    return nullptr;
  };
  std::vector<void*> operands, results;
  for (void* operand : one.operands) operands.push_back(on_device(operand));
  for (void* result : one.results) results.push_back(on_device(result));
  Outcome outcome;
  const Mirror status(std::as_writable_bytes(std::span(&outcome.status, 1)));
  runtime::KernelCall call = one.call;
  call.operands = operands.data();
  call.results = results.data();
  call.workspace = on_device(call.workspace);
  call.status = static_cast<runtime::StatusWord*>(
      status.on_device(reinterpret_cast<const std::byte*>(&outcome.status)));
  launch(one, call, how);
  for (const auto& mirror : mirrors) outcome.memory.push_back(mirror->bytes());
  std::memcpy(&outcome.status, status.bytes().data(), sizeof(outcome.status));
  return outcome;
}

/// Leaves the same bits each time, in a graph too; the workspace, the last of the memory, may hold
/// anything.
void run_on_device(const codelets::testing::KernelRun& one) {
  const Outcome outcome = run_once(one, Launch::at_once);
  for (const Launch how : {Launch::at_once, Launch::from_a_graph}) {
    const Outcome again = run_once(one, how);
    EXPECT_EQ(again.status, outcome.status);
    for (std::size_t i = 0; i + 1 < outcome.memory.size(); ++i) {
      EXPECT_TRUE(again.memory[i] == outcome.memory[i])
          << "other bits " << (how == Launch::at_once ? "the second time" : "from a graph");
    }
  }
  for (std::size_t i = 0; i < outcome.memory.size(); ++i)
    std::copy(outcome.memory[i].begin(), outcome.memory[i].end(), one.memory[i].begin());
  if (outcome.status == runtime::StatusWord::ok) return;
  one.call.status->report(runtime::StatusWord::op_of(outcome.status),
                          runtime::StatusWord::code_of(outcome.status));
}

TEST(CudaDevice, EveryKernelAgreesWithTheReference) {
  const runtime::CudaSupport support = runtime::cuda_support();
  if (support.devices.empty()) GTEST_SKIP() << "no device: " << support.reason;
  // Whoever ends this program, for its time is over, knows where it was.
  const auto begins = [](const std::string& what) { std::cout << "case: " << what << std::endl; };
  for (const auto& [op, compared] :
       reference::compare_kernels(kernels(), DeviceKind::cuda, run_on_device, begins))
    EXPECT_TRUE(compared > 0 || kernels().find(op).empty()) << op;
}

TEST(CudaDevice, MapsAreTheirExpressionsToTheBit) {
  const runtime::CudaSupport support = runtime::cuda_support();
  if (support.devices.empty()) GTEST_SKIP() << "no device: " << support.reason;
  const runtime::Kernel& kernel = kernels().at("map", "own", DeviceKind::cuda);
  for (unsigned seed = 0; seed < 200 && !HasFailure(); ++seed)
    codelets::testing::RandomMap(seed, run_on_device).run(kernel);
  // What compilers make of constants at once, a NaN at times.
  for (const char* text :
       {"a = max(float64(nan), 0); yield uint8(a != a), $1",
        "a = float32(inf) - float32(inf); yield uint8(a != a), uint8(a <= $1)",
        "a = float64(0) / float64(0); yield uint8(a == a), max(float32(a), $1)"}) {
    codelets::testing::RandomMap(1, run_on_device)
        .run(kernel, expr::parse(text, std::vector{expr::Type::float32}));
  }
}

// What the libraries refuse, kernels of our own take, and nothing else tells: of a library that
// does not load, say.
TEST(CudaDevice, LibrariesTakeWhatTheyAreFor) {
  const runtime::CudaSupport support = runtime::cuda_support();
  if (support.devices.empty()) GTEST_SKIP() << "no device: " << support.reason;
  codelets::testing::OpHarness h;
  const auto expect_kernel = [&](const std::string& library) {
    std::string names;
    for (const runtime::Kernel* kernel : h.supporting(kernels(), DeviceKind::cuda))
      names += " " + kernel->name;
    for (const char* suffix : {"", "_tf32", "_bf16"})
      EXPECT_NE((names + " ").find(" " + library + suffix + " "), std::string::npos) << names;
  };
  using List = std::vector<std::int64_t>;
  const auto declare = [&](const char* name, const Shape& shape) {
    return h.declare(name, DType::float32, shape);
  };
  const auto x = declare("x", {64, 14, 14, 32}), weight = declare("weight", {3, 3, 32, 64}),
             y = declare("y", {64, 14, 14, 64}), a = declare("a", {64, 128}),
             b = declare("b", {128, 32});
  const graph::Attributes padded{{"padding", List{1, 1}}};
  h.op("matmul", {a, b});
  expect_kernel("cublas");
  h.op("dense", {a, b});
  expect_kernel("cublas");
#if ARENITE_HAVE_CUDNN
  const auto with = [&](const char* name, std::int64_t size) {
    graph::Attributes all = padded;
    all.set(name, List{size, size});
    return all;
  };
  h.op("conv2d", {x, weight}, padded);
  expect_kernel("cudnn");
  h.op("conv2d_grad_input", {y, weight}, with("size", 14));
  expect_kernel("cudnn");
  h.op("conv2d_grad_weight", {x, y}, with("kernel", 3));
  expect_kernel("cudnn");
#endif
}

TEST(CudaDevice, MultipliesIntegersExactly) {
  const runtime::CudaSupport support = runtime::cuda_support();
  if (support.devices.empty()) GTEST_SKIP() << "no device: " << support.reason;
  EXPECT_EQ(reference::compare_exact_products(kernels(), run_on_device).size(),
            reference::exact_kernels);
}

}  // namespace
}  // namespace arenite
