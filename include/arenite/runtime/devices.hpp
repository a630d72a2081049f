// The GPUs of this machine, as CUDA sees them. A build without CUDA sees none, and says why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arenite::runtime {

struct CudaDevice {
  int index = 0;
  std::string name;
  std::int64_t memory = 0;  ///< bytes
};

struct CudaSupport {
  bool built = false;  ///< the library was built with CUDA
  std::vector<CudaDevice> devices;
  std::string reason;  ///< why there is no device; empty when there is one
};

/// Asks the driver; safe from any thread, starts no context.
CudaSupport cuda_support();

}  // namespace arenite::runtime
