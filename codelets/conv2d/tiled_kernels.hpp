// The kernels on tiles of products that a convolution has, alone or fused with ReLU and max
// pooling: what their registrations share.
#pragma once

#include "codelets/conv2d/thin.hpp"
#include "codelets/conv2d/winograd_convolutions.hpp"

namespace arenite::codelets::conv2d {
inline namespace ARENITE_GRIDS {

/// One that takes what its `Convolution` takes.
template <class Convolution>
Kernel tiled_kernel(const std::string& name) {
  Kernel kernel = cuda::own(name, takes<Convolution>,
                            prepare<build<Convolution>, cuda::run_state<Convolution>>);
  if constexpr (requires(const Convolution& convolution) { convolution.workspace(); })
    kernel.workspace = cuda::workspace_of<build<Convolution>>;
  return kernel;
}

/// By Winograd's transforms, and on tiles of products. Of convolutions alone, large ones are left
/// to libraries.
template <bool pooled, class Winograd, class Tiled>
void add_tiled(runtime::KernelTable& kernels, const std::string& op) {
  add_winograd<Winograd>(kernels, op);
  Kernel tiled = tiled_kernel<Tiled>("tiled");
  if (!pooled) {
    tiled.supports = [](const OpView& view) {
      const graph::Support fit = takes<Tiled>(view);
      return fit ? cuda::worth_tiles(Tiled::geometry(view).flops()) : fit;
    };
  }
  kernels.add(op, std::move(tiled));
  cuda::add_tilings<build<Tiled>, cuda::run_state<Tiled>>(kernels, op, takes<Tiled>);
}

template <bool pooled>
void add_tiled_forward(runtime::KernelTable& kernels, const std::string& op) {
  add_tiled<pooled, WinogradForwardConvolution<pooled>, TiledForward<pooled>>(kernels, op);
}

/// Those of the gradients of `op`.
template <bool pooled>
void add_tiled_gradients(runtime::KernelTable& kernels, const std::string& op) {
  for (const char* input : {"_grad_input", "_grad_input_relu"}) {
    add_tiled<pooled, WinogradGradInputConvolution<pooled>, TiledGradInput<pooled>>(kernels,
                                                                                    op + input);
  }
  const std::string weight = op + "_grad_weight";
  kernels.add(weight, tiled_kernel<ThinGradWeightConvolution<pooled>>("thin"));
  add_tiled<pooled, WinogradGradWeightConvolution<pooled>, TiledGradWeight<pooled>>(kernels,
                                                                                    weight);
}

}  // namespace ARENITE_GRIDS
}  // namespace arenite::codelets::conv2d
