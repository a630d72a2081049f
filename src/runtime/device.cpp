#include "src/runtime/device.hpp"

#include <atomic>

namespace arenite::runtime {
namespace {

std::atomic<DeviceDriver*>& chosen() noexcept {
  static std::atomic<DeviceDriver*> driver{nullptr};
  return driver;
}

}  // namespace

DeviceDriver& device_driver() {
  DeviceDriver* const driver = chosen().load();
  return driver != nullptr ? *driver : cuda_driver();
}

void set_device_driver(DeviceDriver* driver) noexcept { chosen() = driver; }

CudaSupport cuda_support() { return device_driver().support(); }

}  // namespace arenite::runtime
