// y[i] = a[i] ∘ b[i], where b is repeated along the axes where its size is 1: what add and mul
// share.
#pragma once

#include "codelets/broadcast.hpp"
#include "codelets/image.hpp"
#include "codelets/share.hpp"

#include <string>
#include <utility>

namespace arenite::codelets {

inline std::vector<graph::ResultType> infer_pairwise(const graph::OpView& op) {
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
  graph::OperatorDefinition definition;
  definition.name = std::move(name);
  definition.operands = {{"a"}, {"b"}};
  definition.results = {"y"};
  definition.in_place = {{0, 0}};
  definition.infer = infer_pairwise;
  definition.of_share = rows_of_pair<>;
  definition.cost = [](const graph::OpView& op) {
    return graph::Cost{.flops = static_cast<double>(op.result(0).shape.elements()),
                       .bytes = bytes_touched(op)};
  };
  return definition;
}

}  // namespace arenite::codelets
