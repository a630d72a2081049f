// For tests: graphs cut in lanes, or why they are not.
#pragma once

#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace arenite::graph::testing {

inline BatchGraph split(const Graph& graph, int lanes) {
  Remarks remarks;
  auto batch = split_batch(graph, operators(), {.lanes = lanes}, default_target(), &remarks);
  EXPECT_TRUE(batch) << remarks.left.front().what << ": " << remarks.left.front().why;
  return batch ? std::move(*batch) : BatchGraph{};
}

inline BatchGraph split(const std::string& script, int lanes) {
  return split(parse(script, operators()), lanes);
}

/// "batch 'x': why not", of the first batch that was tried.
inline std::string refusal(const std::string& script) {
  Remarks remarks;
  EXPECT_FALSE(split_batch(parse(script, operators()), operators(), {.lanes = 2}, default_target(),
                           &remarks));
  return remarks.left.front().what + ": " + remarks.left.front().why;
}

/// With one name for all that ops make: those of a lane are called as in the whole.
inline Graph unnamed(Graph graph) {
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    Value& value = graph[ValueId(i)];
    if (!value.producer) continue;
    value.name = "made";
    if (!is_view_op(graph, value.producer)) graph.storage(value.storage).name = "made";
  }
  return graph;
}

inline void expect_equal(const Graph& graph, const std::string& script) {
  std::string why;
  EXPECT_TRUE(equal(unnamed(graph), unnamed(parse(script, operators())), &why)) << why << "\n"
                                                                                << print(graph);
}

}  // namespace arenite::graph::testing
