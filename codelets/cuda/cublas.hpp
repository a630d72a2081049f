// Products of matrices by cuBLASLt, whose algorithm is chosen when a program is built.
#pragma once

#include "codelets/cuda/handles.hpp"
#include "codelets/cuda/library_kernel.hpp"

#include <compare>
#include <cstdint>

namespace arenite::codelets::cuda {

/// c = a · b [+ bias] [+ c] of row-major matrices, or of a batch of them.
struct Product {
  std::int64_t batch = 1, rows = 0, inner = 0, columns = 0;
  bool transpose_a = false;   ///< a is [inner, rows]
  bool transpose_b = false;   ///< b is [columns, inner]
  std::int64_t a_stride = 0;  ///< elements from a row of a to the next; 0: they lie side by side
  bool biased = false;        ///< a float for each column, the first one at a multiple of 16 bytes
  bool accumulate = false;
  DType type = DType::float32;
  runtime::Compute compute = runtime::Compute::float32;
  /// Bytes that the addresses are multiples of.
  int a_alignment = 16, b_alignment = 16, c_alignment = 16;

  friend auto operator<=>(const Product&, const Product&) = default;
};

class Gemm {
 public:
  explicit Gemm(const Product& product);

  bool usable() const noexcept { return choice_.status == CUBLAS_STATUS_SUCCESS; }
  /// Throws Error.
  void expect_usable() const { expect_success(choice_.status, "cublasLtMatmulAlgoGetHeuristic"); }
  std::int64_t workspace() const noexcept { return scratch_.bytes(); }

  /// `bias` is nullptr without one. The workspace is the product's own part of the call's.
  void run(const KernelCall& call, void* workspace, const void* a, const void* b, const void* bias,
           void* c) const noexcept;

 private:
  /// Plain data, which is copied for each call: the bias' address is part of it.
  struct Descriptors {
    cublasLtMatmulDescOpaque_t product{};
    cublasLtMatrixLayoutOpaque_t a{}, b{}, c{};
  };
  struct Choice {
    cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
    cublasLtMatmulAlgo_t algorithm{};
    std::int64_t workspace = 0;
  };

  bool rounds() const noexcept { return product_.compute == runtime::Compute::bfloat16; }
  /// Rows and columns as they lie in memory, of all matrices of a batch.
  struct Lying {
    std::int64_t rows, columns;
  };
  Lying a_lying() const noexcept;
  Lying b_lying() const noexcept;

  cublasStatus_t describe();
  cublasStatus_t ask(Choice& choice) const;
  bool works(cublasLtHandle_t handle, const Choice& choice) const;
  cublasStatus_t multiply(cublasLtHandle_t handle, const Choice& choice, const void* a,
                          const void* b, const void* bias, void* c, void* scratch,
                          cudaStream_t stream) const noexcept;

  Product product_;
  Descriptors descriptors_;
  Choice choice_;
  Scratch scratch_;
  std::int64_t own_scratch_ = 0, rounded_a_ = 0, rounded_b_ = 0;  ///< offsets
};

}  // namespace arenite::codelets::cuda
