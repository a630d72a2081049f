// Convolutions on tiles of products: no copy of the weight, no scratch but the weight gradient's
// parts. Before cuDNN for what it would spend more on launches than on arithmetic, and for 3×3
// kernels by Winograd's transforms; behind it for all that it does not take, or is not there for.
#include "codelets/conv2d/conv2d.hpp"
#include "codelets/conv2d/thin.hpp"
#include "codelets/conv2d/winograd_passes.hpp"

namespace arenite::codelets {
namespace {

using conv2d::Geometry;
using conv2d::Sizes;
using graph::OpView;
using graph::Support;

Sizes sizes_of(const Geometry& g) { return {g.x, g.y, g.window, {1, 1}}; }

Support fits(const OpView& op, const Geometry& g, int least_alignment) {
  const Support plain = cuda::is_plain(op, least_alignment);
  return plain ? Sizes::fit(g.x, g.y, g.window, {1, 1}) : plain;
}

template <auto geometry>
Support fits(const OpView& op) {
  return fits(op, geometry(op), 16);
}

template <auto geometry>
Support supports(const OpView& op) {
  const Support fit = fits<geometry>(op);
  return fit ? cuda::worth_tiles(geometry(op).flops()) : fit;
}

conv2d::TiledForward<false> forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  return {sizes_of(g), g.biased, g.relu};
}

conv2d::TiledGradInput<false> grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  return {sizes_of(g), g.output.has_value()};
}

conv2d::TiledGradWeight<false> grad_weight(const OpView& op) {
  return conv2d::TiledGradWeight<false>(sizes_of(Geometry::grad_weight(op)));
}

Support supports_thin_grad_weight(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  const Support fit = fits(op, g, 4);
  return fit ? conv2d::ThinGradWeightPass<false>::fits(sizes_of(g), g.window) : fit;
}

conv2d::ThinGradWeightPass<false> thin_grad_weight(const OpView& op) {
  return conv2d::ThinGradWeightPass<false>(sizes_of(Geometry::grad_weight(op)));
}

template <auto geometry>
Support fits_winograd(const OpView& op) {
  const Geometry g = geometry(op);
  const Support window = conv2d::WinogradPass::fits(g.window, {1, 1});
  return window ? fits(op, g, 4) : window;
}

conv2d::WinogradForwardPass<false> winograd_forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  return {sizes_of(g), conv2d::output_tiles(g.y, {1, 1}), g.biased, g.relu};
}

conv2d::WinogradGradInputPass<false> winograd_grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  return {sizes_of(g), {g.x.n, g.x.h, g.x.w}, g.output.has_value()};
}

conv2d::WinogradGradWeightPass<false> winograd_grad_weight(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  return {sizes_of(g), conv2d::output_tiles(g.y, {1, 1})};
}

}  // namespace

void ARENITE_TILED_KERNELS(conv2d)(runtime::KernelTable& kernels) {
  using conv2d::ThinGradWeightPass, conv2d::TiledForward, conv2d::TiledGradInput,
      conv2d::TiledGradWeight;
  for (const char* op : {"conv2d", "conv2d_relu"}) {
    conv2d::add_winograd<winograd_forward>(kernels, op, fits_winograd<Geometry::forward>);
    kernels.add(op, cuda::own("tiled", supports<Geometry::forward>,
                              prepare<forward, cuda::run_state<TiledForward<false>>>));
    cuda::add_tilings<forward, cuda::run_state<TiledForward<false>>>(kernels, op,
                                                                     fits<Geometry::forward>);
  }
  for (const char* op : {"conv2d_grad_input", "conv2d_grad_input_relu"}) {
    conv2d::add_winograd<winograd_grad_input>(kernels, op, fits_winograd<Geometry::grad_input>);
    kernels.add(op, cuda::own("tiled", supports<Geometry::grad_input>,
                              prepare<grad_input, cuda::run_state<TiledGradInput<false>>>));
    cuda::add_tilings<grad_input, cuda::run_state<TiledGradInput<false>>>(
        kernels, op, fits<Geometry::grad_input>);
  }
  kernels.add("conv2d_grad_weight",
              cuda::own("thin", supports_thin_grad_weight,
                        prepare<thin_grad_weight, cuda::run_state<ThinGradWeightPass<false>>>,
                        cuda::workspace_of<thin_grad_weight>));
  conv2d::add_winograd<winograd_grad_weight>(kernels, "conv2d_grad_weight",
                                             fits_winograd<Geometry::grad_weight>);
  kernels.add("conv2d_grad_weight",
              cuda::own("tiled", supports<Geometry::grad_weight>,
                        prepare<grad_weight, cuda::run_state<TiledGradWeight<false>>>,
                        cuda::workspace_of<grad_weight>));
  cuda::add_tilings<grad_weight, cuda::run_state<TiledGradWeight<false>>>(
      kernels, "conv2d_grad_weight", fits<Geometry::grad_weight>);
}

void ARENITE_TILED_KERNELS(conv2d_behind_libraries)(runtime::KernelTable& kernels) {
  using conv2d::TiledForward, conv2d::TiledGradInput, conv2d::TiledGradWeight;
  for (const char* op : {"conv2d", "conv2d_relu"})
    kernels.add(op, cuda::own("tiled.any", fits<Geometry::forward>,
                              prepare<forward, cuda::run_state<TiledForward<false>>>));
  for (const char* op : {"conv2d_grad_input", "conv2d_grad_input_relu"})
    kernels.add(op, cuda::own("tiled.any", fits<Geometry::grad_input>,
                              prepare<grad_input, cuda::run_state<TiledGradInput<false>>>));
  kernels.add("conv2d_grad_weight",
              cuda::own("tiled.any", fits<Geometry::grad_weight>,
                        prepare<grad_weight, cuda::run_state<TiledGradWeight<false>>>,
                        cuda::workspace_of<grad_weight>));
}

}  // namespace arenite::codelets
