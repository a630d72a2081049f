// How the convolution's products are dealt out to a GPU's blocks, and started.
#pragma once

#include "codelets/conv2d/implicit_gemm.hpp"
#include "codelets/cuda/plain.hpp"
#include "codelets/cuda/product_grid.hpp"
#include "codelets/cuda/sums.hpp"

namespace arenite::codelets::conv2d {
inline namespace ARENITE_GRIDS {

/// One of a convolution's three directions.
struct TiledConvolution : cuda::ProductGrid {
  Sizes sizes;

  TiledConvolution(const Sizes& of_sizes, std::int64_t rows, std::int64_t all_columns,
                   std::int64_t all_depth, bool fours, bool fours_of_results, bool in_parts)
      : ProductGrid(rows, all_columns, all_depth, fours, fours_of_results, in_parts),
        sizes(of_sizes) {}

  std::int32_t narrow_depth() const { return static_cast<std::int32_t>(depth); }
};

template <bool pooled>
struct TiledForward : TiledConvolution {
  bool biased, relu;

  TiledForward(const Sizes& s, bool with_bias, bool with_relu)
      : TiledConvolution(s, s.convolved, s.outputs(), s.weight_rows(),
                         s.channels() % 4 == 0 && s.outputs() % 4 == 0, s.outputs() % 4 == 0,
                         false),
        biased(with_bias),
        relu(with_relu) {}

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
  bool rectified;  ///< a ReLU before the layer has made the last operand

  TiledGradInput(const Sizes& s, bool behind_relu)
      : TiledConvolution(s, s.pixels, s.channels(), std::int64_t{s.taps} * s.outputs(),
                         s.outputs() % 4 == 0, s.channels() % 4 == 0, false),
        rectified(behind_relu) {}

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
  explicit TiledGradWeight(const Sizes& s)
      : TiledConvolution(s, s.weight_rows(), s.outputs(), s.convolved,
                         s.channels() % 4 == 0 && s.outputs() % 4 == 0, s.outputs() % 4 == 0,
                         true) {}

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
