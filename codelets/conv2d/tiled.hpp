// How the convolution's products are dealt out to a GPU's blocks, and started.
#pragma once

#include "codelets/conv2d/implicit_gemm.hpp"
#include "codelets/cuda/plain.hpp"
#include "codelets/cuda/product_grid.hpp"
#include "codelets/cuda/sums.hpp"

namespace arenite::codelets::conv2d {
inline namespace ARENITE_GRIDS {

/// What a kernel's state is made of an op: a `Convolution` of the geometry of its direction.
template <class Convolution>
Convolution build(const OpView& op) {
  return Convolution(Convolution::geometry(op));
}

/// Whether it can be.
template <class Convolution>
graph::Support takes(const OpView& op) {
  const Geometry g = Convolution::geometry(op);
  if (const graph::Support fit = Convolution::fits(g); !fit) return fit;
  const graph::Support plain = cuda::is_plain(op, Convolution::least_alignment);
  return plain ? Sizes::fit(g) : plain;
}

/// One of a convolution's three directions.
struct TiledConvolution : cuda::ProductGrid {
  static constexpr int least_alignment = 16;
  Sizes sizes;

  TiledConvolution(const Geometry& g, std::int64_t rows, std::int64_t all_columns,
                   std::int64_t all_depth, bool fours, bool fours_of_results, bool in_parts)
      : ProductGrid(rows, all_columns, all_depth, fours, fours_of_results, in_parts), sizes(g) {}

  static graph::Support fits(const Geometry&) { return {}; }
  std::int32_t narrow_depth() const { return static_cast<std::int32_t>(depth); }
};

template <bool pooled>
struct TiledForward : TiledConvolution {
  static constexpr auto geometry = Geometry::forward;
  bool biased, relu;

  explicit TiledForward(const Geometry& g)
      : TiledConvolution(g, g.y.n * g.convolved().h * g.convolved().w, g.y.c, g.taps() * g.x.c,
                         g.x.c % 4 == 0 && g.y.c % 4 == 0, g.y.c % 4 == 0, false),
        biased(g.biased),
        relu(g.relu) {}

  static graph::Support fits(const Geometry& g) {
    if (pooled && g.pool.h * g.pool.w != 4) return "pooling over other than 4 pixels";
    return {};
  }

  void run(const KernelCall& call) const {
    with_tile([&](auto tile, auto vector) {
      using Problem = ForwardProduct<pooled, decltype(vector)::value>;
      ProductGrid::run(
          call, tile,
          Problem{.a = {call.in<float>(0), sizes},
                  .b = {call.in<float>(1), sizes.outputs(), sizes.weight_rows(), sizes.outputs()},
                  .grid = grid,
                  .depth = narrow_depth(),
                  .bias = biased ? call.in<float>(2) : nullptr,
                  .relu = relu,
                  .y = call.out<float>(0),
                  .code = pooled ? call.out<std::uint8_t>(1) : nullptr,
                  .aligned = aligned});
    });
  }
};

template <bool pooled>
struct TiledGradInput : TiledConvolution {
  static constexpr auto geometry = Geometry::grad_input;
  bool rectified;  ///< a ReLU before the layer has made the last operand

  explicit TiledGradInput(const Geometry& g)
      : TiledConvolution(g, g.x.n * g.x.h * g.x.w, g.x.c, g.taps() * g.y.c, g.y.c % 4 == 0,
                         g.x.c % 4 == 0, false),
        rectified(g.output.has_value()) {}

  void run(const KernelCall& call) const {
    with_tile([&](auto tile, auto vector) {
      using Problem = GradInputProduct<pooled, decltype(vector)::value>;
      ProductGrid::run(
          call, tile,
          Problem{.a = {{call.in<float>(0), pooled ? call.in<std::uint8_t>(1) : nullptr}, sizes},
                  .b = {call.in<float>(pooled ? 2 : 1), sizes},
                  .grid = grid,
                  .depth = narrow_depth(),
                  .output = rectified ? call.in<float>(pooled ? 3 : 2) : nullptr,
                  .dx = call.out<float>(0),
                  .aligned = aligned});
    });
  }
};

/// dweight, and dbias behind pooling, are the sums of parts that lie one behind the other.
template <bool pooled>
static void add_weight_parts(const KernelCall& call, const Sizes& s, std::int64_t many,
                             const float* parts) {
  const std::int64_t weights = std::int64_t{s.weight_rows()} * s.outputs();
  float *dweight = call.out<float>(0), *dbias = pooled ? call.out<float>(1) : nullptr;
  cuda::add_parts(call, weight_part_elements<pooled>(s), many, parts,
                  [=] ARENITE_THREAD(std::int64_t i, double total) {
                    (i < weights ? dweight[i] : dbias[i - weights]) = static_cast<float>(total);
                  });
}

/// By parts, which stand in the workspace.
template <bool pooled>
struct TiledGradWeight : TiledConvolution {
  static constexpr auto geometry = Geometry::grad_weight;

  explicit TiledGradWeight(const Geometry& g)
      : TiledConvolution(g, g.taps() * g.x.c, g.y.c, g.y.n * g.convolved().h * g.convolved().w,
                         g.x.c % 4 == 0 && g.y.c % 4 == 0, g.y.c % 4 == 0, true) {}

  std::int64_t workspace() const {
    return grid.parts * weight_part_elements<pooled>(sizes) * float_bytes;
  }

  void run(const KernelCall& call) const {
    auto* parts = static_cast<float*>(call.workspace);
    with_tile([&](auto tile, auto vector) {
      using Problem = GradWeightProduct<pooled, decltype(vector)::value>;
      ProductGrid::run(
          call, tile,
          Problem{.a = {call.in<float>(0), sizes},
                  .b = {{call.in<float>(1), pooled ? call.in<std::uint8_t>(2) : nullptr}, sizes},
                  .grid = grid,
                  .depth = narrow_depth(),
                  .parts = parts,
                  .aligned = aligned});
    });
    add_weight_parts<pooled>(call, sizes, grid.parts, parts);
  }
};

}  // namespace ARENITE_GRIDS
}  // namespace arenite::codelets::conv2d
