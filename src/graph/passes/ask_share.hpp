// What passes ask of an operator's `of_share`, and how far they believe it.
#pragma once

#include <arenite/graph/operator.hpp>

#include <optional>

namespace arenite::graph {

/// What an op is on a share, if it can be had so. Throws Error on an answer that fits no op: of
/// other results, or with something left to do (`OfShare::finish`) that is not of one sum and of
/// whole operands behind the first that the op has.
std::optional<OfShare> ask_share(const Graph& graph, OpId id, const Share& share);

/// Throws Error where a result of an op on a share of `count` places, which is of shape `part`, is
/// not what `of` says of it.
void check_share(const Graph& graph, OpId id, std::size_t result, OfShare::Result of,
                 std::int64_t count, const Shape& part);

}  // namespace arenite::graph
