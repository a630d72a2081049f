// Products of matrices that exist nowhere in memory: a block makes a tile of a · b from what its
// threads look up.
//
//     depth ──►            A block keeps `Tile::depth` columns of a and rows of b in shared memory
//      ┌────────┐ ┌──┐     at a time, twice: while a thread multiplies the one, what it fetched for
//      │   a    │ │b │     the next stands in registers, and goes to the other.
// rows │        │ │  │     Sums run along the depth in one order, whatever the grid.
//      └────────┘ └──┘
#pragma once

#include "codelets/cuda/blocks.hpp"

#include <algorithm>
#include <cstdint>

namespace arenite::codelets::cuda {

/// Sizes of a block's tile, and of what a thread makes of it: groups of 4 rows and of 4 columns.
template <int rows_, int columns_, int depth_, int thread_rows_, int thread_columns_>
struct Tile {
  static constexpr int rows = rows_, columns = columns_, depth = depth_;
  static constexpr int thread_rows = thread_rows_, thread_columns = thread_columns_;
  static constexpr int across = columns / thread_columns;  ///< threads along a row
  static constexpr int threads = rows / thread_rows * across;
  static_assert(rows % thread_rows == 0 && thread_rows % 4 == 0);
  static_assert(columns % thread_columns == 0 && thread_columns % 4 == 0);
};
using LargeTile = Tile<128, 64, 16, 8, 8>;
using SquarishTile = Tile<96, 64, 16, 8, 8>;  ///< 3×3 taps of 32 channels are three of them
using TallTile = Tile<128, 32, 16, 8, 8>;
using SmallTile = Tile<64, 32, 16, 4, 4>;  ///< more blocks of less work
using NarrowTile = Tile<128, 8, 8, 4, 4>;  ///< few columns

/// 4 floats that are loaded, or stored, together.
struct alignas(16) Four {
  float of[4];
};

/// `vector` elements, 1 or 4, that lie side by side from `from` on; a thread's own copy.
template <int vector>
ARENITE_GPU void load_side_by_side(const float* from, float (&to)[vector]) {
  if constexpr (vector == 4) {
    const Four four = *reinterpret_cast<const Four*>(from);
    ARENITE_UNROLL_ALL
    for (int i = 0; i < 4; ++i) to[i] = four.of[i];
  } else {
    to[0] = *from;
  }
}

/// What lies beyond a matrix.
template <int vector>
ARENITE_GPU void zero(float (&values)[vector]) {
  ARENITE_UNROLL_ALL
  for (int i = 0; i < vector; ++i) values[i] = 0;
}

/// Loads those of 4 values that lie before `end`, from column `column` on; all at once where all of
/// a row's fours are aligned. The others are left.
ARENITE_GPU inline void load_four(const float* row, std::int32_t column, std::int32_t end,
                                  bool aligned, float (&values)[4]) {
  if (aligned) {
    if (column < end) load_side_by_side<4>(row + column, values);
    return;
  }
  ARENITE_UNROLL_ALL
  for (int j = 0; j < 4; ++j) {
    if (column + j < end) values[j] = row[column + j];
  }
}

/// Stores those of 4 values that lie before `end`, from column `column` on; all at once where all
/// of a row's fours are aligned.
ARENITE_GPU inline void store_four(float* row, std::int32_t column, std::int32_t end, bool aligned,
                                   const float (&values)[4]) {
  if (aligned) {
    if (column < end)
      *reinterpret_cast<Four*>(row + column) = {values[0], values[1], values[2], values[3]};
    return;
  }
  ARENITE_UNROLL_ALL
  for (int j = 0; j < 4; ++j) {
    if (column + j < end) row[column + j] = values[j];
  }
}

/// What a block's threads fetch of an operand: `extent` rows of a or columns of b, `depth` deep.
///
/// `Operand` looks up `vector` elements at once, side by side along the depth or along the rows
/// (columns), where they lie side by side in memory too. It has at(i), what is to be known of row
/// (column) i; deep(k), the same of depth k; and load(at, deep, values), which gives zeros beyond
/// the matrix.
template <class Operand, int extent, int depth, int threads>
class Fetch {
 public:
  /// Of 4 rows (columns) each; one more than there are keeps threads that store from each other's
  /// banks.
  using Shared = Four[depth][extent / 4 + 1];

  ARENITE_GPU void begin(const Operand& operand, std::int32_t first, int t) {
    ARENITE_UNROLL_ALL
    for (int v = 0; v < count; ++v) at_[v] = operand.at(first + place(t, v).along);
  }

  ARENITE_GPU void load(const Operand& operand, std::int32_t k, int t) {
    ARENITE_UNROLL_ALL
    for (int v = 0; v < count; ++v) {
      if (beyond(t, v)) continue;
      operand.load(at_[v], operand.deep(k + place(t, v).deep), values_[v]);
    }
  }

  ARENITE_GPU void store(Shared& shared, int t) const {
    ARENITE_UNROLL_ALL
    for (int v = 0; v < count; ++v) {
      if (beyond(t, v)) continue;
      const Place p = place(t, v);
      if constexpr (Operand::along_depth) {
        ARENITE_UNROLL_ALL
        for (int i = 0; i < vector; ++i)
          shared[p.deep + i][p.along / 4].of[p.along % 4] = values_[v][i];
      } else if constexpr (vector == 4) {
        shared[p.deep][p.along / 4] = {values_[v][0], values_[v][1], values_[v][2], values_[v][3]};
      } else {
        shared[p.deep][p.along / 4].of[p.along % 4] = values_[v][0];
      }
    }
  }

 private:
  static constexpr int vector = Operand::vector, vectors = extent * depth / vector,
                       count = (vectors + threads - 1) / threads;

  struct Place {
    int along, deep;  ///< which row (column), which depth
  };
  static ARENITE_GPU Place place(int t, int v) {
    const int i = t + v * threads;
    if constexpr (Operand::along_depth)
      return {i / (depth / vector), i % (depth / vector) * vector};
    return {i % (extent / vector) * vector, i / (extent / vector)};
  }
  static ARENITE_GPU bool beyond(int t, int v) {
    return vectors % threads != 0 && t + v * threads >= vectors;
  }

  typename Operand::At at_[count];
  float values_[count][vector];
};

/// A row-major matrix, as Fetch wants an operand: element (i, k), row or column i of the product at
/// depth k, lies `stride` elements from (i + 1, k), and next to (i, k + 1); with `across` the other
/// way round.
template <int vector_, bool across>
struct Matrix {
  static constexpr int vector = vector_;
  static constexpr bool along_depth = !across;
  using At = std::int32_t;  ///< what it adds to an element's place; negative beyond the matrix
  using Deep = std::int32_t;

  const float* from;
  std::int32_t count, depth, stride;

  ARENITE_GPU At at(std::int32_t i) const {
    if (i >= count) return -1;
    return across ? i : i * stride;
  }
  ARENITE_GPU Deep deep(std::int32_t k) const {
    if (k >= depth) return -1;
    return across ? k * stride : k;
  }
  ARENITE_GPU void load(At at, Deep deep, float (&values)[vector]) const {
    if (at < 0 || deep < 0) return zero(values);
    load_side_by_side(from + (at + deep), values);
  }
};

/// Which part of a product a block makes.
struct TilePlace {
  std::int32_t row, column;  ///< of the tile's first element
  std::int32_t begin, end;   ///< of the depth
  std::int32_t part;         ///< which one of the depth's parts that is
};

/// How a product is dealt out to blocks: tiles, each over a part of the depth. Tiles of one column
/// that follow each other read neighbouring rows of a.
struct TileGrid {
  std::int32_t tiles_down = 0, tiles_across = 0, parts = 1, part_depth = 0;

  TileGrid() = default;
  /// In at most `most_parts` parts of the depth: as few as make `wanted` blocks.
  template <class T>
  static TileGrid of(T, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                     std::int64_t most_parts, std::int64_t wanted) {
    const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    TileGrid grid;
    grid.tiles_down = static_cast<std::int32_t>(up(rows, T::rows));
    grid.tiles_across = static_cast<std::int32_t>(up(columns, T::columns));
    const std::int64_t tiles = std::int64_t{grid.tiles_down} * grid.tiles_across;
    const std::int64_t parts =
        std::clamp(up(wanted, tiles), std::int64_t{1}, std::max<std::int64_t>(1, most_parts));
    grid.part_depth = static_cast<std::int32_t>(up(up(depth, parts), T::depth) * T::depth);
    grid.parts = static_cast<std::int32_t>(up(depth, grid.part_depth));
    return grid;
  }

  std::int64_t blocks() const { return std::int64_t{tiles_down} * tiles_across * parts; }

  template <class T>
  ARENITE_GPU TilePlace place(std::int32_t block, std::int32_t depth) const {
    const std::int32_t down = block % tiles_down, rest = block / tiles_down,
                       across = rest % tiles_across, part = rest / tiles_across;
    const std::int32_t begin = part * part_depth;
    return {down * T::rows, across * T::columns, begin,
            depth - begin < part_depth ? depth : begin + part_depth, part};
  }
};

/// The blocks' program. `Problem` has the operands `a` and `b`, the `grid`, the `depth`, and
/// store(place, row, column, block), which takes 4 rows and columns of the product from there on,
/// some of which may lie beyond it. Where it `sums_b`, store_sums(place, column, sums) takes the
/// sums of 4 columns of b along the depth.
template <class T, class Problem>
struct TiledProduct {
  Problem problem;

  static constexpr int threads = T::threads;
  using FetchA = Fetch<decltype(Problem::a), T::rows, T::depth, threads>;
  using FetchB = Fetch<decltype(Problem::b), T::columns, T::depth, threads>;

  struct Shared {
    typename FetchA::Shared a[2];
    typename FetchB::Shared b[2];
  };

  ARENITE_GPU void operator()(Block<threads> block, Shared& shared) const {
    const TilePlace place = problem.grid.template place<T>(block.index, problem.depth);
    const bool sums = Problem::sums_b && place.row == 0;
    PerThread<Registers, threads> all;
    block.each([&](int t) {
      Registers& mine = all[t];
      mine.clear();
      mine.a.begin(problem.a, place.row, t);
      mine.b.begin(problem.b, place.column, t);
      fetch(mine, place.begin, t);
      put(mine, shared, 0, t);
    });
    int current = 0;
    for (std::int32_t k = place.begin; k < place.end; k += T::depth, current ^= 1) {
      block.each([&](int t) {
        Registers& mine = all[t];
        const bool more = k + T::depth < place.end;
        if (more) fetch(mine, k + T::depth, t);
        multiply(mine, shared, current, t, sums);
        if (more) put(mine, shared, current ^ 1, t);
      });
    }
    block.each([&](int t) { store(all[t], place, t, sums); });
  }

 private:
  struct Registers {
    FetchA a;
    FetchB b;
    float product[T::thread_rows][T::thread_columns];
    float sum[T::thread_columns];

    ARENITE_GPU void clear() {
      ARENITE_UNROLL_ALL
      for (int j = 0; j < T::thread_columns; ++j) {
        sum[j] = 0;
        ARENITE_UNROLL_ALL
        for (int i = 0; i < T::thread_rows; ++i) product[i][j] = 0;
      }
    }
  };

  ARENITE_GPU void fetch(Registers& mine, std::int32_t k, int t) const {
    mine.a.load(problem.a, k, t);
    mine.b.load(problem.b, k, t);
  }

  static ARENITE_GPU void put(const Registers& mine, Shared& shared, int into, int t) {
    mine.a.store(shared.a[into], t);
    mine.b.store(shared.b[into], t);
  }

  /// Threads' groups of 4 lie side by side, so that neighbours read neighbouring banks.
  static constexpr int row_groups = T::thread_rows / 4, column_groups = T::thread_columns / 4;
  static ARENITE_GPU int row_group(int t, int g) {
    return g * (T::rows / 4 / row_groups) + t / T::across;
  }
  static ARENITE_GPU int column_group(int t, int g) {
    return g * (T::columns / 4 / column_groups) + t % T::across;
  }

  static ARENITE_GPU void multiply(Registers& mine, const Shared& shared, int from, int t,
                                   bool sums) {
    ARENITE_UNROLL_ALL
    for (int k = 0; k < T::depth; ++k) {
      Four a[row_groups], b[column_groups];
      ARENITE_UNROLL_ALL
      for (int g = 0; g < row_groups; ++g) a[g] = shared.a[from][k][row_group(t, g)];
      ARENITE_UNROLL_ALL
      for (int g = 0; g < column_groups; ++g) b[g] = shared.b[from][k][column_group(t, g)];
      ARENITE_UNROLL_ALL
      for (int i = 0; i < T::thread_rows; ++i) {
        ARENITE_UNROLL_ALL
        for (int j = 0; j < T::thread_columns; ++j)
          mine.product[i][j] += a[i / 4].of[i % 4] * b[j / 4].of[j % 4];
      }
      if (!sums) continue;
      ARENITE_UNROLL_ALL
      for (int j = 0; j < T::thread_columns; ++j) mine.sum[j] += b[j / 4].of[j % 4];
    }
  }

  ARENITE_GPU void store(const Registers& mine, const TilePlace& place, int t, bool sums) const {
    ARENITE_UNROLL_ALL
    for (int h = 0; h < column_groups; ++h) {
      const std::int32_t column = place.column + 4 * column_group(t, h);
      ARENITE_UNROLL_ALL
      for (int g = 0; g < row_groups; ++g) {
        float block[4][4];
        ARENITE_UNROLL_ALL
        for (int i = 0; i < 4; ++i) {
          ARENITE_UNROLL_ALL
          for (int j = 0; j < 4; ++j) block[i][j] = mine.product[4 * g + i][4 * h + j];
        }
        problem.store(place, place.row + 4 * row_group(t, g), column, block);
      }
      if constexpr (Problem::sums_b) {
        if (!sums || t / T::across != 0) continue;
        float total[4];
        ARENITE_UNROLL_ALL
        for (int j = 0; j < 4; ++j) total[j] = mine.sum[4 * h + j];
        problem.store_sums(place, column, total);
      }
    }
  }
};

}  // namespace arenite::codelets::cuda
