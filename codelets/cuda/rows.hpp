// Rows that are folded to a few numbers, of which each of their elements is then made something.
#pragma once

#include "codelets/cuda/sums.hpp"
#include "codelets/last_axis.hpp"

namespace arenite::codelets::cuda {

/// Four rows a block, each shared by the 32 threads of a warp, which read and write side by side.
struct RowsOfWarps {
  static constexpr int lanes = 32, rows = 4, threads = lanes * rows;

  LastAxis axis;

  std::int64_t blocks() const { return divide_up(axis.rows, rows); }

  /// f(r, c) of the thread's row and its first element there, of which it has each `lanes`-th.
  template <class F>
  ARENITE_GPU void at_row(std::int32_t block, int thread, F f) const {
    const std::int64_t r = std::int64_t{block} * rows + thread / lanes;
    if (r < axis.rows) f(r, std::int64_t{thread % lanes});
  }
  /// f(i, c) for each of these from c on, where element i of all is in column c.
  template <class F>
  ARENITE_GPU void each_element(std::int64_t r, std::int64_t c, F f) const {
    for (; c < axis.length; c += lanes) f(r * axis.length + c, c);
  }
};

/// With sums along rows. What is done is a Row's:
///   sums                      how many there are
///   add(i, c, sum)            adds the terms of element i, in column c, to sum[0] and on
///   scale(r, sum)             what elements of row r need to know of them
///   finish(i, c, scale)       of each element
/// An element may be written to where it was read from.
template <class Row>
struct SummedRows : RowsOfWarps {
  struct Shared {
    double of[Row::sums][rows][lanes];
  };

  Row row;

  ARENITE_GPU void operator()(Block<threads> block, Shared& shared) const {
    block.each([&](int t) {
      at_row(block.index, t, [&](std::int64_t r, std::int64_t first) {
        double mine[Row::sums]{};
        each_element(r, first, [&](std::int64_t i, std::int64_t c) { row.add(i, c, mine); });
        ARENITE_UNROLL_ALL
        for (int s = 0; s < Row::sums; ++s) shared.of[s][t / lanes][t % lanes] = mine[s];
      });
    });
    block.each([&](int t) {
      at_row(block.index, t, [&](std::int64_t r, std::int64_t first) {
        double sum[Row::sums];
        ARENITE_UNROLL_ALL
        for (int s = 0; s < Row::sums; ++s) sum[s] = sum_of<lanes>(shared.of[s][t / lanes], 1);
        const auto scale = row.scale(r, sum);
        each_element(r, first, [&](std::int64_t i, std::int64_t c) { row.finish(i, c, scale); });
      });
    });
  }
};

template <class Row>
static void sum_rows(const KernelCall& call, const LastAxis& axis, const Row& row) {
  const SummedRows<Row> all{{axis}, row};
  for_each_block(call, all.blocks(), all);
}

}  // namespace arenite::codelets::cuda
