// GPU kernels on a GPU, against the reference. Skipped where there is none.
#include <arenite/operators.hpp>
#include <arenite/runtime/devices.hpp>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/reference/kernel_agreement.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>

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
    check(cudaMalloc(&device_, host.size() + 1), "cudaMalloc");  // never of nothing
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
  void copy_back() const {
    check(cudaMemcpy(host_.data(), device_, host_.size(), cudaMemcpyDeviceToHost), "copy out");
  }

 private:
  std::span<std::byte> host_;
  void* device_ = nullptr;
};

void run_on_device(const codelets::testing::KernelRun& one) {
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
  std::uint64_t found = runtime::StatusWord::ok;
  const Mirror status(std::as_writable_bytes(std::span(&found, 1)));
  runtime::KernelCall call = one.call;
  call.operands = operands.data();
  call.results = results.data();
  call.workspace = on_device(call.workspace);
  call.status = static_cast<runtime::StatusWord*>(
      status.on_device(reinterpret_cast<const std::byte*>(&found)));
  one.run(call);
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "kernel");
  for (const auto& mirror : mirrors) mirror->copy_back();
  status.copy_back();
  if (found != runtime::StatusWord::ok)
    one.call.status->report(runtime::StatusWord::op_of(found), runtime::StatusWord::code_of(found));
}

TEST(CudaDevice, EveryKernelAgreesWithTheReference) {
  const runtime::CudaSupport support = runtime::cuda_support();
  if (support.devices.empty()) GTEST_SKIP() << "no device: " << support.reason;
  for (const auto& [op, compared] :
       reference::compare_kernels(kernels(), DeviceKind::cuda, run_on_device))
    EXPECT_TRUE(compared > 0 || kernels().find(op).empty()) << op;
}

}  // namespace
}  // namespace arenite
