// The fused operation on tiles of products, for 3×3 kernels by Winograd's transforms: one grid a
// pass, and one that adds the weight gradient's parts. Neither the convolution's outputs nor their
// gradient are in memory.
#include "codelets/conv2d/thin.hpp"
#include "codelets/conv2d/winograd_passes.hpp"
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"

namespace arenite::codelets {
namespace {

using conv2d::Sizes;
using conv2d_relu_max_pool2d::Geometry;
using graph::OpView;
using graph::Support;

Sizes sizes_of(const Geometry& g) { return {g.x, g.y, g.window, g.pool}; }

Support fits(const OpView& op, const Geometry& g, int least_alignment) {
  const Support plain = cuda::is_plain(op, least_alignment);
  return plain ? Sizes::fit(g.x, g.y, g.window, g.pool) : plain;
}

template <auto geometry>
Support supports(const OpView& op) {
  return fits(op, geometry(op), 16);
}

/// A thread pools 4 pixels.
Support supports_forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  if (g.pool.h * g.pool.w != 4) return "pooling over other than 4 pixels";
  return fits(op, g, 16);
}

conv2d::TiledForward<true> forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  return {sizes_of(g), g.biased, true};
}

Support supports_thin_forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  if (g.pool != Pair{2, 2}) return "pooling other than 2x2";
  const Support fit = fits(op, g, 16);
  return fit ? conv2d::is_thin(sizes_of(g), g.window) : fit;
}

conv2d::ThinForwardPass thin_forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  return {sizes_of(g), g.biased};
}

conv2d::TiledGradInput<true> grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  return {sizes_of(g), g.output.has_value()};
}

conv2d::TiledGradWeight<true> grad_weight(const OpView& op) {
  return conv2d::TiledGradWeight<true>(sizes_of(Geometry::grad_weight(op)));
}

Support supports_thin_grad_weight(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  const Support fit = fits(op, g, 4);
  return fit ? conv2d::ThinGradWeightPass<true>::fits(sizes_of(g), g.window) : fit;
}

conv2d::ThinGradWeightPass<true> thin_grad_weight(const OpView& op) {
  return conv2d::ThinGradWeightPass<true>(sizes_of(Geometry::grad_weight(op)));
}

template <class Pass, auto geometry>
Support fits_winograd(const OpView& op) {
  const Geometry g = geometry(op);
  if (g.pool != Pair{2, 2}) return "pooling other than 2x2";
  const Support window = Pass::fits(g.window, g.pool);
  return window ? fits(op, g, 4) : window;
}

conv2d::WinogradForwardPass<true> winograd_forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  return {sizes_of(g), conv2d::output_tiles(g.y, g.pool), g.biased, true};
}

conv2d::WinogradGradInputPass<true> winograd_grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  return {sizes_of(g), {g.x.n, g.x.h, g.x.w}, g.output.has_value()};
}

conv2d::WinogradGradWeightPass<true> winograd_grad_weight(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  return {sizes_of(g), conv2d::output_tiles(g.y, g.pool)};
}

}  // namespace

void ARENITE_TILED_KERNELS(conv2d_relu_max_pool2d)(runtime::KernelTable& kernels) {
  using conv2d::add_winograd, conv2d::ThinGradWeightPass, conv2d::TiledForward,
      conv2d::TiledGradInput, conv2d::TiledGradWeight, conv2d::WinogradPass;
  const std::string op = "conv2d_relu_max_pool2d";
  kernels.add(op, cuda::own("thin", supports_thin_forward,
                            prepare<thin_forward, cuda::run_state<conv2d::ThinForwardPass>>));
  add_winograd<winograd_forward>(kernels, op, fits_winograd<WinogradPass, Geometry::forward>);
  kernels.add(op, cuda::own("tiled", supports_forward,
                            prepare<forward, cuda::run_state<TiledForward<true>>>));
  for (const char* gradient : {"_grad_input", "_grad_input_relu"}) {
    add_winograd<winograd_grad_input>(
        kernels, op + gradient,
        fits_winograd<conv2d::WinogradGradInputPass<true>, Geometry::grad_input>);
    kernels.add(op + gradient,
                cuda::own("tiled", supports<Geometry::grad_input>,
                          prepare<grad_input, cuda::run_state<TiledGradInput<true>>>));
    cuda::add_tilings<grad_input, cuda::run_state<TiledGradInput<true>>>(
        kernels, op + gradient, supports<Geometry::grad_input>);
  }
  kernels.add(op + "_grad_weight",
              cuda::own("thin", supports_thin_grad_weight,
                        prepare<thin_grad_weight, cuda::run_state<ThinGradWeightPass<true>>>,
                        cuda::workspace_of<thin_grad_weight>));
  add_winograd<winograd_grad_weight>(kernels, op + "_grad_weight",
                                     fits_winograd<WinogradPass, Geometry::grad_weight>);
  kernels.add(op + "_grad_weight",
              cuda::own("tiled", supports<Geometry::grad_weight>,
                        prepare<grad_weight, cuda::run_state<TiledGradWeight<true>>>,
                        cuda::workspace_of<grad_weight>));
  cuda::add_tilings<forward, cuda::run_state<TiledForward<true>>>(kernels, op, supports_forward);
  cuda::add_tilings<grad_weight, cuda::run_state<TiledGradWeight<true>>>(
      kernels, op + "_grad_weight", supports<Geometry::grad_weight>);
}

}  // namespace arenite::codelets
