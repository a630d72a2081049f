// The fused operation on tiles of products, for 3×3 kernels by Winograd's transforms: one grid a
// pass, and one that adds the weight gradient's parts. Neither the convolution's outputs nor their
// gradient are in memory.
#include "codelets/conv2d/tiled_kernels.hpp"
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"

namespace arenite::codelets {
namespace {

using conv2d_relu_max_pool2d::Geometry;
using graph::Support;
using Tiled = conv2d::TiledKernels<Geometry>;

Support supports_thin_forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  if (g.pool != Pair{2, 2}) return "pooling other than 2x2";
  const Support fit = Tiled::fits(op, g, 16);
  return fit ? conv2d::is_thin(Tiled::sizes_of(g), g.window) : fit;
}

conv2d::ThinForwardConvolution thin_forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  return {Tiled::sizes_of(g), g.biased};
}

}  // namespace

void ARENITE_TILED_KERNELS(conv2d_relu_max_pool2d)(runtime::KernelTable& kernels) {
  const std::string op = "conv2d_relu_max_pool2d";
  kernels.add(op,
              cuda::own("thin", supports_thin_forward,
                        prepare<thin_forward, cuda::run_state<conv2d::ThinForwardConvolution>>));
  Tiled::add_forward(kernels, op);
  Tiled::add_gradients(kernels, op);
}

}  // namespace arenite::codelets
