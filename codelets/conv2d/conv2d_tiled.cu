// Convolutions on tiles of products: no copy of the weight, no scratch but the weight gradient's
// parts. Before cuDNN for what it would spend more on launches than on arithmetic, and for 3×3
// kernels by Winograd's transforms; behind it for all that it does not take, or is not there for.
#include "codelets/conv2d/tiled_kernels.hpp"

namespace arenite::codelets {

void ARENITE_TILED_KERNELS(conv2d)(runtime::KernelTable& kernels) {
  for (const char* op : {"conv2d", "conv2d_relu"}) conv2d::add_tiled_forward<false>(kernels, op);
  conv2d::add_tiled_gradients<false>(kernels, "conv2d");
}

void ARENITE_TILED_KERNELS(conv2d_behind_libraries)(runtime::KernelTable& kernels) {
  const std::string any = "tiled.any";
  for (const char* op : {"conv2d", "conv2d_relu"})
    kernels.add(op, conv2d::tiled_kernel<conv2d::TiledForward<false>>(any));
  for (const char* op : {"conv2d_grad_input", "conv2d_grad_input_relu"})
    kernels.add(op, conv2d::tiled_kernel<conv2d::TiledGradInput<false>>(any));
  kernels.add("conv2d_grad_weight", conv2d::tiled_kernel<conv2d::TiledGradWeight<false>>(any));
}

}  // namespace arenite::codelets
