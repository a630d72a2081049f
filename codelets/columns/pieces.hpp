// What stack_columns and join_columns copy: a rectangle of each operand.
#pragma once

#include "codelets/words.hpp"

#include <cstdint>
#include <vector>

namespace arenite::codelets::columns {

/// What is copied of one operand, and where the operand's first element goes.
struct Piece {
  std::int64_t from = 0, stride = 0;  ///< of the operand, in elements
  std::int64_t rows = 0, columns = 0;
  std::int64_t to = 0;  ///< in the result
};

struct State {
  std::vector<Piece> pieces;
  std::int64_t width = 0;  ///< of the result
};

/// `axis`: along which the operands stand one behind the other.
template <int axis>
State pieces_of(const OpView& op) {
  const auto& range = op.attributes().integers(axis == 0 ? "columns" : "rows");
  const std::int64_t begin = range.empty() ? 0 : range[0];
  const Shape& y = op.result(0).shape;
  State state{.pieces = {}, .width = y[1]};
  std::int64_t to = 0;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    const Shape& x = op.operand(i).shape;
    state.pieces.push_back({.from = axis == 0 ? begin : begin * x[1],
                            .stride = x[1],
                            .rows = axis == 0 ? x[0] : y[0],
                            .columns = axis == 0 ? y[1] : x[1],
                            .to = to});
    to += axis == 0 ? x[0] * y[1] : x[1];
  }
  return state;
}

}  // namespace arenite::codelets::columns
