// Which tiles a product is made of, and how they are dealt out: by its sizes alone.
#pragma once

#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/tiles.hpp"
#include "codelets/sizes.hpp"

#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace arenite::codelets::cuda {

/// Beyond, a library's kernels, which are tuned for each GPU, make good for what they need besides:
/// other layouts, copies, sweeps over results.
inline graph::Support worth_tiles(double flops) noexcept {
  if (flops > 1e9) return "more than 10^9 operations, where libraries are faster";
  return {};
}

/// Of a large GPU.
constexpr std::int64_t multiprocessors = 132;

/// The kinds of tiles, as kernels' names have them.
enum class Tiling : std::uint8_t { large, squarish, tall, small, narrow };
inline constexpr std::pair<const char*, Tiling> tilings[]{{"large", Tiling::large},
                                                          {"squarish", Tiling::squarish},
                                                          {"tall", Tiling::tall},
                                                          {"small", Tiling::small},
                                                          {"narrow", Tiling::narrow}};

class ProductGrid {
 public:
  bool by_fours = false;  ///< operands are read 4 elements at a time
  bool aligned = false;   ///< results are written so
  std::int64_t columns = 0, depth = 0;
  TileGrid grid;

  static constexpr std::int64_t wanted_blocks = 2 * multiprocessors;

  ProductGrid(std::int64_t rows, std::int64_t of_columns, std::int64_t of_depth, bool fours,
              bool fours_of_results, bool in_parts)
      : by_fours(fours),
        aligned(fours_of_results),
        columns(of_columns),
        depth(of_depth),
        rows_(rows) {
    // A part is to be worth a block's beginning and end.
    constexpr std::int64_t least_depth = 4 * SmallTile::depth, most_parts = 256, few_parts = 4;
    const std::int64_t worth = std::min(depth / least_depth, most_parts);
    // Adding a few parts would take longer than it saves.
    if (in_parts && worth >= few_parts) most_parts_ = worth;
    double least = std::numeric_limits<double>::infinity();
    Tiling best = Tiling::small;
    const auto consider = [&](Tiling which, double share) {
      if (!can_take(which)) return;
      take(which);
      const bool always = which == Tiling::small || which == Tiling::narrow;
      if (!always && 4 * grid.blocks() < 3 * wanted_blocks) return;
      with_tile([&](auto tile, auto) {
        using T = decltype(tile);
        const double computed = static_cast<double>(grid.tiles_down) * T::rows *
                                static_cast<double>(grid.tiles_across) * T::columns;
        if (computed / share >= least) return;
        least = computed / share;
        best = which;
      });
    };
    // Shares of the instructions that multiply, of a forward product compiled for capability 9.0.
    consider(Tiling::small, 0.6);
    consider(Tiling::narrow, 0.35);
    consider(Tiling::tall, 0.7);
    consider(Tiling::squarish, 0.75);
    consider(Tiling::large, 0.78);
    take(best);
  }

  /// Large tiles read fours alone.
  bool can_take(Tiling tiling) const {
    return by_fours || tiling == Tiling::small || tiling == Tiling::narrow;
  }
  /// Such tiles, whatever the sizes say.
  void take(Tiling tiling) {
    tiling_ = tiling;
    with_tile([&](auto tile, auto) {
      grid = TileGrid::of(tile, rows_, columns, depth, most_parts_, wanted_blocks);
    });
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
  void run(const KernelCall& call, T, const Problem& problem) const {
    for_each_block(call, grid.blocks(), TiledProduct<T, Problem>{problem});
  }

 private:
  std::int64_t rows_, most_parts_ = 1;
  Tiling tiling_ = Tiling::small;
};

/// What the kernel's state `product`, or the state itself, is dealt out by.
template <class State>
ProductGrid& grid_of(State& state) {
  if constexpr (std::is_base_of_v<ProductGrid, State>) {
    return state;
  } else {
    return state.product;
  }
}

/// "tiled.large" and so on, beside "tiled": the same on tiles of one kind, for those who measure.
/// `build` makes the state of an op that `fits` takes, and `run` runs it.
template <auto build, auto run>
void add_tilings(runtime::KernelTable& kernels, const std::string& op,
                 const std::function<graph::Support(const OpView&)>& fits) {
  for (const auto& [name, tiling] : tilings) {
    const auto make = [tiling = tiling](const OpView& view) {
      auto state = build(view);
      grid_of(state).take(tiling);
      return state;
    };
    Kernel kernel = own(
        std::string("tiled.") + name,
        [=, tiling = tiling](const OpView& view) -> graph::Support {
          if (const graph::Support fit = fits(view); !fit) return fit;
          auto state = build(view);
          if (grid_of(state).can_take(tiling)) return {};
          return "rows of other than fours of floats";
        },
        [=](const OpView& view) { return prepared<run>(make(view)); });
    if constexpr (requires(const OpView& view) { build(view).workspace(); })
      kernel.workspace = [=](const OpView& view) { return make(view).workspace(); };
    kernel.only_chosen = true;
    kernels.add(op, std::move(kernel));
  }
}

}  // namespace arenite::codelets::cuda
