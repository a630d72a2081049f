#include "codelets/cuda/pairwise.hpp"

namespace arenite::codelets {
namespace {

struct Sum {
  template <class T>
  ARENITE_GPU T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace

void ARENITE_CUDA_KERNELS(add)(runtime::KernelTable& kernels) {
  kernels.add("add", cuda::pairwise_kernel<Sum>());
}

}  // namespace arenite::codelets
