// Which parameters are updated how.
#pragma once

#include <arenite/graph/graph.hpp>

#include <utility>
#include <vector>

namespace arenite::graph {

class Groups {
 public:
  /// Throws Error on a rate that none may be, and on a pattern that no declared parameter has.
  /// `training` has to outlive this.
  Groups(const Graph& graph, const Training& training);

  struct Ways {
    double rate = 1;        ///< times the learning rate
    Attributes attributes;  ///< of the update
  };
  const Ways& of(const Value& parameter) const;

 private:
  const Training& training_;
  std::vector<Ways> ways_;  // of each group, then of the others
};

}  // namespace arenite::graph
