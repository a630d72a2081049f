// The fused operation on tiles of products, for 3×3 kernels by Winograd's transforms: one grid a
// pass, and one that adds the weight gradient's parts. Neither the convolution's outputs nor their
// gradient are in memory.
#include "codelets/conv2d/tiled_kernels.hpp"

namespace arenite::codelets {

void ARENITE_TILED_KERNELS(conv2d_relu_max_pool2d)(runtime::KernelTable& kernels) {
  const std::string op = "conv2d_relu_max_pool2d";
  kernels.add(op, conv2d::tiled_kernel<conv2d::ThinForwardConvolution>("thin"));
  conv2d::add_tiled_forward<true>(kernels, op);
  conv2d::add_tiled_gradients<true>(kernels, op);
}

}  // namespace arenite::codelets
