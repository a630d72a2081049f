// Convolutions with 3×3 kernels and stride 1 by Winograd's F(2×2, 3×3) on a GPU: a 2×2 tile of
// outputs from 16 products a channel instead of 36 (Lavin and Gray, "Fast algorithms for
// convolutional neural networks", 2016).
//
//   d, g ──► 16 elements    A block's threads transform what they look up of both operands
//                │          into shared memory. For each element that is a product of
//                ▼          matrices; a warp makes two of them. Products go through shared
//   y, dw ◄── 16 elements   memory once more, to the threads that transform them back.
//
// Nothing transformed is in the GPU's memory, and nothing is launched besides. Where values are
// infinite, or large enough for sums of four to be, results near them may be so too, or NaN.
#pragma once

#include "codelets/cuda/tiles.hpp"

namespace arenite::codelets::cuda {

namespace winograd {

constexpr int elements = 16;  ///< of a transformed tile, 4×4

/// 4 pixels of x: Bᵀ d.
struct Input {
  static constexpr int in = 4, out = 4;
  ARENITE_GPU static void transform(const float (&d)[4], float (&to)[4]) {
    to[0] = d[0] - d[2];
    to[1] = d[1] + d[2];
    to[2] = d[2] - d[1];
    to[3] = d[1] - d[3];
  }
};

/// 3 taps: G g.
struct Kernel {
  static constexpr int in = 3, out = 4;
  ARENITE_GPU static void transform(const float (&g)[3], float (&to)[4]) {
    const float outer = (g[0] + g[2]) * 0.5f, middle = g[1] * 0.5f;
    to[0] = g[0];
    to[1] = outer + middle;
    to[2] = outer - middle;
    to[3] = g[2];
  }
};

/// From 4 products to 2 outputs: Aᵀ m.
struct Output {
  static constexpr int in = 4, out = 2;
  ARENITE_GPU static void transform(const float (&m)[4], float (&to)[2]) {
    to[0] = m[0] + m[1] + m[2];
    to[1] = m[1] - m[2] - m[3];
  }
};

/// 2 outputs' gradients, where taps' are wanted: A y.
struct OutputGradient {
  static constexpr int in = 2, out = 4;
  ARENITE_GPU static void transform(const float (&y)[2], float (&to)[4]) {
    to[0] = y[0];
    to[1] = y[0] + y[1];
    to[2] = y[0] - y[1];
    to[3] = -y[1];
  }
};

/// From 4 products to 3 taps' gradients: Gᵀ m.
struct KernelGradient {
  static constexpr int in = 4, out = 3;
  ARENITE_GPU static void transform(const float (&m)[4], float (&to)[3]) {
    const float sum = (m[1] + m[2]) * 0.5f;
    to[0] = m[0] + sum;
    to[1] = (m[1] - m[2]) * 0.5f;
    to[2] = sum + m[3];
  }
};

/// Along columns, then along rows, of T::in × T::in numbers to T::out × T::out; both are row-major.
template <class T>
ARENITE_GPU void both_ways(const float* from, float* to) {
  float half[T::in][T::out];  // by column
  ARENITE_UNROLL_ALL
  for (int x = 0; x < T::in; ++x) {
    float column[T::in];
    ARENITE_UNROLL_ALL
    for (int y = 0; y < T::in; ++y) column[y] = from[y * T::in + x];
    T::transform(column, half[x]);
  }
  ARENITE_UNROLL_ALL
  for (int y = 0; y < T::out; ++y) {
    float row[T::in], done[T::out];
    ARENITE_UNROLL_ALL
    for (int x = 0; x < T::in; ++x) row[x] = half[x][y];
    T::transform(row, done);
    ARENITE_UNROLL_ALL
    for (int x = 0; x < T::out; ++x) to[y * T::out + x] = done[x];
  }
}

/// What a block makes of each of the 16 products; a thread has 8 rows, and an eighth of the
/// columns, of two of them.
template <int columns_, int resident_>
struct Shape {
  static constexpr int rows = 32, columns = columns_;
  static constexpr int depth = 4;  ///< at a time
  static constexpr int threads = 256;
  static constexpr int resident = resident_;  ///< blocks that a multiprocessor has registers for
  static constexpr int thread_rows = 8, thread_columns = columns / 8;
  static_assert(thread_columns % 4 == 0);
};
using Large = Shape<64, 1>;
using Small = Shape<32, 2>;  ///< more blocks of less work

/// `extent` rows of a or columns of b, whose transforms half of a block's threads make.
///
/// `Operand` has at(i), what is to be known of row (column) i; deep(k), the same of depth k;
/// load(at, deep, to), which takes a tile's `numbers` as they lie in memory, zeros beyond the
/// operand; and transform(those, elements). `along_depth`: neighbours in memory are neighbours in
/// depth.
template <class Operand, int extent, int depth>
class Fetch {
 public:
  using Shared = Four[elements][depth][extent / 4];
  static constexpr int threads = 128, count = extent * depth / threads,
                       numbers = count * Operand::numbers;  ///< that a thread loads at a time

  ARENITE_GPU void begin(const Operand& operand, std::int32_t first, int t) {
    ARENITE_UNROLL_ALL
    for (int v = 0; v < count; ++v) at_[v] = operand.at(first + along(t, v));
  }

  ARENITE_GPU void load(const Operand& operand, std::int32_t k, int t, float* to) const {
    ARENITE_UNROLL_ALL
    for (int v = 0; v < count; ++v)
      operand.load(at_[v], operand.deep(k + deep(t, v)), to + v * Operand::numbers);
  }

  static ARENITE_GPU void store(Shared& shared, int t, const float* from) {
    ARENITE_UNROLL_ALL
    for (int v = 0; v < count; ++v) {
      float transformed[elements];
      Operand::transform(from + v * Operand::numbers, transformed);
      const int i = along(t, v), k = deep(t, v);
      ARENITE_UNROLL_ALL
      for (int e = 0; e < elements; ++e) shared[e][k][group(i / 4, k)].of[i % 4] = transformed[e];
    }
  }

  /// The sum of what is loaded; of one row (column) alone, where neighbours do not lie along the
  /// depth.
  static ARENITE_GPU float sum(const float* loaded) {
    float total = 0;
    ARENITE_UNROLL_ALL
    for (int v = 0; v < count; ++v) total += Operand::sum(loaded + v * Operand::numbers);
    return total;
  }

  /// Where group i of depth k stands: neighbours in depth store to each other's banks otherwise.
  static ARENITE_GPU int group(int i, int k) { return i ^ (2 * k); }

 private:
  static ARENITE_GPU int along(int t, int v) {
    const int i = t + v * threads;
    return Operand::along_depth ? i / depth : i % extent;
  }
  static ARENITE_GPU int deep(int t, int v) {
    const int i = t + v * threads;
    return Operand::along_depth ? i % depth : i / extent;
  }

  typename Operand::At at_[count];
};

/// The blocks' program. `Problem` has the operands `a` and `b`, the `grid`, the `depth`, and
/// store(place, row, column, products), which takes all elements of one row and column. Where it
/// `sums_b`, store_sum(place, column, sum) takes the sum of a column of b, before its transform.
template <class S, class Problem>
struct Product {
  Problem problem;

  static constexpr int threads = S::threads, resident = S::resident;
  using A = Fetch<decltype(Problem::a), S::rows, S::depth>;
  using B = Fetch<decltype(Problem::b), S::columns, S::depth>;
  static_assert(A::threads + B::threads == threads);

  struct Operands {
    typename A::Shared a;
    typename B::Shared b;
  };
  union Shared {
    Operands operands[2];
    float products[elements][S::thread_rows][S::columns];  ///< of a thread's rows
    float sums[B::threads];
  };

  ARENITE_GPU void operator()(Block<threads> block, Shared& shared) const {
    const TilePlace place = problem.grid.template place<S>(block.index, problem.depth);
    const bool sums = Problem::sums_b && place.row == 0;
    PerThread<Registers, threads> all;
    block.each([&](int t) {
      Registers& mine = all[t];
      mine.clear();
      if (t < A::threads)
        mine.a.begin(problem.a, place.row, t);
      else
        mine.b.begin(problem.b, place.column, t - A::threads);
      load(mine, place.begin, t);
      put(mine, shared.operands[0], t);
    });
    int current = 0;
    ARENITE_KEEP_ROLLED
    for (std::int32_t k = place.begin; k < place.end; k += S::depth, current ^= 1) {
      block.each([&](int t) {
        Registers& mine = all[t];
        const bool more = k + S::depth < place.end;
        if (more) load(mine, k + S::depth, t);
        multiply(mine, shared.operands[current], t);
        if (more) put(mine, shared.operands[current ^ 1], t);
      });
    }
    if constexpr (Problem::sums_b) add_sums(block, place, all, shared, sums);
    ARENITE_KEEP_ROLLED
    for (int lane_row = 0; lane_row < S::rows / S::thread_rows; ++lane_row) {
      block.each([&](int t) {
        if (t % 32 / 8 == lane_row) put_products(all[t], shared, t);
      });
      block.each([&](int t) { store(place, lane_row * S::thread_rows, shared, t); });
    }
  }

 private:
  struct Registers {
    A a;  ///< of the first half of the threads
    B b;  ///< of the second one
    float loaded[A::numbers > B::numbers ? A::numbers : B::numbers];  ///< of either
    float product[2][S::thread_rows][S::thread_columns];
    float sum;

    ARENITE_GPU void clear() {
      sum = 0;
      ARENITE_UNROLL_ALL
      for (int e = 0; e < 2; ++e) {
        ARENITE_UNROLL_ALL
        for (int i = 0; i < S::thread_rows; ++i) {
          ARENITE_UNROLL_ALL
          for (int j = 0; j < S::thread_columns; ++j) product[e][i][j] = 0;
        }
      }
    }
  };

  ARENITE_GPU void load(Registers& mine, std::int32_t k, int t) const {
    if (t < A::threads)
      mine.a.load(problem.a, k, t, mine.loaded);
    else
      mine.b.load(problem.b, k, t - A::threads, mine.loaded);
  }

  static ARENITE_GPU void put(Registers& mine, Operands& into, int t) {
    if (t < A::threads) {
      A::store(into.a, t, mine.loaded);
    } else {
      B::store(into.b, t - A::threads, mine.loaded);
      if constexpr (Problem::sums_b) mine.sum += B::sum(mine.loaded);
    }
  }

  /// A warp's threads are 4 rows of 8. Such that they read neighbouring banks, and that
  /// `Fetch::group` adds a constant to where the first group stands.
  static constexpr int row_groups = S::thread_rows / 4, column_groups = S::thread_columns / 4;
  static ARENITE_GPU int row_group(int t, int g) { return row_groups * (t % 32 / 8) + g; }
  static ARENITE_GPU int column_group(int t, int g) { return t % 8 + 8 * g; }

  static ARENITE_GPU void multiply(Registers& mine, const Operands& from, int t) {
    ARENITE_UNROLL_ALL
    for (int k = 0; k < S::depth; ++k) {
      ARENITE_UNROLL_ALL
      for (int e = 0; e < 2; ++e) {
        const int element = t / 32 * 2 + e;
        Four a[row_groups], b[column_groups];
        ARENITE_UNROLL_ALL
        for (int g = 0; g < row_groups; ++g)
          a[g] = from.a[element][k][A::group(row_group(t, g), k)];
        ARENITE_UNROLL_ALL
        for (int g = 0; g < column_groups; ++g)
          b[g] = from.b[element][k][B::group(column_group(t, g), k)];
        ARENITE_UNROLL_ALL
        for (int i = 0; i < S::thread_rows; ++i) {
          ARENITE_UNROLL_ALL
          for (int j = 0; j < S::thread_columns; ++j)
            mine.product[e][i][j] += a[i / 4].of[i % 4] * b[j / 4].of[j % 4];
        }
      }
    }
  }

  ARENITE_GPU void add_sums(Block<threads> block, const TilePlace& place,
                            PerThread<Registers, threads>& all, Shared& shared, bool sums) const {
    static_assert(!decltype(Problem::b)::along_depth, "a thread has one column's");
    if (!sums) return;
    block.each([&](int t) {
      if (t >= A::threads) shared.sums[t - A::threads] = all[t].sum;
    });
    block.each([&](int t) {
      if (t >= S::columns) return;
      float total = 0;
      ARENITE_UNROLL_ALL
      for (int i = 0; i < B::threads; i += S::columns) total += shared.sums[i + t];
      problem.store_sum(place, place.column + t, total);
    });
  }

  static ARENITE_GPU void put_products(const Registers& mine, Shared& shared, int t) {
    ARENITE_UNROLL_ALL
    for (int e = 0; e < 2; ++e) {
      ARENITE_UNROLL_ALL
      for (int i = 0; i < S::thread_rows; ++i) {
        ARENITE_UNROLL_ALL
        for (int g = 0; g < column_groups; ++g) {
          const float* const four = &mine.product[e][i][4 * g];
          float* const to = &shared.products[t / 32 * 2 + e][i][4 * column_group(t, g)];
          *reinterpret_cast<Four*>(to) = {four[0], four[1], four[2], four[3]};
        }
      }
    }
  }

  /// Rows that stand in shared memory, the first of which is the block's row `first`.
  ARENITE_GPU void store(const TilePlace& place, int first, const Shared& shared, int t) const {
    ARENITE_UNROLL_ALL
    for (int v = 0; v < S::thread_rows * S::columns / threads; ++v) {
      const int i = t + v * threads, row = i / S::columns, column = i % S::columns;
      float products[elements];
      ARENITE_UNROLL_ALL
      for (int e = 0; e < elements; ++e) products[e] = shared.products[e][row][column];
      problem.store(place, place.row + first + row, place.column + column, products);
    }
  }
};

}  // namespace winograd

}  // namespace arenite::codelets::cuda
