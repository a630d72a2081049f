// What `of_share` of several operators is: which ops keep the samples of a batch apart.
#pragma once

#include "codelets/words.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace arenite::codelets {

/// Every result is the share's rows of the whole one.
inline graph::OfShare all_rows(const OpView& op, graph::Attributes attributes) {
  return {.results = std::vector(op.op().results.size(), graph::OfShare::Result::rows),
          .attributes = std::move(attributes)};
}

/// Whether the op has no other operands that are split than the first, of which the share has rows.
inline bool only_first_is_split(const graph::Share& share) {
  return !share.split.empty() && share.has_rows(0) &&
         std::all_of(share.split.begin() + 1, share.split.end(),
                     [](graph::Split split) { return split == graph::Split::none; });
}

/// Of an op whose rows are made of the same row of operand 0, and of whole operands. A value of a
/// rank below `least_rank` has no rows that the op would keep apart.
template <int least_rank = 1>
std::optional<graph::OfShare> rows_of_first(const OpView& op, const graph::Share& share) {
  if (!only_first_is_split(share) || op.operand(0).shape.rank() < least_rank) return std::nullopt;
  return all_rows(op, op.attributes());
}

/// The same of an op with an operand 1 of rows too, or one that is repeated for all of them.
template <int least_rank = 1>
std::optional<graph::OfShare> rows_of_pair(const OpView& op, const graph::Share& share) {
  if (!share.has_rows(0) || op.operand(0).shape.rank() < least_rank) return std::nullopt;
  const bool repeated = share.is_whole(1) && op.operand(1).shape[0] == 1;
  if (!share.has_rows(1) && !repeated) return std::nullopt;
  return all_rows(op, op.attributes());
}

/// Of an op all of whose operands have the rows.
inline std::optional<graph::OfShare> rows_of_all(const OpView& op, const graph::Share& share) {
  const auto rows = std::ranges::count(share.split, graph::Split::rows);
  if (rows == 0 || rows != std::ssize(share.split)) return std::nullopt;
  return all_rows(op, op.attributes());
}

/// The op's attributes, for a result whose shape one of them says, with the share's rows.
inline graph::Attributes with_rows(const OpView& op, const std::string& shape,
                                   const graph::Share& share) {
  graph::Attributes attributes = op.attributes();
  std::vector<std::int64_t> dims = attributes.integers(shape);
  dims.at(0) = share.count;
  attributes.set(shape, std::move(dims));
  return attributes;
}

}  // namespace arenite::codelets
