#include "tests/cuda_stand_in/state.hpp"

#include <string>

namespace cuda_stand_in {
namespace {

cudaError_t launch(const void* stub, void** arguments, cudaStream_t handle) {
  State& s = state();
  if (mine().capture.broken) return failed(cudaErrorStreamCaptureInvalidated);
  std::string name;
  {
    const std::lock_guard lock(s.mutex);
    const auto known = s.kernels.find(stub);
    if (known == s.kernels.end()) refuse("a kernel that nobody registered");
    if (mine().capture.graph == nullptr) {
      s.loaded.insert(stub);
    } else if (!s.loaded.contains(stub)) {
      refuse("a kernel within a capture that never ran: its code may have to be loaded");
    }
    if (known->second.find("hand_on_word") != std::string::npos) name = "hand_on_word";
  }
  if (stream_of(handle).device != mine().device) refuse("a launch with another device current");
  ++s.launches;
  Deed deed;
  if (!name.empty()) {
    deed.kind = Deed::Kind::hand_on;
    deed.from = *static_cast<const void**>(arguments[0]);
    deed.to = *static_cast<void**>(arguments[1]);
    deed.told = *static_cast<unsigned long long**>(arguments[2]);
  }
  enqueue(handle, deed);
  return cudaSuccess;
}

struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
thread_local Configuration configuration;

}  // namespace
}  // namespace cuda_stand_in

using namespace cuda_stand_in;

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  const std::lock_guard lock(state().mutex);
  state().kernels[stub] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     cudaStream_t stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void** arguments, std::size_t,
                               cudaStream_t stream) {
  return launch(reinterpret_cast<const void*>(kernel), arguments, stream);
}
cudaError_t cudaLaunchKernel(const void* stub, dim3, dim3, void** arguments, std::size_t,
                             cudaStream_t stream) {
  return launch(stub, arguments, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                void** arguments) {
  if (config->gridDim.x == 0 || config->blockDim.x == 0 || config->blockDim.x > 1024)
    refuse("a grid of no blocks, or of blocks of too many threads");
  return launch(stub, arguments, config->stream);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->binaryVersion = attributes->ptxVersion = 90;
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  enqueue(stream, {.kind = Deed::Kind::function, .function = function, .data = data});
  return cudaSuccess;
}

}  // extern "C"
