#include "tests/gpu_libraries/stand_ins.hpp"

#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

namespace arenite::gpu_libraries {
namespace {

struct Tensor {
  int n = 0, c = 0, h = 0, w = 0;
  int by_n = 0, by_c = 0, by_h = 0, by_w = 0;

  explicit Tensor(cudnnTensorDescriptor_t descriptor) {
    cudnnDataType_t type{};
    cudnnGetTensor4dDescriptor(descriptor, &type, &n, &c, &h, &w, &by_n, &by_c, &by_h, &by_w);
  }
  std::int64_t at(int i, int k, int y, int x) const {
    return std::int64_t{i} * by_n + std::int64_t{k} * by_c + std::int64_t{y} * by_h +
           std::int64_t{x} * by_w;
  }
};

struct Filter {
  int k = 0, c = 0, h = 0, w = 0;
  cudnnTensorFormat_t format{};

  explicit Filter(cudnnFilterDescriptor_t descriptor) {
    cudnnDataType_t type{};
    cudnnGetFilter4dDescriptor(descriptor, &type, &format, &k, &c, &h, &w);
  }
  std::int64_t at(int output, int channel, int y, int x) const {
    return format == CUDNN_TENSOR_NHWC ? ((std::int64_t{output} * h + y) * w + x) * c + channel
                                       : ((std::int64_t{output} * c + channel) * h + y) * w + x;
  }
};

/// Calls f(x's index, filter's index, y's index) for all that a convolution multiplies.
template <class F>
cudnnStatus_t each_product(cudnnTensorDescriptor_t x_descriptor, cudnnFilterDescriptor_t filter_of,
                           cudnnConvolutionDescriptor_t window,
                           cudnnTensorDescriptor_t y_descriptor, void* workspace,
                           std::size_t workspace_bytes, F f) {
  const Tensor x(x_descriptor), y(y_descriptor);
  const Filter filter(filter_of);
  int pad_h = 0, pad_w = 0, stride_h = 0, stride_w = 0, dilation_h = 0, dilation_w = 0;
  cudnnConvolutionMode_t mode{};
  cudnnDataType_t type{};
  cudnnGetConvolution2dDescriptor(window, &pad_h, &pad_w, &stride_h, &stride_w, &dilation_h,
                                  &dilation_w, &mode, &type);
  int n = 0, c = 0, h = 0, w = 0;
  cudnnGetConvolution2dForwardOutputDim(window, x_descriptor, filter_of, &n, &c, &h, &w);
  if (refusing()) return CUDNN_STATUS_NOT_SUPPORTED;
  if (n != y.n || c != y.c || h != y.h || w != y.w || filter.c != x.c ||
      mode != CUDNN_CROSS_CORRELATION || workspace_bytes < scratch_bytes)
    return CUDNN_STATUS_BAD_PARAM;
  std::memset(workspace, 0xff, workspace_bytes);
  for (int i = 0; i < y.n; ++i) {
    for (int k = 0; k < y.c; ++k) {
      for (int oy = 0; oy < y.h; ++oy) {
        for (int ox = 0; ox < y.w; ++ox) {
          for (int ky = 0; ky < filter.h; ++ky) {
            for (int kx = 0; kx < filter.w; ++kx) {
              const int iy = oy * stride_h - pad_h + ky * dilation_h,
                        ix = ox * stride_w - pad_w + kx * dilation_w;
              if (iy < 0 || iy >= x.h || ix < 0 || ix >= x.w) continue;
              for (int channel = 0; channel < x.c; ++channel)
                f(x.at(i, channel, iy, ix), filter.at(k, channel, ky, kx), y.at(i, k, oy, ox));
            }
          }
        }
      }
    }
  }
  ++computed();
  return CUDNN_STATUS_SUCCESS;
}

float* zeros(void* data, std::int64_t count) {
  std::fill_n(static_cast<float*>(data), count, 0.0f);
  return static_cast<float*>(data);
}

std::int64_t count_of(cudnnTensorDescriptor_t descriptor) {
  const Tensor t(descriptor);
  return std::int64_t{t.n} * t.c * t.h * t.w;
}

/// What the library would not do twice the same comes first, and is to be passed over; `slower` is
/// another that it can do.
template <class Perf, class Algorithm>
cudnnStatus_t rank(Perf* found, int* count, Algorithm algorithm, Algorithm slower,
                   cudnnConvolutionDescriptor_t window) {
  cudnnMathType_t math{};
  cudnnGetConvolutionMathType(window, &math);
  *count = 0;
  for (const auto& [ranked, determinism] :
       {std::pair{Algorithm{}, CUDNN_NON_DETERMINISTIC}, std::pair{algorithm, CUDNN_DETERMINISTIC},
        std::pair{slower, CUDNN_DETERMINISTIC}}) {
    Perf& perf = found[(*count)++];
    perf = {};
    perf.algo = ranked;
    perf.determinism = determinism;
    perf.mathType = math;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t ask_for_scratch(int algorithm, int expected, int slower, std::size_t* bytes) {
  *bytes = scratch_bytes;
  return algorithm == expected || algorithm == slower ? CUDNN_STATUS_SUCCESS
                                                      : CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace
}  // namespace arenite::gpu_libraries

using namespace arenite::gpu_libraries;

extern "C" {

std::size_t CUDNNWINAPI cudnnGetVersion(void) { return 91301; }

cudnnStatus_t CUDNNWINAPI cudnnCreate(cudnnHandle_t* handle) {
  static int something;
  *handle = reinterpret_cast<cudnnHandle_t>(&something);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnSetStream(cudnnHandle_t handle, cudaStream_t) {
  return handle == nullptr ? CUDNN_STATUS_NOT_INITIALIZED : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t,
    cudnnConvolutionDescriptor_t window, cudnnTensorDescriptor_t, int, int* count,
    cudnnConvolutionFwdAlgoPerf_t* found) {
  return rank(found, count, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
              CUDNN_CONVOLUTION_FWD_ALGO_GEMM, window);
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
    cudnnConvolutionDescriptor_t window, cudnnTensorDescriptor_t, int, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* found) {
  return rank(found, count, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
              CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, window);
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnConvolutionDescriptor_t window, cudnnFilterDescriptor_t, int, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  return rank(found, count, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, window);
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t,
    cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
  return ask_for_scratch(algorithm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                         CUDNN_CONVOLUTION_FWD_ALGO_GEMM, bytes);
}

// As on Hopper, where it copies all three to another layout.
cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, cudnnFilterDescriptor_t filter_of, cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t x,
    cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
  const Filter f(filter_of);
  const cudnnStatus_t status = ask_for_scratch(algorithm, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                               CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, bytes);
  const std::int64_t copied = count_of(x) + count_of(y) + std::int64_t{f.k} * f.c * f.h * f.w;
  *bytes += static_cast<std::size_t>(copied) * sizeof(float);
  return status;
}

cudnnStatus_t CUDNNWINAPI cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
    cudnnFilterDescriptor_t, cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
  return ask_for_scratch(algorithm, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                         CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, bytes);
}

cudnnStatus_t CUDNNWINAPI cudnnConvolutionForward(
    cudnnHandle_t, const void*, cudnnTensorDescriptor_t x_of, const void* x,
    cudnnFilterDescriptor_t filter_of, const void* filter, cudnnConvolutionDescriptor_t window,
    cudnnConvolutionFwdAlgo_t, void* workspace, std::size_t bytes, const void*,
    cudnnTensorDescriptor_t y_of, void* y) {
  float* to = zeros(y, count_of(y_of));
  return each_product(x_of, filter_of, window, y_of, workspace, bytes,
                      [&](std::int64_t i, std::int64_t k, std::int64_t o) {
                        to[o] +=
                            static_cast<const float*>(x)[i] * static_cast<const float*>(filter)[k];
                      });
}

cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardData(
    cudnnHandle_t, const void*, cudnnFilterDescriptor_t filter_of, const void* filter,
    cudnnTensorDescriptor_t y_of, const void* dy, cudnnConvolutionDescriptor_t window,
    cudnnConvolutionBwdDataAlgo_t, void* workspace, std::size_t bytes, const void*,
    cudnnTensorDescriptor_t x_of, void* dx) {
  float* to = zeros(dx, count_of(x_of));
  return each_product(x_of, filter_of, window, y_of, workspace, bytes,
                      [&](std::int64_t i, std::int64_t k, std::int64_t o) {
                        to[i] +=
                            static_cast<const float*>(dy)[o] * static_cast<const float*>(filter)[k];
                      });
}

cudnnStatus_t CUDNNWINAPI cudnnConvolutionBackwardFilter(
    cudnnHandle_t, const void*, cudnnTensorDescriptor_t x_of, const void* x,
    cudnnTensorDescriptor_t y_of, const void* dy, cudnnConvolutionDescriptor_t window,
    cudnnConvolutionBwdFilterAlgo_t, void* workspace, std::size_t bytes, const void*,
    cudnnFilterDescriptor_t filter_of, void* dfilter) {
  const Filter f(filter_of);
  float* to = zeros(dfilter, std::int64_t{f.k} * f.c * f.h * f.w);
  return each_product(x_of, filter_of, window, y_of, workspace, bytes,
                      [&](std::int64_t i, std::int64_t k, std::int64_t o) {
                        to[k] += static_cast<const float*>(x)[i] * static_cast<const float*>(dy)[o];
                      });
}

}  // extern "C"
