// What a product is made of, whatever the ranks of its operands.
#pragma once

#include "codelets/words.hpp"

#include <cstdint>

namespace arenite::codelets {

/// `batch` products of rows × inner by inner × columns.
struct MatmulSizes {
  std::int64_t batch = 1, rows = 1, inner = 0, columns = 0;
  bool transpose_a = false, transpose_b = false;

  explicit MatmulSizes(const OpView& op)
      : transpose_a(op.integer("transpose_a") == 1), transpose_b(op.integer("transpose_b") == 1) {
    const Shape &a = op.operand(0).shape, &b = op.operand(1).shape;
    if (a.rank() == 3) batch = a[0];
    inner = a.at(transpose_a ? -2 : -1);
    if (a.rank() > 1) rows = a.at(transpose_a ? -1 : -2);
    columns = b.at(transpose_b ? -2 : -1);
  }
};

}  // namespace arenite::codelets
