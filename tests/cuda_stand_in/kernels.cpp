#include "tests/cuda_stand_in/kernels.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

namespace cuda_stand_in {
namespace {

thread_local Configuration configuration;

cudaError_t launch(const void* stub, void** arguments, const Configuration& as) {
  State& s = state();
  if (mine().capture.broken) return failed(cudaErrorStreamCaptureInvalidated);
  const Kernel* kernel = nullptr;
  {
    const std::lock_guard lock(s.mutex);
    const auto known = s.kernels.find(stub);
    if (known == s.kernels.end()) refuse("a kernel that nobody registered");
    if (mine().capture.graph == nullptr) {
      s.loaded.insert(stub);
    } else if (!s.loaded.contains(stub)) {
      refuse("a kernel within a capture that never ran: its code may have to be loaded");
    }
    kernel = &known->second;
  }
  if (stream_of(as.stream).device != mine().device) refuse("a launch with another device current");
  ++s.launches;
  if (as.early) ++s.early_launches;
  Deed deed;
  if (kernels_run()) {
    deed.kind = Deed::Kind::kernel;
    deed.launch = &launch_of(*kernel, mine().device, as, arguments);
  } else if (kernel->name.find("hand_on_word") != std::string::npos) {
    deed.kind = Deed::Kind::hand_on;
    deed.from = *static_cast<const void**>(arguments[0]);
    deed.to = *static_cast<void**>(arguments[1]);
    deed.told = *static_cast<unsigned long long**>(arguments[2]);
  }
  enqueue(as.stream, deed);
  return cudaSuccess;
}

}  // namespace
}  // namespace cuda_stand_in

using namespace cuda_stand_in;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(binary_at(wrapper));
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** binary, const char* stub, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  const std::lock_guard lock(state().mutex);
  state().kernels[stub] = {reinterpret_cast<Binary*>(binary), name};
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     cudaStream_t stream) {
  configuration = {grid, block, shared, stream, false};
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
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  return launch(reinterpret_cast<const void*>(kernel), arguments,
                {grid, block, shared, stream, false});
}
cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  return launch(stub, arguments, {grid, block, shared, stream, false});
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                void** arguments) {
  if (config->gridDim.x == 0 || config->blockDim.x == 0 || config->blockDim.x > 1024)
    refuse("a grid of no blocks, or of blocks of too many threads");
  bool early = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != cudaLaunchAttributeProgrammaticStreamSerialization)
      refuse("a launch with an attribute that it does not know");
    early = config->attrs[i].val.programmaticStreamSerializationAllowed != 0;
  }
  return launch(
      stub, arguments,
      {config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream, early});
}
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  not_captured("cudaLibraryLoadData");
  // A driver older than NVRTC, which takes binaries alone; nothing here can run them.
  if (std::getenv("CUDA_STAND_IN_OLD_DRIVER") != nullptr) {
    const bool is_binary = std::string_view(static_cast<const char*>(code) + 1, 3) == "ELF";
    return is_binary ? cudaErrorNoKernelImageForDevice : cudaErrorUnsupportedPtxVersion;
  }
  *library = reinterpret_cast<cudaLibrary_t>(binary_of(static_cast<const char*>(code)));
  return cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  // Launches tell kernels apart by their addresses.
  auto* const stub = new char;
  const std::lock_guard lock(state().mutex);
  state().kernels[stub] = {reinterpret_cast<Binary*>(library), name};
  *kernel = reinterpret_cast<cudaKernel_t>(stub);
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
  const std::lock_guard lock(state().mutex);
  const auto known = state().kernels.find(stub);
  if (known == state().kernels.end()) refuse("attributes of a kernel that nobody registered");
  *attributes = {};
  const int readable = architecture_of(known->second);
  constexpr int by_default = 90;  // of cmake/AreniteCuda.cmake
  attributes->binaryVersion = attributes->ptxVersion = readable > 0 ? readable : by_default;
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  enqueue(stream, {.kind = Deed::Kind::function, .function = function, .data = data});
  return cudaSuccess;
}

}  // extern "C"
