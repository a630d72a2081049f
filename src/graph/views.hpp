// Which results of an op are views.
#pragma once

#include <arenite/graph/operator.hpp>

#include <optional>
#include <vector>

namespace arenite::graph {

/// Where each result that is a view lies; one entry a result.
std::vector<std::optional<ViewOf>> result_views(const Graph& graph, const Op& op);

}  // namespace arenite::graph
