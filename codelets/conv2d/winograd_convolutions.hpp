// How Winograd's products are dealt out to a GPU's blocks, and started.
#pragma once

#include "codelets/conv2d/tiled.hpp"
#include "codelets/conv2d/winograd_products.hpp"

namespace arenite::codelets::conv2d {
inline namespace ARENITE_GRIDS {

/// One of a convolution's three directions.
class WinogradConvolution {
 public:
  static constexpr int least_alignment = 4;

  /// Whether it should take less time than tiles of products: where most of a GPU has blocks, and
  /// these are mostly full, and deep.
  graph::Support worth() const {
    double made = 1.0 * grid_.tiles_down * grid_.tiles_across;
    with_shape([&](auto shape) { made *= decltype(shape)::rows * decltype(shape)::columns; });
    if (!keeps_busy()) return "too few tiles to keep a GPU busy";
    if (depth_ < 16) return "fewer than 16 terms to sum";
    if (made > 1.5 * static_cast<double>(rows_) * static_cast<double>(columns_))
      return "tiles that would be half empty";
    return {};
  }

  /// Blocks of this kind.
  void take(bool large) {
    large_ = large;
    constexpr std::int64_t least_depth = 32, most_parts = 256;
    const std::int64_t parts = in_parts_ ? std::min(depth_ / least_depth, most_parts) : 1;
    with_shape([&](auto shape) {
      grid_ = cuda::TileGrid::of(shape, rows_, columns_, depth_, parts,
                                 cuda::multiprocessors * decltype(shape)::resident);
    });
  }

 protected:
  WinogradConvolution(const Geometry& g, const Tiling2x2& tiles, std::int64_t rows,
                      std::int64_t columns, std::int64_t depth, bool in_parts)
      : sizes_(g),
        tiles_(tiles),
        rows_(rows),
        columns_(columns),
        depth_(depth),
        in_parts_(in_parts) {
    take(columns > cuda::winograd::Small::columns);
    if (large_ && !keeps_busy()) take(false);
  }

  static graph::Support fits_tiles(const Geometry& g, bool pooled) {
    if (pooled && g.pool != Pair{2, 2}) return "pooling other than 2x2";
    if (g.window.kernel != Pair{3, 3}) return "a kernel other than 3x3";
    return moves_by_one(g.window);
  }

  template <class Problem>
  void run_product(const KernelCall& call, const Problem& problem) const {
    with_shape([&](auto shape) {
      cuda::for_each_block(call, grid_.blocks(),
                           cuda::winograd::Product<decltype(shape), Problem>{problem});
    });
  }

  std::int32_t narrow_depth() const { return static_cast<std::int32_t>(depth_); }

  Sizes sizes_;
  Tiling2x2 tiles_;
  cuda::TileGrid grid_;

 private:
  template <class F>
  void with_shape(F f) const {
    if (large_)
      f(cuda::winograd::Large());
    else
      f(cuda::winograd::Small());
  }

  bool keeps_busy() const { return 3 * grid_.blocks() >= 2 * cuda::multiprocessors; }

  std::int64_t rows_, columns_, depth_;
  bool in_parts_, large_ = false;
};

inline Tiling2x2 input_tiles(const Geometry& g) { return {g.x.n, g.x.h, g.x.w}; }

/// Tiles of a convolution's outputs; of those that windows cover, where they are pooled.
inline Tiling2x2 output_tiles(const Geometry& g) {
  return {g.y.n, g.convolved().h, g.convolved().w};
}

template <bool pooled>
class WinogradForwardConvolution : public WinogradConvolution {
 public:
  static constexpr auto geometry = Geometry::forward;

  explicit WinogradForwardConvolution(const Geometry& g)
      : WinogradConvolution(g, output_tiles(g), output_tiles(g).count, g.y.c, g.x.c, false),
        biased_(g.biased),
        relu_(g.relu) {}

  static graph::Support fits(const Geometry& g) { return fits_tiles(g, pooled); }

  void run(const KernelCall& call) const {
    run_product(call,
                WinogradForward<pooled>{.a = {call.in<float>(0), sizes_, tiles_},
                                        .b = {call.in<float>(1), sizes_},
                                        .grid = grid_,
                                        .depth = narrow_depth(),
                                        .bias = biased_ ? call.in<float>(2) : nullptr,
                                        .relu = relu_,
                                        .y = call.out<float>(0),
                                        .code = pooled ? call.out<std::uint8_t>(1) : nullptr});
  }

 private:
  bool biased_, relu_;
};

template <bool pooled>
class WinogradGradInputConvolution : public WinogradConvolution {
 public:
  static constexpr auto geometry = Geometry::grad_input;

  explicit WinogradGradInputConvolution(const Geometry& g)
      : WinogradConvolution(g, input_tiles(g), input_tiles(g).count, g.x.c, g.y.c, false),
        rectified_(g.output.has_value()) {}

  /// Where outputs are pooled, both axes' windows lie alike over the tiles.
  static graph::Support fits(const Geometry& g) {
    const graph::Support fit = fits_tiles(g, pooled);
    if (fit && pooled && g.window.padding.h % 2 != g.window.padding.w % 2)
      return "paddings of which one is odd";
    return fit;
  }

  void run(const KernelCall& call) const {
    const auto* gradient = call.in<float>(0);
    if constexpr (!pooled) {
      run_with(call, GradientTilePatches{gradient, sizes_, tiles_});
    } else {
      const auto* code = call.in<std::uint8_t>(1);
      if (sizes_.padding_h % 2 != 0)
        run_with(call, PooledTilePatches<true>{gradient, code, sizes_, tiles_});
      else
        run_with(call, PooledTilePatches<false>{gradient, code, sizes_, tiles_});
    }
  }

 private:
  template <class Gradient>
  void run_with(const KernelCall& call, const Gradient& gradient) const {
    constexpr std::size_t weight = pooled ? 2 : 1;
    run_product(call, WinogradGradInput<Gradient>{
                          .a = gradient,
                          .b = {call.in<float>(weight), sizes_},
                          .grid = grid_,
                          .depth = narrow_depth(),
                          .output = rectified_ ? call.in<float>(weight + 1) : nullptr,
                          .dx = call.out<float>(0)});
  }

  bool rectified_;
};

/// By parts, which stand in the workspace.
template <bool pooled>
class WinogradGradWeightConvolution : public WinogradConvolution {
 public:
  static constexpr auto geometry = Geometry::grad_weight;

  explicit WinogradGradWeightConvolution(const Geometry& g)
      : WinogradConvolution(g, output_tiles(g), g.x.c, g.y.c, output_tiles(g).count, true) {}

  static graph::Support fits(const Geometry& g) { return fits_tiles(g, pooled); }

  std::int64_t workspace() const {
    return grid_.parts * weight_part_elements<pooled>(sizes_) * float_bytes;
  }

  void run(const KernelCall& call) const {
    auto* parts = static_cast<float*>(call.workspace);
    run_product(call, WinogradGradWeight<pooled>{
                          .a = {call.in<float>(0), sizes_, tiles_},
                          .b = {call.in<float>(1), pooled ? call.in<std::uint8_t>(2) : nullptr,
                                sizes_, tiles_},
                          .grid = grid_,
                          .depth = narrow_depth(),
                          .parts = parts});
    add_weight_parts<pooled>(call, sizes_, grid_.parts, parts);
  }
};

/// "winograd", where it is worth it; and whatever it is worth, for those who measure,
/// "winograd.large" and "winograd.small".
template <class Convolution>
void add_winograd(runtime::KernelTable& kernels, const std::string& op) {
  const auto add = [&](const char* name,
                       const std::function<graph::Support(const OpView&)>& supports,
                       const std::function<Convolution(const OpView&)>& make, bool only_chosen) {
    Kernel kernel = cuda::own(name, supports, [=](const OpView& view) {
      return prepared<cuda::run_state<Convolution>>(make(view));
    });
    if constexpr (requires(const Convolution& convolution) { convolution.workspace(); })
      kernel.workspace = [=](const OpView& view) { return make(view).workspace(); };
    kernel.only_chosen = only_chosen;
    kernels.add(op, std::move(kernel));
  };
  add(
      "winograd",
      [=](const OpView& view) {
        const graph::Support fit = takes<Convolution>(view);
        return fit ? build<Convolution>(view).worth() : fit;
      },
      build<Convolution>, false);
  for (const bool large : {true, false}) {
    const auto make = [=](const OpView& view) {
      Convolution convolution = build<Convolution>(view);
      convolution.take(large);
      return convolution;
    };
    add(large ? "winograd.large" : "winograd.small", takes<Convolution>, make, true);
  }
}

}  // namespace ARENITE_GRIDS
}  // namespace arenite::codelets::conv2d
