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

inline State stack(const OpView& op) {
  const auto& columns = op.attributes().integers("columns");
  State state{.pieces = {}, .width = op.result(0).shape[1]};
  std::int64_t to = 0;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    const Shape& x = op.operand(i).shape;
    state.pieces.push_back({.from = columns.empty() ? 0 : columns[0],
                            .stride = x[1],
                            .rows = x[0],
                            .columns = state.width,
                            .to = to});
    to += x[0] * state.width;
  }
  return state;
}

inline State join(const OpView& op) {
  const auto& rows = op.attributes().integers("rows");
  const Shape& y = op.result(0).shape;
  State state{.pieces = {}, .width = y[1]};
  std::int64_t to = 0;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    const std::int64_t columns = op.operand(i).shape[1];
    state.pieces.push_back({.from = rows.empty() ? 0 : rows[0] * columns,
                            .stride = columns,
                            .rows = y[0],
                            .columns = columns,
                            .to = to});
    to += columns;
  }
  return state;
}

}  // namespace arenite::codelets::columns
