// Products of matrices where cuBLAS is absent: a thread an element, whatever the shape.
#include "codelets/cuda/kernel.hpp"
#include "codelets/matmul/sizes.hpp"

namespace arenite::codelets {
namespace {

template <class T>
void run(const KernelCall& call, const MatmulSizes& s) {
  const T *a = call.in<T>(0), *b = call.in<T>(1);
  T* c = call.out<T>(0);
  const std::int64_t row_a = s.transpose_a ? 1 : s.inner, column_a = s.transpose_a ? s.rows : 1,
                     row_b = s.transpose_b ? 1 : s.columns, column_b = s.transpose_b ? s.inner : 1;
  cuda::for_each(call, s.batch * s.rows * s.columns, [=] ARENITE_THREAD(std::int64_t i) {
    const std::int64_t column = i % s.columns, row = i / s.columns % s.rows,
                       matrix = i / s.columns / s.rows;
    const T* from_a = a + matrix * s.rows * s.inner + row * row_a;
    const T* from_b = b + matrix * s.inner * s.columns + column * column_b;
    T sum = 0;
    for (std::int64_t p = 0; p < s.inner; ++p) sum += from_a[p * column_a] * from_b[p * row_b];
    c[i] = sum;
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(matmul)(runtime::KernelTable& kernels) {
  kernels.add("matmul", cuda::own(prepare_real<made_of<MatmulSizes>, run<float>, run<double>>));
}

}  // namespace arenite::codelets
