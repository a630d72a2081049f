// The driver's devices, through CUDA's runtime library.
#include <arenite/error.hpp>

#include "src/runtime/cuda/device.hpp"
#include "src/runtime/device.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>

namespace arenite::runtime {
namespace {

/// The oldest GPUs that kernels are compiled for.
constexpr int least_capability = 8;

class CudaDriver final : public DeviceDriver {
 public:
  CudaSupport support() override {
    CudaSupport support{.built = true, .devices = {}, .reason = {}};
    int count = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
      support.reason = cudaGetErrorString(error);
      return support;
    }
    for (int index = 0; index < count; ++index) {
      cudaDeviceProp properties{};
      if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
      if (properties.major < least_capability) {
        support.reason = std::string(properties.name) + " has compute capability " +
                         std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                         "; this build is for " + std::to_string(least_capability) + ".0 and newer";
        continue;
      }
      support.devices.push_back(
          {index, properties.name, static_cast<std::int64_t>(properties.totalGlobalMem)});
    }
    if (!support.devices.empty()) {
      support.reason.clear();
    } else if (support.reason.empty()) {
      support.reason = "the driver lists no device";
    }
    return support;
  }

  bool has_cuda_workers() const noexcept override { return true; }

  std::unique_ptr<Device> open(const CudaDevice& device, int worker,
                               std::int64_t capacity) override {
    return open_cuda_device(device, worker, capacity);
  }
};

}  // namespace

DeviceDriver& cuda_driver() {
  static CudaDriver driver;
  return driver;
}

}  // namespace arenite::runtime
