#include <arenite/error.hpp>

#include "src/runtime/device.hpp"

namespace arenite::runtime {
namespace {

class NoDriver final : public DeviceDriver {
 public:
  CudaSupport support() override {
    return {.built = false, .devices = {}, .reason = "built without CUDA"};
  }
  bool has_cuda_workers() const noexcept override { return false; }
  std::unique_ptr<Device> open(const CudaDevice& device, int /*worker*/,
                               std::int64_t /*capacity*/) override {
    fail({.found = "GPU " + std::to_string(device.index) + " in a build without CUDA",
          .expected = "a build with it"});
  }
};

}  // namespace

DeviceDriver& cuda_driver() {
  static NoDriver driver;
  return driver;
}

}  // namespace arenite::runtime
