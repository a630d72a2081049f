// Kernels that a GPU of compute capability 9.0 or newer puts in place while the one before them
// ends, a microsecond earlier than behind it (programmatic dependent launches). For nvcc alone.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace arenite::cuda {

/// So many blocks a grid may have.
constexpr std::int64_t most_blocks = std::numeric_limits<std::int32_t>::max();

/// First in each kernel that `launch_early` launches: waits for all that stands before it in its
/// stream, and for what that wrote. The one behind it may begin then, too.
__device__ inline void wait_for_earlier() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

template <int>
__global__ void nothing() {}

/// Whether they are wanted, of GPUs that can (ARENITE_EARLY_LAUNCHES): for comparisons.
inline std::atomic<bool>& early_launches_wanted() noexcept {
  static std::atomic<bool> wanted{true};
  return wanted;
}

/// Whether a kernel on this thread's device is to be put in place early: where device and code are
/// of compute capability 9.0 or newer. Code for older ones, which a newer one compiles anew, has no
/// `wait_for_earlier`.
inline bool kernels_begin_early() noexcept {
  enum : signed char { unknown, no, yes };
  static std::array<std::atomic<signed char>, 64> devices{};
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) device = 0;
  const auto index = static_cast<std::size_t>(device);
  if (index >= devices.size()) return false;
  if (devices[index] == unknown) {
    int major = 0;
    cudaFuncAttributes code{};
    const bool known =
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
        cudaFuncGetAttributes(&code, nothing<0>) == cudaSuccess;
    if (!known) static_cast<void>(cudaGetLastError());
    devices[index] = known && major >= 9 && code.ptxVersion >= 90 ? yes : no;
  }
  return devices[index] == yes && early_launches_wanted();
}

/// How a grid is launched; `waits`: its kernel calls `wait_for_earlier`, and may begin early.
class EarlyLaunch {
 public:
  EarlyLaunch(cudaStream_t stream, std::int64_t blocks, int threads, bool waits = true) {
    early_.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early_.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.stream = stream;
    config.attrs = &early_;
    config.numAttrs = waits && kernels_begin_early() ? 1 : 0;
  }
  EarlyLaunch(const EarlyLaunch&) = delete;
  EarlyLaunch& operator=(const EarlyLaunch&) = delete;

  cudaLaunchConfig_t config{};

 private:
  cudaLaunchAttribute early_{};
};

/// Of more than `most_blocks` it is cudaErrorInvalidConfiguration. (A recording keeps such an edge
/// between two kernels.)
template <class... Parameters, class... Arguments>
cudaError_t launch_early(cudaStream_t stream, std::int64_t blocks, int threads,
                         void (*kernel)(Parameters...), Arguments... arguments) {
  if (blocks > most_blocks) return cudaErrorInvalidConfiguration;
  const EarlyLaunch as(stream, blocks, threads);
  return cudaLaunchKernelEx(&as.config, kernel, Parameters(arguments)...);
}

}  // namespace arenite::cuda
