// Means of parameters over the steps of a training.
#pragma once

#include <arenite/expr/expression.hpp>
#include <arenite/graph/graph.hpp>

namespace arenite::graph {

/// Which share of a mean stays in a step, a float32: a formula of the step's number, an int64, from
/// 1 on.
expr::Expression share_kept(const Averaging& averaging);

}  // namespace arenite::graph
