#pragma once

#include "src/runtime/device.hpp"

#include <cstdint>
#include <memory>

namespace arenite::runtime {

/// As DeviceDriver::open.
std::unique_ptr<Device> open_cuda_device(const CudaDevice& device, int worker,
                                         std::int64_t capacity);

}  // namespace arenite::runtime
