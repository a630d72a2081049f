// What somebody needs of a graph, for `tidy` and entries.
#pragma once

#include <arenite/graph/operator.hpp>

#include <vector>

#include "src/graph/nesting.hpp"

namespace arenite::graph {

/// Ops and values that an output, the loss, what outlives a step or a status depends on.
class Needs {
 public:
  enum class Reports { needed, ignored };

  /// `kept`, by op: it is needed whoever reads it; `replaced`: nobody reads it, and it reports
  /// nothing that another op does not.
  Needs(const Graph& graph, const std::vector<bool>& kept, const std::vector<bool>& replaced,
        Reports reports = Reports::needed);

  bool op(OpId id) const { return ops_.at(id.index); }
  bool value(ValueId id) const { return values_.at(id.index); }
  /// Nobody needs what the op makes, but it may report something.
  bool reports_only(OpId id) const;

  /// Takes from ops that hold blocks the results, and what is carried for them, that nobody needs.
  /// Returns how many.
  int drop_results(Graph& graph) const;

 private:
  void need(ValueId id);
  void need(OpId id);
  void need_made(ValueId id);
  void settle();

  const Graph& graph_;
  const Nesting nesting_;
  std::vector<bool> ops_, values_;
  std::vector<ValueId> pending_;
};

}  // namespace arenite::graph
