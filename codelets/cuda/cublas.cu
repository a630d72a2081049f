// cuBLASLt sees matrices column by column: a row-major c [rows, columns] is columns × rows to it,
// the product of b (columns × inner) by a (inner × rows). So its A is our b, and its B our a.
#include "codelets/cuda/cublas.hpp"

#include "codelets/cuda/layouts.hpp"
#include "codelets/cuda/libraries.hpp"

#include <algorithm>
#include <array>

namespace arenite::codelets::cuda {
namespace {

/// Scratch that an algorithm may ask for: what cuBLAS itself takes on large GPUs.
constexpr std::uint64_t most_workspace = std::uint64_t{32} << 20;
constexpr std::int64_t most_matrices = 65535;  ///< of a batch: an axis of a grid

constexpr float float_one = 1, float_zero = 0;
constexpr double double_one = 1, double_zero = 0;

const void* scalar(DType type, bool one) {
  if (type == DType::float64) return one ? &double_one : &double_zero;
  return one ? &float_one : &float_zero;
}

cudaDataType_t data_type(DType type) { return type == DType::float64 ? CUDA_R_64F : CUDA_R_32F; }

cublasComputeType_t compute_type(const Product& p) {
  if (p.type == DType::float64) return CUBLAS_COMPUTE_64F;
  return p.compute == runtime::Compute::tfloat32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F;
}

using Calls = FirstFailure<cublasStatus_t>;

template <class T>
cublasStatus_t set(cublasLtMatmulDescOpaque_t& product, cublasLtMatmulDescAttributes_t attribute,
                   const T& value) {
  return cublasLtMatmulDescSetAttribute(&product, attribute, &value, sizeof(value));
}

template <class T>
cublasStatus_t set(cublasLtMatmulPreferenceOpaque_t& preference,
                   cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  return cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value));
}

/// A batch of matrices of `rows` rows of `columns` elements, `stride` elements apart.
cublasStatus_t describe_rows(cublasLtMatrixLayoutOpaque_t& layout, cudaDataType_t type,
                             std::int64_t batch, std::int64_t rows, std::int64_t columns,
                             std::int64_t stride) {
  Calls calls;
  calls << cublasLtMatrixLayoutInit(&layout, type, static_cast<std::uint64_t>(columns),
                                    static_cast<std::uint64_t>(rows), stride);
  if (batch == 1) return calls.status();
  const auto matrices = static_cast<std::int32_t>(batch);
  const std::int64_t apart = rows * stride;
  calls << cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &matrices,
                                            sizeof(matrices))
        << cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                            &apart, sizeof(apart));
  return calls.status();
}

}  // namespace

Gemm::Gemm(const Product& product) : product_(product) {
  if (rounds()) product_.a_alignment = product_.b_alignment = 16;  // in the workspace
  choice_.status = describe();
  if (!usable()) return;
  static Answers<Product, Choice> answers;
  choice_ = answers.get(product_, [&] {
    Choice choice;
    choice.status = ask(choice);
    return choice;
  });
  own_scratch_ = scratch_.add(choice_.workspace);
  if (!rounds()) return;
  constexpr std::int64_t bytes = sizeof(std::uint16_t);
  rounded_a_ = scratch_.add(a_lying().rows * a_lying().columns * bytes);
  rounded_b_ = scratch_.add(b_lying().rows * b_lying().columns * bytes);
}

Gemm::Lying Gemm::a_lying() const noexcept {
  const Product& p = product_;
  return {p.batch * (p.transpose_a ? p.inner : p.rows), p.transpose_a ? p.rows : p.inner};
}

Gemm::Lying Gemm::b_lying() const noexcept {
  const Product& p = product_;
  return {p.batch * (p.transpose_b ? p.columns : p.inner), p.transpose_b ? p.inner : p.columns};
}

cublasStatus_t Gemm::describe() {
  const Product& p = product_;
  if (!fits_int(p.rows) || !fits_int(p.inner) || !fits_int(p.columns) || !fits_int(p.a_stride) ||
      p.batch > most_matrices)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.type != DType::float32 && p.compute != runtime::Compute::float32)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const cudaDataType_t kept = data_type(p.type), factor = rounds() ? CUDA_R_16BF : kept;
  const Lying a = a_lying(), b = b_lying();
  const std::int64_t a_stride = p.a_stride == 0 || rounds() ? a.columns : p.a_stride;
  const auto transposed = [](bool yes) { return yes ? CUBLAS_OP_T : CUBLAS_OP_N; };
  Calls calls;
  calls << cublasLtMatmulDescInit(&descriptors_.product, compute_type(p), kept)
        << set(descriptors_.product, CUBLASLT_MATMUL_DESC_TRANSA, transposed(p.transpose_b))
        << set(descriptors_.product, CUBLASLT_MATMUL_DESC_TRANSB, transposed(p.transpose_a))
        << describe_rows(descriptors_.a, factor, p.batch, a.rows / p.batch, a.columns, a_stride)
        << describe_rows(descriptors_.b, factor, p.batch, b.rows / p.batch, b.columns, b.columns)
        << describe_rows(descriptors_.c, kept, p.batch, p.rows, p.columns, p.columns);
  if (p.biased) {
    // The heuristics see from the address only how it is aligned.
    const void* aligned = reinterpret_cast<const void*>(std::intptr_t{16});
    calls << set(descriptors_.product, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS)
          << set(descriptors_.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
  }
  return calls.status();
}

cublasStatus_t Gemm::ask(Choice& choice) const {
  cublasLtHandle_t handle = nullptr;
  if (const cublasStatus_t status = find_handle(handle); status != CUBLAS_STATUS_SUCCESS)
    return status;
  cublasLtMatmulPreferenceOpaque_t preference{};
  // Parts of a sum are kept apart and added in a step of their own: the same bits each time.
  const std::uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  const auto alignment = [](int bytes) { return static_cast<std::uint32_t>(bytes); };
  Calls calls;
  calls << cublasLtMatmulPreferenceInit(&preference)
        << set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace)
        << set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums)
        << set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
               alignment(product_.b_alignment))
        << set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
               alignment(product_.a_alignment))
        << set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
               alignment(product_.c_alignment))
        << set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
               alignment(product_.c_alignment));
  if (!calls.good()) return calls.status();
  std::array<cublasLtMatmulHeuristicResult_t, 8> found{};
  int count = 0;
  Descriptors d = descriptors_;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, &d.product, &d.b, &d.a, &d.c, &d.c, &preference,
                                     static_cast<int>(found.size()), found.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  for (int i = 0; i < count; ++i) {  // the fastest first, by the library's estimate
    const cublasLtMatmulHeuristicResult_t& one = found.at(static_cast<std::size_t>(i));
    if (one.state != CUBLAS_STATUS_SUCCESS || one.workspaceSize > most_workspace) continue;
    choice.algorithm = one.algo;
    choice.workspace = static_cast<std::int64_t>(one.workspaceSize);
    if (works(handle, choice)) return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

bool Gemm::works(cublasLtHandle_t handle, const Choice& choice) const {
  const std::int64_t kept = product_.type == DType::float64 ? 8 : 4, factor = rounds() ? 2 : kept;
  Scratch places;
  // No better aligned than they will be.
  const auto add = [&](std::int64_t bytes, int alignment) {
    return places.add(bytes + alignment) + alignment;
  };
  const std::int64_t a =
      add(a_lying().rows * std::max(a_lying().columns, product_.a_stride) * factor,
          product_.a_alignment);
  const std::int64_t b = add(b_lying().rows * b_lying().columns * factor, product_.b_alignment);
  const std::int64_t c =
      add(product_.batch * product_.rows * product_.columns * kept, product_.c_alignment);
  const std::int64_t bias = places.add(product_.columns * kept);
  const std::int64_t scratch = places.add(choice.workspace);
  const Trial trial(places.bytes());
  if (!trial.possible()) return true;
  const auto place = [&](std::int64_t offset) { return at<void>(trial.memory(), offset); };
  return multiply(handle, choice, place(a), place(b), place(bias), place(c), place(scratch),
                  trial.stream()) == CUBLAS_STATUS_SUCCESS &&
         trial.ends_well();
}

cublasStatus_t Gemm::multiply(cublasLtHandle_t handle, const Choice& choice, const void* a,
                              const void* b, const void* bias, void* c, void* scratch,
                              cudaStream_t stream) const noexcept {
  Descriptors d = descriptors_;
  Calls calls;
  if (product_.biased) calls << set(d.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  if (!calls.good()) return calls.status();
  return cublasLtMatmul(handle, &d.product, scalar(product_.type, true), b, &d.b, a, &d.a,
                        scalar(product_.type, product_.accumulate), c, &d.c, c, &d.c,
                        &choice.algorithm, scratch, static_cast<std::size_t>(choice.workspace),
                        stream);
}

void Gemm::run(const KernelCall& call, void* workspace, const void* a, const void* b,
               const void* bias, void* c) const noexcept {
  if (rounds()) {
    const auto round = [&](const void* from, Lying lying, std::int64_t stride,
                           std::int64_t offset) {
      auto* to = at<std::uint16_t>(workspace, offset);
      copy_rows<Bfloat16>(call, lying.rows, lying.columns, stride, static_cast<const float*>(from),
                          to);
      return to;
    };
    a = round(a, a_lying(), product_.a_stride == 0 ? a_lying().columns : product_.a_stride,
              rounded_a_);
    b = round(b, b_lying(), b_lying().columns, rounded_b_);
  }
  cublasLtHandle_t handle = nullptr;
  Calls calls;
  calls << find_handle(handle);
  if (calls.good()) {
    calls << multiply(handle, choice_, a, b, bias, c, at<void>(workspace, own_scratch_),
                      static_cast<cudaStream_t>(call.stream));
  }
  if (!calls.good())
    note_failure("cublasLtMatmul", calls.status(), cublasLtGetStatusString(calls.status()));
}

}  // namespace arenite::codelets::cuda
