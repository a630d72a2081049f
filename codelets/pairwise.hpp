// y[i] = a[i] ∘ b[i], where b is repeated along the axes where its size is 1: what add and mul
// share.
#pragma once

#include "codelets/broadcast.hpp"
#include "codelets/share.hpp"

#include <string>
#include <utility>

namespace arenite::codelets {

inline Results infer_pairwise(const OpView& op) {
  expect_real(op, 0);
  expect_type(op, 1, op.operand(0).type);
  const graph::Value &a = op.operand(0), &b = op.operand(1);
  if (!fills(b.shape.dims(), a.shape.dims())) {
    fail({.found = operand_text(op, 1) + " of shape " + to_string(b.shape),
          .expected = to_string(a.shape) + ", the shape of 'a', where any size may be 1"});
  }
  return {{a.type, a.shape}};
}

/// All of a definition but its gradient.
inline graph::OperatorDefinition pairwise(std::string name) {
  return {.name = std::move(name),
          .operands = {{"a"}, {"b"}},
          .results = {"y"},
          .infer = infer_pairwise,
          .in_place = {{0, 0}, {0, 1}},
          .cost = cost_each<1>,
          .of_share = rows_of_pair<>};
}

}  // namespace arenite::codelets
