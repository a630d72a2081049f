// The kernels on tiles of products that a convolution has, alone or fused with ReLU and max
// pooling: what their registrations share.
#pragma once

#include "codelets/conv2d/conv2d.hpp"
#include "codelets/conv2d/thin.hpp"
#include "codelets/conv2d/winograd_convolutions.hpp"

namespace arenite::codelets::conv2d {
inline namespace ARENITE_GRIDS {

/// `G` is the operator's Geometry.
template <class G>
struct TiledKernels {
  static constexpr bool pooled = !std::is_same_v<G, Geometry>;

  static Sizes sizes_of(const G& g) { return {g.x, g.y, g.window, g.pool}; }

  static graph::Support fits(const OpView& op, const G& g, int least_alignment) {
    const graph::Support plain = cuda::is_plain(op, least_alignment);
    return plain ? Sizes::fit(g.x, g.y, g.window, g.pool) : plain;
  }
  template <auto geometry>
  static graph::Support fits(const OpView& op) {
    const G g = geometry(op);
    if (pooled && geometry == G::forward && g.pool.h * g.pool.w != 4)  // that a thread pools
      return "pooling over other than 4 pixels";
    return fits(op, g, 16);
  }
  /// Of convolutions alone, large ones are left to libraries.
  template <auto geometry>
  static graph::Support supports(const OpView& op) {
    const graph::Support fit = fits<geometry>(op);
    if constexpr (!pooled) {
      if (fit) return cuda::worth_tiles(geometry(op).flops());
    }
    return fit;
  }
  template <class Convolution, auto geometry>
  static graph::Support fits_winograd(const OpView& op) {
    const G g = geometry(op);
    if (pooled && g.pool != Pair{2, 2}) return "pooling other than 2x2";
    const graph::Support window = Convolution::fits(g.window, g.pool);
    return window ? fits(op, g, 4) : window;
  }
  static graph::Support supports_thin_grad_weight(const OpView& op) {
    const G g = G::grad_weight(op);
    const graph::Support fit = fits(op, g, 4);
    return fit ? ThinGradWeightConvolution<pooled>::fits(sizes_of(g), g.window) : fit;
  }

  static TiledForward<pooled> forward(const OpView& op) {
    const G g = G::forward(op);
    return {sizes_of(g), g.biased, g.relu};
  }
  static WinogradForwardConvolution<pooled> winograd_forward(const OpView& op) {
    const G g = G::forward(op);
    return {sizes_of(g), output_tiles(g.y, g.pool), g.biased, g.relu};
  }
  static TiledGradInput<pooled> grad_input(const OpView& op) {
    const G g = G::grad_input(op);
    return {sizes_of(g), g.output.has_value()};
  }
  static TiledGradWeight<pooled> grad_weight(const OpView& op) {
    return TiledGradWeight<pooled>(sizes_of(G::grad_weight(op)));
  }
  static ThinGradWeightConvolution<pooled> thin_grad_weight(const OpView& op) {
    return ThinGradWeightConvolution<pooled>(sizes_of(G::grad_weight(op)));
  }
  static WinogradGradInputConvolution<pooled> winograd_grad_input(const OpView& op) {
    const G g = G::grad_input(op);
    return {sizes_of(g), {g.x.n, g.x.h, g.x.w}, g.output.has_value()};
  }
  static WinogradGradWeightConvolution<pooled> winograd_grad_weight(const OpView& op) {
    const G g = G::grad_weight(op);
    return {sizes_of(g), output_tiles(g.y, g.pool)};
  }

  static void add_forward(runtime::KernelTable& kernels, const std::string& op) {
    constexpr auto run = cuda::run_state<TiledForward<pooled>>;
    add_winograd<winograd_forward>(kernels, op, fits_winograd<WinogradConvolution, G::forward>);
    kernels.add(op, cuda::own("tiled", supports<G::forward>, prepare<forward, run>));
    cuda::add_tilings<forward, run>(kernels, op, fits<G::forward>);
  }

  /// Those of the gradients of `op`.
  static void add_gradients(runtime::KernelTable& kernels, const std::string& op) {
    constexpr auto run_input = cuda::run_state<TiledGradInput<pooled>>,
                   run_weight = cuda::run_state<TiledGradWeight<pooled>>,
                   run_thin = cuda::run_state<ThinGradWeightConvolution<pooled>>;
    for (const char* input_gradient : {"_grad_input", "_grad_input_relu"}) {
      const std::string input = op + input_gradient;
      add_winograd<winograd_grad_input>(
          kernels, input, fits_winograd<WinogradGradInputConvolution<pooled>, G::grad_input>);
      kernels.add(input,
                  cuda::own("tiled", supports<G::grad_input>, prepare<grad_input, run_input>));
      cuda::add_tilings<grad_input, run_input>(kernels, input, fits<G::grad_input>);
    }
    const std::string weight = op + "_grad_weight";
    kernels.add(weight,
                cuda::own("thin", supports_thin_grad_weight, prepare<thin_grad_weight, run_thin>,
                          cuda::workspace_of<thin_grad_weight>));
    add_winograd<winograd_grad_weight>(kernels, weight,
                                       fits_winograd<WinogradConvolution, G::grad_weight>);
    kernels.add(weight,
                cuda::own("tiled", supports<G::grad_weight>, prepare<grad_weight, run_weight>,
                          cuda::workspace_of<grad_weight>));
    cuda::add_tilings<grad_weight, run_weight>(kernels, weight, fits<G::grad_weight>);
  }
};

}  // namespace ARENITE_GRIDS
}  // namespace arenite::codelets::conv2d
