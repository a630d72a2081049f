#include <arenite/runtime/devices.hpp>

namespace arenite::runtime {

CudaSupport cuda_support() {
  return {.built = false, .devices = {}, .reason = "built without CUDA"};
}

}  // namespace arenite::runtime
