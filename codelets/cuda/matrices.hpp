// Products of row-major matrices on tiles, with what is to become of each element.
#pragma once

#include "codelets/cuda/divisor.hpp"
#include "codelets/cuda/product_grid.hpp"
#include "codelets/cuda/sums.hpp"

namespace arenite::codelets::cuda {

/// `Finish` has operator()(i, column, value), which does with element i of the product, in that
/// column, what is to be done, and four(i, column, values), the same for 4 side by side, aligned.
/// Where the depth is in parts these stand in `parts` first.
template <int vector, bool across_a, bool across_b, class Finish>
struct FinishedProduct {
  static constexpr bool sums_b = false;

  Matrix<vector, across_a> a;
  Matrix<vector, across_b> b;
  TileGrid grid;
  std::int32_t depth;
  bool aligned;  ///< rows of the product consist of fours
  float* parts;  ///< nullptr: one part
  Finish finish;

  ARENITE_GPU void store(const TilePlace& place, std::int32_t row, std::int32_t column,
                         const float (&block)[4][4]) const {
    const std::int64_t columns = b.count;
    if (column >= columns) return;
    ARENITE_UNROLL_ALL
    for (int i = 0; i < 4; ++i) {
      if (row + i >= a.count) return;
      const std::int64_t at = (row + i) * columns + column;
      if (parts != nullptr) {
        store_four(parts + place.part * columns * a.count + (row + i) * columns, column, b.count,
                   aligned, block[i]);
      } else if (aligned) {
        finish.four(at, column, block[i]);
      } else {
        ARENITE_UNROLL_ALL
        for (int j = 0; j < 4; ++j) {
          if (column + j < columns) finish(at + j, column + j, block[i][j]);
        }
      }
    }
  }
};

/// A product of row-major matrices that is dealt out: a is [rows, depth], or [depth, rows] with
/// `across_a`; b is [columns, depth], or [depth, columns] with `across_b`.
template <bool across_a, bool across_b>
struct MatrixProduct : ProductGrid {
  std::int64_t rows, a_stride, b_stride;

  /// `a_stride`: elements from a row of a, as it lies, to the next.
  MatrixProduct(std::int64_t of_rows, std::int64_t of_columns, std::int64_t of_depth,
                std::int64_t stride_of_a, bool a_by_fours, bool b_by_fours)
      : ProductGrid(of_rows, of_columns, of_depth, a_by_fours && b_by_fours, of_columns % 4 == 0,
                    true),
        rows(of_rows),
        a_stride(stride_of_a),
        b_stride(across_b ? of_columns : of_depth) {}

  std::int64_t workspace() const {
    return grid.parts == 1 ? 0 : grid.parts * rows * columns * float_bytes;
  }

  template <class Finish>
  void run(const KernelCall& call, const float* a, const float* b, const Finish& finish) const {
    float* const parts = grid.parts == 1 ? nullptr : static_cast<float*>(call.workspace);
    const auto size = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    with_tile([&](auto tile, auto vector) {
      using Problem = FinishedProduct<decltype(vector)::value, across_a, across_b, Finish>;
      ProductGrid::run(call, tile,
                       Problem{.a = {a, size(rows), size(depth), size(a_stride)},
                               .b = {b, size(columns), size(depth), size(b_stride)},
                               .grid = grid,
                               .depth = size(depth),
                               .aligned = aligned,
                               .parts = parts,
                               .finish = finish});
    });
    if (parts == nullptr) return;
    const Divisor of_columns(columns);
    add_parts(call, rows * columns, grid.parts, parts,
              [=] ARENITE_THREAD(std::int64_t i, double total) {
                finish(i, of_columns.parts(static_cast<std::int32_t>(i)).remainder,
                       static_cast<float>(total));
              });
  }
};

}  // namespace arenite::codelets::cuda
