// What `arenite plan --programs` says: the programs of a model of a script, and what they share.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/run_time_sizes.hpp>

#include "src/base/json.hpp"
#include "src/model/plans.hpp"

#include <string>
#include <vector>

namespace arenite::cli {

class ScriptPrograms {
 public:
  /// At the bounds of what the graph leaves open, and at these sizes.
  ScriptPrograms(const graph::Graph& graph, const graph::SizeValues& sizes,
                 const compile::Options& how);

  std::string text() const;
  void add_to(Json& fields) const;

 private:
  struct Row {
    std::string entry;
    graph::SizeValues sizes;
    std::int64_t step = 0, inputs = 0, outputs = 0;  // bytes, of these in a task set
    std::string_view fit;
  };

  void add(const std::string& entry, const graph::SizeValues& sizes,
           const runtime::ProgramSpec& spec, Fit fit);
  std::int64_t bytes_of(const runtime::BlockRoom& room) const;

  std::vector<Row> rows_;
  std::vector<runtime::BlockRoom> room_;
  int task_sets_ = 2;
};

}  // namespace arenite::cli
