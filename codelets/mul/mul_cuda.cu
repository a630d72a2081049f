#include "codelets/cuda/pairwise.hpp"

namespace arenite::codelets {
namespace {

struct Product {
  template <class T>
  ARENITE_GPU T operator()(T a, T b) const {
    return a * b;
  }
};

}  // namespace

void ARENITE_CUDA_KERNELS(mul)(runtime::KernelTable& kernels) {
  kernels.add("mul", cuda::pairwise_kernel<Product>());
}

}  // namespace arenite::codelets
