#include "tests/gpu_libraries/stand_ins.hpp"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace arenite::gpu_libraries {

bool& refusing() {
  static bool refuses = false;
  return refuses;
}

int& computed() {
  static int count = 0;
  return count;
}

namespace {

template <class T>
T get(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute) {
  T value{};
  std::size_t written = 0;
  cublasLtMatmulDescGetAttribute(product, attribute, &value, sizeof(value), &written);
  return value;
}

template <class T>
T get(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute) {
  T value{};
  std::size_t written = 0;
  cublasLtMatrixLayoutGetAttribute(layout, attribute, &value, sizeof(value), &written);
  return value;
}

/// A batch of matrices, column by column.
struct Matrices {
  cudaDataType_t type;
  std::int64_t rows, columns, ld, batch, apart;
  const void* data;

  Matrices(cublasLtMatrixLayout_t layout, const void* address)
      : type(static_cast<cudaDataType_t>(get<std::uint32_t>(layout, CUBLASLT_MATRIX_LAYOUT_TYPE))),
        rows(static_cast<std::int64_t>(get<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_ROWS))),
        columns(static_cast<std::int64_t>(get<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_COLS))),
        ld(get<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_LD)),
        batch(get<std::int32_t>(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)),
        apart(get<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)),
        data(address) {}

  std::int64_t index(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    return matrix * apart + column * ld + row;
  }
  double at(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    const std::int64_t i = index(matrix, row, column);
    if (type == CUDA_R_64F) return static_cast<const double*>(data)[i];
    if (type == CUDA_R_32F) return static_cast<double>(static_cast<const float*>(data)[i]);
    const std::uint32_t upper = static_cast<const std::uint16_t*>(data)[i];
    return static_cast<double>(std::bit_cast<float>(upper << 16));
  }
};

double scalar(cudaDataType_t type, const void* value) {
  return type == CUDA_R_64F ? *static_cast<const double*>(value)
                            : static_cast<double>(*static_cast<const float*>(value));
}

}  // namespace
}  // namespace arenite::gpu_libraries

using arenite::gpu_libraries::Matrices;

extern "C" {

cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{16} << 30;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMalloc(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t CUDARTAPI cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

std::size_t CUBLASWINAPI cublasLtGetVersion(void) { return 130002; }

cublasStatus_t CUBLASWINAPI cublasLtCreate(cublasLtHandle_t* handle) {
  static int something;
  *handle = reinterpret_cast<cublasLtHandle_t>(&something);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int wanted,
    cublasLtMatmulHeuristicResult_t found[], int* count) {
  // The first one does not work out, as may be.
  *count = wanted < 2 ? wanted : 2;
  for (int i = 0; i < *count; ++i) {
    found[i] = {};
    found[i].state = i == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    found[i].workspaceSize = arenite::gpu_libraries::scratch_bytes;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                           const void* alpha, const void* a_data,
                                           cublasLtMatrixLayout_t a_layout, const void* b_data,
                                           cublasLtMatrixLayout_t b_layout, const void* beta,
                                           const void* c_data, cublasLtMatrixLayout_t c_layout,
                                           void* d_data, cublasLtMatrixLayout_t d_layout,
                                           const cublasLtMatmulAlgo_t*, void* workspace,
                                           std::size_t workspace_bytes, cudaStream_t) {
  using namespace arenite::gpu_libraries;
  if (handle == nullptr || refusing()) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (workspace_bytes < scratch_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(workspace, 0xff, workspace_bytes);
  const auto transposed = [&](cublasLtMatmulDescAttributes_t which) {
    return get<std::int32_t>(product, which) == CUBLAS_OP_T;
  };
  const bool a_transposed = transposed(CUBLASLT_MATMUL_DESC_TRANSA),
             b_transposed = transposed(CUBLASLT_MATMUL_DESC_TRANSB);
  const auto epilogue = get<std::uint32_t>(product, CUBLASLT_MATMUL_DESC_EPILOGUE);
  const auto* bias = epilogue == CUBLASLT_EPILOGUE_BIAS
                         ? get<const float*>(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER)
                         : nullptr;
  const Matrices a(a_layout, a_data), b(b_layout, b_data), c(c_layout, c_data), d(d_layout, d_data);
  const std::int64_t inner = a_transposed ? a.rows : a.columns;
  if (d.rows != (a_transposed ? a.columns : a.rows) ||
      d.columns != (b_transposed ? b.rows : b.columns) ||
      inner != (b_transposed ? b.columns : b.rows) || a.batch != d.batch || b.batch != d.batch ||
      a.ld < a.rows || b.ld < b.rows || d.ld < d.rows || a.type != b.type)
    return CUBLAS_STATUS_INVALID_VALUE;
  // Kernels that the heuristics choose read a bias by vectors, whatever its address.
  if ((epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_BIAS) ||
      reinterpret_cast<std::uintptr_t>(bias) % 16 != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const cudaDataType_t scales = d.type;
  for (std::int64_t m = 0; m < d.batch; ++m) {
    for (std::int64_t column = 0; column < d.columns; ++column) {
      for (std::int64_t row = 0; row < d.rows; ++row) {
        double sum = 0;
        for (std::int64_t k = 0; k < inner; ++k) {
          sum += (a_transposed ? a.at(m, k, row) : a.at(m, row, k)) *
                 (b_transposed ? b.at(m, column, k) : b.at(m, k, column));
        }
        sum *= scalar(scales, alpha);
        // Not read where it counts for nothing.
        if (const double kept = scalar(scales, beta); kept != 0) sum += kept * c.at(m, row, column);
        if (bias != nullptr) sum += static_cast<double>(bias[row]);
        const std::int64_t i = d.index(m, row, column);
        if (d.type == CUDA_R_64F) {
          static_cast<double*>(d_data)[i] = sum;
        } else {
          static_cast<float*>(d_data)[i] = static_cast<float>(sum);
        }
      }
    }
  }
  ++computed();
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
