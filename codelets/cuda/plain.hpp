// Which ops have plain tensors only, as fast kernels take them.
#pragma once

#include "codelets/cuda/kernel.hpp"

#include <cstdint>
#include <limits>

namespace arenite::codelets::cuda {

/// What libraries, and our own fast kernels, take sizes in.
inline bool fits_int(std::int64_t size) noexcept {
  return size >= 0 && size <= std::numeric_limits<int>::max();
}

/// Bytes, at most 16, of which a value's address is a multiple: storages are aligned, slices of
/// them lie anywhere.
inline int alignment_of(const graph::Value& value) noexcept {
  int alignment = 16;
  while (value.offset % alignment != 0) alignment /= 2;
  return alignment;
}

/// Whether all values of an op are plain tensors with elements, of sizes that libraries take, each
/// in a place that vectors can be read from, and none of them written where another one is read.
inline bool is_plain(const graph::OpView& op, int least_alignment) {
  const auto plain = [&](const graph::Value& value) {
    if (value.layout.halo != 0 || value.shape.elements() == 0) return false;
    for (int axis = 0; axis < value.shape.rank(); ++axis) {
      if (!fits_int(value.shape[axis])) return false;
    }
    return alignment_of(value) >= least_alignment;
  };
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    if (op.has_operand(i) && !plain(op.operand(i))) return false;
  }
  for (std::size_t i = 0; i < op.op().results.size(); ++i) {
    if (!plain(op.result(i))) return false;
  }
  return disjoint(op);
}

}  // namespace arenite::codelets::cuda
