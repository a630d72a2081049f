// Broadcasting: a value is repeated along the axes where its size is 1. Ranks are equal; the other
// sizes too.
#pragma once

#include <arenite/graph/builder.hpp>

#include "codelets/rules.hpp"

namespace arenite::codelets {

/// Whether values of shape `part` can be repeated to fill the shape `whole`.
inline bool fills(std::span<const std::int64_t> part, std::span<const std::int64_t> whole) {
  bool all = part.size() == whole.size();
  for (std::size_t i = 0; all && i < part.size(); ++i) all = part[i] == whole[i] || part[i] == 1;
  return all;
}

/// The gradient of a value that was repeated to the gradient's shape.
inline ValueId summed_like(graph::Builder& builder, ValueId gradient, ValueId value) {
  const Shape& like = builder.graph()[value].shape;
  if (builder.graph()[gradient].shape == like) return gradient;
  return builder.add1("sum_to", {gradient}, {{"shape", dims_of(like)}});
}

/// The gradient of a value of which sums were taken.
inline ValueId repeated_like(graph::Builder& builder, ValueId gradient, ValueId value) {
  const Shape& like = builder.graph()[value].shape;
  if (builder.graph()[gradient].shape == like) return gradient;
  return builder.add1("broadcast_to", {gradient}, {{"shape", dims_of(like)}});
}

}  // namespace arenite::codelets
