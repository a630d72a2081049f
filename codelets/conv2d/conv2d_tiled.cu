// Convolutions on tiles of products: no copy of the weight, no scratch but the weight gradient's
// parts. Before cuDNN for what it would spend more on launches than on arithmetic, and for 3×3
// kernels by Winograd's transforms; behind it for all that it does not take, or is not there for.
#include "codelets/conv2d/tiled_kernels.hpp"

namespace arenite::codelets {
namespace {

using conv2d::Geometry;
using Tiled = conv2d::TiledKernels<Geometry>;

}  // namespace

void ARENITE_TILED_KERNELS(conv2d)(runtime::KernelTable& kernels) {
  for (const char* op : {"conv2d", "conv2d_relu"}) Tiled::add_forward(kernels, op);
  Tiled::add_gradients(kernels, "conv2d");
}

void ARENITE_TILED_KERNELS(conv2d_behind_libraries)(runtime::KernelTable& kernels) {
  for (const char* op : {"conv2d", "conv2d_relu"})
    kernels.add(op,
                cuda::own("tiled.any", Tiled::fits<Geometry::forward>,
                          prepare<Tiled::forward, cuda::run_state<conv2d::TiledForward<false>>>));
  for (const char* op : {"conv2d_grad_input", "conv2d_grad_input_relu"})
    kernels.add(
        op, cuda::own("tiled.any", Tiled::fits<Geometry::grad_input>,
                      prepare<Tiled::grad_input, cuda::run_state<conv2d::TiledGradInput<false>>>));
  kernels.add(
      "conv2d_grad_weight",
      cuda::own("tiled.any", Tiled::fits<Geometry::grad_weight>,
                prepare<Tiled::grad_weight, cuda::run_state<conv2d::TiledGradWeight<false>>>,
                cuda::workspace_of<Tiled::grad_weight>));
}

}  // namespace arenite::codelets
