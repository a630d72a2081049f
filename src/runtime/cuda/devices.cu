#include <arenite/runtime/devices.hpp>

#include <cuda_runtime_api.h>

namespace arenite::runtime {

CudaSupport cuda_support() {
  CudaSupport support{.built = true, .devices = {}, .reason = {}};
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    support.reason = cudaGetErrorString(error);
    return support;
  }
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
    support.devices.push_back(
        {index, properties.name, static_cast<std::int64_t>(properties.totalGlobalMem)});
  }
  if (support.devices.empty()) support.reason = "the driver lists no device";
  return support;
}

}  // namespace arenite::runtime
