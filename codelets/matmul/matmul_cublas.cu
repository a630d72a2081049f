#include "codelets/cuda/cublas.hpp"
#include "codelets/matmul/sizes.hpp"

namespace arenite::codelets {
namespace {

using runtime::Compute;

constexpr int least_alignment = 4;  ///< bytes: a float's

struct Matmul : cuda::Gemm {
  Matmul(const OpView& op, Compute compute) : Gemm(product(op, compute)) {}

 private:
  static cuda::Product product(const OpView& op, Compute compute) {
    const MatmulSizes s(op);
    return {.batch = s.batch,
            .rows = s.rows,
            .inner = s.inner,
            .columns = s.columns,
            .transpose_a = s.transpose_a,
            .transpose_b = s.transpose_b,
            .type = op.result(0).type,
            .compute = compute,
            .a_alignment = cuda::alignment_of(op.operand(0)),
            .b_alignment = cuda::alignment_of(op.operand(1)),
            .c_alignment = cuda::alignment_of(op.result(0))};
  }
};

void run(const KernelCall& call, const Matmul& product) {
  product.run(call, call.workspace, call.in<void>(0), call.in<void>(1), nullptr, call.out<void>(0));
}

}  // namespace

void register_matmul_cublas(runtime::KernelTable& kernels) {
  for (const Compute compute : cuda::all_computes)
    kernels.add("matmul", cuda::library_kernel<Matmul, run, least_alignment>("cublas", compute));
}

}  // namespace arenite::codelets
