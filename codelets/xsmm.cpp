#include "codelets/xsmm.hpp"

#include "src/base/limits.hpp"
#include "src/base/perf_map.hpp"
#include "src/base/stack.hpp"

#include <cstdlib>
#include <string>

namespace arenite::codelets::xsmm {
namespace {

/// LIBXSMM generates code in a buffer of 128 KiB on the stack.
constexpr std::size_t stack_bytes = std::size_t{256} << 10;
/// Where it gets no memory for code it jumps to nowhere; what it keeps beside code is made at
/// first.
constexpr std::size_t code_bytes = std::size_t{4} << 20;

std::string text(std::int64_t number) { return std::to_string(number); }

/// What LIBXSMM did not generate is the library's own code, which perf knows.
void name_for_perf(const void* kernel, const std::string& name) {
  libxsmm_kernel_info info{};
  if (libxsmm_get_kernel_info(kernel, &info) == EXIT_SUCCESS && info.code_size > 0)
    perf_map().add(kernel, info.code_size, name);
}

}  // namespace

BatchReduce dispatch(const Gemm& gemm) {
  if (!in_reach({gemm.m, gemm.n, gemm.k, gemm.lda, gemm.ldb, gemm.ldc})) return nullptr;
  const int lda = static_cast<int>(gemm.lda), ldb = static_cast<int>(gemm.ldb),
            ldc = static_cast<int>(gemm.ldc);
  const float alpha = 1, beta = gemm.accumulate ? 1 : 0;
  const int flags = gemm.transpose_b ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
  BatchReduce made = nullptr;
  expect_address_space(code_bytes, "LIBXSMM's code");
  with_stack(stack_bytes, [&] {
    made = libxsmm_smmdispatch_reducebatch_addr(static_cast<int>(gemm.m), static_cast<int>(gemm.n),
                                                static_cast<int>(gemm.k), &lda, &ldb, &ldc, &alpha,
                                                &beta, &flags, &prefetch);
  });
  if (made != nullptr && perf_map().on()) {
    name_for_perf(reinterpret_cast<const void*>(made),
                  "xsmm gemm m" + text(gemm.m) + " n" + text(gemm.n) + " k" + text(gemm.k) +
                      (gemm.transpose_b ? " B transposed" : "") +
                      (gemm.accumulate ? " accumulates" : ""));
  }
  return made;
}

Transpose dispatch_transpose(std::int64_t rows, std::int64_t columns, std::int64_t ldo) {
  if (!in_reach({rows, columns, ldo})) return nullptr;
  libxsmm_descriptor_blob blob;
  Transpose made = nullptr;
  expect_address_space(code_bytes, "LIBXSMM's code");
  with_stack(stack_bytes, [&] {
    made = libxsmm_dispatch_trans(
        libxsmm_trans_descriptor_init(&blob, sizeof(float), static_cast<unsigned>(columns),
                                      static_cast<unsigned>(rows), static_cast<unsigned>(ldo)));
  });
  if (made != nullptr && perf_map().on()) {
    name_for_perf(reinterpret_cast<const void*>(made),
                  "xsmm transpose " + text(rows) + "x" + text(columns));
  }
  return made;
}

}  // namespace arenite::codelets::xsmm
