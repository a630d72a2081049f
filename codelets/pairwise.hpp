// y[i] = a[i] ∘ b[i], where b is repeated along the axes where its size is 1: what add and mul
// share.
#pragma once

#include "codelets/broadcast.hpp"
#include "codelets/simpler.hpp"

#include <optional>
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

/// Of two constants: what `combine` makes of them in their own type. Of one, as 1 · x, there is
/// nothing simpler: kernels flush what is too small to be normal.
template <class Combine>
std::optional<Simpler> simplify_pairwise(const OpView& op, Combine combine) {
  const auto a = constant(op, 0), b = constant(op, 1);
  if (!a || !b) return std::nullopt;
  const auto made = [&]<class T>(T) -> std::optional<Simpler> {
    const T x = static_cast<T>(*a), y = static_cast<T>(*b), z = combine(x, y);
    const bool exact = !flushes(x) && !flushes(y) && !flushes(z);
    return exact ? is_full(op, z) : std::nullopt;
  };
  return op.operand(0).type == DType::float64 ? made(0.0) : made(0.0F);
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
