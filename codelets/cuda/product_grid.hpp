// Which tiles a product is made of, and how they are dealt out: by its sizes alone.
#pragma once

#include "codelets/cuda/tiles.hpp"
#include "codelets/sizes.hpp"

#include <limits>
#include <type_traits>

namespace arenite::codelets::cuda {

/// Beyond, a library's kernels, which are tuned for each GPU, make good for what they need besides:
/// other layouts, copies, passes over results.
constexpr double most_tiled_flops = 1e9;

class ProductGrid {
 public:
  bool by_fours = false;  ///< operands are read 4 elements at a time
  bool aligned = false;   ///< results are written so
  std::int64_t columns = 0, depth = 0;
  TileGrid grid;

  /// Two for each multiprocessor of a large GPU.
  static constexpr std::int64_t wanted_blocks = 264;

  ProductGrid(std::int64_t rows, std::int64_t of_columns, std::int64_t of_depth, bool fours,
              bool fours_of_results, bool in_parts)
      : by_fours(fours), aligned(fours_of_results), columns(of_columns), depth(of_depth) {
    // A part is to be worth a block's beginning and end.
    constexpr std::int64_t least_depth = 4 * SmallTile::depth, most_parts = 256, few_parts = 4;
    const std::int64_t worth = std::min(depth / least_depth, most_parts);
    // Adding a few parts would take longer than it saves.
    const std::int64_t parts = in_parts && worth >= few_parts ? worth : 1;
    double least = std::numeric_limits<double>::infinity();
    const auto consider = [&](Tiling which, auto tile, double share, bool always) {
      using T = decltype(tile);
      const TileGrid dealt_out = TileGrid::of(tile, rows, columns, depth, parts, wanted_blocks);
      if (!always && (!by_fours || 4 * dealt_out.blocks() < 3 * wanted_blocks)) return;
      const double computed = static_cast<double>(dealt_out.tiles_down) * T::rows *
                              static_cast<double>(dealt_out.tiles_across) * T::columns;
      if (computed / share >= least) return;
      least = computed / share;
      tiling_ = which;
      grid = dealt_out;
    };
    // Shares of the instructions that multiply, of a forward product compiled for capability 9.0.
    consider(Tiling::small, SmallTile(), 0.6, true);
    consider(Tiling::narrow, NarrowTile(), 0.35, true);
    consider(Tiling::tall, TallTile(), 0.7, false);
    consider(Tiling::squarish, SquarishTile(), 0.75, false);
    consider(Tiling::large, LargeTile(), 0.78, false);
  }

  /// Calls f(tile, number of elements that are read at once).
  template <class F>
  void with_tile(F f) const {
    constexpr std::integral_constant<int, 4> four;
    constexpr std::integral_constant<int, 1> one;
    switch (tiling_) {
      case Tiling::large:
        return f(LargeTile(), four);
      case Tiling::squarish:
        return f(SquarishTile(), four);
      case Tiling::tall:
        return f(TallTile(), four);
      case Tiling::small:
        return by_fours ? f(SmallTile(), four) : f(SmallTile(), one);
      case Tiling::narrow:
        return by_fours ? f(NarrowTile(), four) : f(NarrowTile(), one);
    }
  }

  template <class T, class Problem>
  void run(const runtime::KernelCall& call, T, const Problem& problem) const {
    for_each_block(call, grid.blocks(), TiledProduct<T, Problem>{problem});
  }

 private:
  enum class Tiling : std::uint8_t { large, squarish, tall, small, narrow };

  Tiling tiling_ = Tiling::small;
};

}  // namespace arenite::codelets::cuda
