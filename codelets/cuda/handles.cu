#include "codelets/cuda/handles.hpp"

#include "codelets/cuda/libraries.hpp"

#if ARENITE_HAVE_CUDNN
#include "codelets/cuda/cudnn.hpp"
#endif

#include <cstddef>
#include <string>

namespace arenite::codelets::cuda {

bool has_device() noexcept {
  static const bool there = [] {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  }();
  return there;
}

int current_device() noexcept {
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess ? device : 0;
}

namespace {

/// A stream that waits for no other: one of those may be captured.
cudaError_t make_stream(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}

}  // namespace

cublasStatus_t find_handle(cublasLtHandle_t& handle) noexcept {
  return ThreadHandles<cublasLtHandle_t, cublasLtCreate>::find(handle);
}

Trial::Trial(std::int64_t bytes) noexcept {
  constexpr std::int64_t share = 8;  // of the device; the rest is for programs
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) static_cast<void>(cudaGetLastError());
  if (bytes > static_cast<std::int64_t>(total) / share) return;
  // Never destroyed, for handles remember the last stream that they were given.
  if (ThreadHandles<cudaStream_t, make_stream>::find(stream_) != cudaSuccess ||
      cudaMalloc(&memory_, static_cast<std::size_t>(bytes)) != cudaSuccess) {
    memory_ = nullptr;
    static_cast<void>(cudaGetLastError());
  }
}

Trial::~Trial() {
  if (memory_ != nullptr) cudaFree(memory_);
}

bool Trial::ends_well() const noexcept {
  if (cudaStreamSynchronize(stream_) == cudaSuccess) return true;
  static_cast<void>(cudaGetLastError());
  return false;
}

void warm_up_libraries() {
  cublasLtHandle_t cublas = nullptr;
  expect_success(find_handle(cublas), "cublasLtCreate");
#if ARENITE_HAVE_CUDNN
  cudnnHandle_t cudnn = nullptr;
  expect_success(find_handle(cudnn), "cudnnCreate");
#endif
}

std::string library_versions() {
  const auto dotted = [](std::size_t version) {
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
  };
  std::string text = "cuBLASLt " + dotted(cublasLtGetVersion());
#if ARENITE_HAVE_CUDNN
  text += ", cuDNN " + dotted(cudnnGetVersion());
#endif
  return text;
}

}  // namespace arenite::codelets::cuda
