// LIBXSMM's batch-reduce GEMM in single precision, as the kernels here use it.
//
// All matrices are column-major, so a row of an NHWC image (pixels by channels, channels
// contiguous) is a matrix of channels by pixels. `dispatch` compiles (takes locks, may allocate):
// call it while a program is built. What it returns is a bare function pointer that any thread may
// call, named by its shape where the perf map is on (src/base/perf_map.hpp).
#pragma once

#include <arenite/graph/support.hpp>

#include <libxsmm.h>

#include <cstdint>
#include <initializer_list>

namespace arenite::codelets::xsmm {

/// C = [C +] sum over i of A_i · B_i; the addresses of A_i and B_i come as arrays, their number as
/// the fourth argument (at least 1).
using BatchReduce = libxsmm_smmfunction_reducebatch_addr;
using Count = unsigned long long;

/// A_i is m×k, B_i is k×n (n×k when transposed in memory), C is m×n.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  ///< elements from a column to the next
  bool transpose_b = false;
  bool accumulate = false;  ///< add to C instead of overwriting it
};

/// Generating code for 2^31 columns takes LIBXSMM seconds, and its displacements have 32 bits: what
/// is larger is left to other kernels.
constexpr bool in_reach(std::initializer_list<std::int64_t> sizes) noexcept {
  constexpr std::int64_t limit = 1 << 22;
  for (const std::int64_t size : sizes) {
    if (size < 1 || size > limit) return false;
  }
  return true;
}

/// Whether everything that was dispatched is there.
constexpr graph::Support all_made(bool made) noexcept {
  if (made) return {};
  return "sizes that LIBXSMM makes no code for";
}

/// nullptr when LIBXSMM has no kernel for this machine or shape.
BatchReduce dispatch(const Gemm& gemm);

/// out[c][r] = in[r][c]; the distance between rows of each in elements is given by address.
using Transpose = libxsmm_xtransfunction;

/// For `rows`×`columns` row-major elements; `ldo` is the distance between rows of the result.
/// nullptr when LIBXSMM has no kernel for this machine or shape.
Transpose dispatch_transpose(std::int64_t rows, std::int64_t columns, std::int64_t ldo);

}  // namespace arenite::codelets::xsmm
