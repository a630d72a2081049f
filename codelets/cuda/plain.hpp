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
inline graph::Support is_plain(const OpView& op, int least_alignment) {
  const auto plain = [&](const graph::Value& value) -> graph::Support {
    if (value.layout.halo != 0) return "a halo";
    if (value.shape.elements() == 0) return "a value without elements";
    for (int axis = 0; axis < value.shape.rank(); ++axis) {
      if (!fits_int(value.shape[axis])) return "a dimension of 2^31 or more";
    }
    if (alignment_of(value) < least_alignment) return "a value at an address that is not aligned";
    return {};
  };
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    if (!op.has_operand(i)) continue;
    if (const graph::Support support = plain(op.operand(i)); !support) return support;
  }
  for (std::size_t i = 0; i < op.op().results.size(); ++i) {
    if (const graph::Support support = plain(op.result(i)); !support) return support;
  }
  return disjoint(op);
}

}  // namespace arenite::codelets::cuda
