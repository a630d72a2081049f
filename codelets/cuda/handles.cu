#include "codelets/cuda/handles.hpp"

#include "codelets/cuda/libraries.hpp"

#if ARENITE_HAVE_CUDNN
#include "codelets/cuda/cudnn.hpp"
#endif

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

cublasStatus_t find_handle(cublasLtHandle_t& handle) noexcept {
  return ThreadHandles<cublasLtHandle_t, cublasLtCreate>::find(handle);
}

void warm_up_libraries() {
  cublasLtHandle_t cublas = nullptr;
  expect_success(find_handle(cublas), "cublasLtCreate");
#if ARENITE_HAVE_CUDNN
  cudnnHandle_t cudnn = nullptr;
  expect_success(find_handle(cudnn), "cudnnCreate");
#endif
}

}  // namespace arenite::codelets::cuda
