// Rules that the definitions of many operators have in common.
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/graph/operator.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace arenite::graph {

/// A shape rule: one result, of the first operand's type and shape.
inline std::vector<ResultType> like_first(const OpView& op) {
  return {{op.operand(0).type, op.operand(0).shape}};
}

/// A gradient rule where operand 0 alone may have one: what `make` gives of the result's.
template <class Make>
std::function<void(GradientContext&)> gradient_of_first(Make make) {
  return [make](GradientContext& context) {
    const ValueId gradient = context.result_gradient(0);
    if (gradient && context.wants(0)) context.set(0, make(context, gradient));
  };
}

// ---- of_share ----------------------------------------------------------------------------------

/// Every result is the share's rows of the whole one.
inline OfShare all_rows(const OpView& op, Attributes attributes) {
  return {.results = std::vector(op.op().results.size(), OfShare::Result::rows),
          .attributes = std::move(attributes)};
}

/// Of an op whose rows are made of the same row of operand 0, and of whole operands. A value of a
/// rank below `least_rank` has no rows that the op would keep apart.
template <int least_rank = 1>
std::optional<OfShare> rows_of_first(const OpView& op, const Share& share) {
  if (!share.has_rows(0) || share.count_split() > 1) return std::nullopt;
  if (op.operand(0).shape.rank() < least_rank) return std::nullopt;
  return all_rows(op, op.attributes());
}

/// The same of an op with an operand 1 of rows too, or one that is repeated for all of them.
template <int least_rank = 1>
std::optional<OfShare> rows_of_pair(const OpView& op, const Share& share) {
  if (!share.has_rows(0) || op.operand(0).shape.rank() < least_rank) return std::nullopt;
  const bool repeated = share.is_whole(1) && op.has_operand(1) && op.operand(1).shape[0] == 1;
  if (!share.has_rows(1) && !repeated) return std::nullopt;
  return all_rows(op, op.attributes());
}

/// Of an op all of whose operands have the rows.
inline std::optional<OfShare> rows_of_all(const OpView& op, const Share& share) {
  const auto rows = std::ranges::count(share.split, Split::rows);
  if (rows == 0 || rows != std::ssize(share.split)) return std::nullopt;
  return all_rows(op, op.attributes());
}

/// The op's attributes, for a result whose shape one of them says, with the share's rows.
inline Attributes with_rows(const OpView& op, const std::string& shape, const Share& share) {
  Attributes attributes = op.attributes();
  std::vector<std::int64_t> dims = attributes.integers(shape);
  dims.at(0) = share.count;
  attributes.set(shape, std::move(dims));
  return attributes;
}

}  // namespace arenite::graph
