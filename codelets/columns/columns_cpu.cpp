#include "codelets/columns/columns.hpp"
#include "codelets/prepare.hpp"

#include <algorithm>

namespace arenite::codelets {
namespace {

using graph::OpView;
using runtime::KernelCall;

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

State stack_state(const OpView& op) {
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

State join_state(const OpView& op) {
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

void run(const KernelCall& call) {
  const auto& state = *static_cast<const State*>(call.state);
  float* y = call.out<float>(0);
  for (std::size_t i = 0; i < state.pieces.size(); ++i) {
    const Piece& piece = state.pieces[i];
    if (piece.columns == 0) continue;  // of however many rows
    const float* x = call.in<float>(i);
    for (std::int64_t row = 0; row < piece.rows; ++row) {
      std::copy_n(x + piece.from + row * piece.stride, piece.columns,
                  y + piece.to + row * state.width);
    }
  }
}

}  // namespace

std::vector<runtime::Kernel> stack_columns_kernels() {
  return {{.name = "plain", .prepare = prepare<stack_state, run>}};
}

std::vector<runtime::Kernel> join_columns_kernels() {
  return {{.name = "plain", .prepare = prepare<join_state, run>}};
}

}  // namespace arenite::codelets
