// Copies between the layouts that operators and libraries know, as grids: the same functions run as
// loops in tests.
#pragma once

#include "codelets/bfloat16.hpp"
#include "codelets/cuda/grid.hpp"

namespace arenite::codelets::cuda {

/// Which element of a rows × columns matrix a thread of a transposition moves. Eight threads side
/// by side read 32 bytes that lie side by side, and so do the eight that write: whole sectors of
/// the memory either way, without shared memory.
struct Transposition {
  static constexpr std::int64_t tile = 8;

  std::int64_t rows = 0, columns = 0;

  ARENITE_GPU std::int64_t tiles_down() const { return (rows + tile - 1) / tile; }
  ARENITE_GPU std::int64_t tiles_across() const { return (columns + tile - 1) / tile; }
  /// Threads, of which those beyond the matrix have nothing to do.
  ARENITE_GPU std::int64_t count() const { return tiles_down() * tiles_across() * tile * tile; }

  struct At {
    std::int64_t row, column;
  };
  ARENITE_GPU At at(std::int64_t i) const {
    const std::int64_t in_tile = i % (tile * tile), which = i / (tile * tile);
    return {which / tiles_across() * tile + in_tile / tile,
            which % tiles_across() * tile + in_tile % tile};
  }
};

/// What a copy makes of each element.
struct Unchanged {
  ARENITE_GPU float operator()(float value) const { return value; }
};
struct RoundedToBfloat16 {
  ARENITE_GPU float operator()(float value) const { return to_bfloat16(value); }
};
/// The upper half of a float, which is all of a bfloat16.
struct Bfloat16 {
  ARENITE_GPU std::uint16_t operator()(float value) const {
    const float rounded = to_bfloat16(value);
#ifdef __CUDA_ARCH__
    return static_cast<std::uint16_t>(__float_as_uint(rounded) >> 16);
#else
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded) >> 16);
#endif
  }
};

/// to [rows, columns], of what `Change` gives, = from, whose rows lie `stride` elements apart.
template <class Change, class T>
static void copy_rows(const KernelCall& call, std::int64_t rows, std::int64_t columns,
                      std::int64_t stride, const float* from, T* to) {
  for_each(call, rows * columns, [=] ARENITE_THREAD(std::int64_t i) {
    to[i] = Change()(from[i / columns * stride + i % columns]);
  });
}

/// to [columns, rows] = the transpose of from [rows, columns].
template <class Change>
static void transpose(const KernelCall& call, std::int64_t rows, std::int64_t columns,
                      const float* from, float* to) {
  const Transposition t{rows, columns};
  for_each(call, t.count(), [=] ARENITE_THREAD(std::int64_t i) {
    const Transposition::At at = t.at(i);
    if (at.row < t.rows && at.column < t.columns)
      to[at.column * t.rows + at.row] = Change()(from[at.row * t.columns + at.column]);
  });
}

}  // namespace arenite::codelets::cuda
