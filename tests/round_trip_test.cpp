// Graphs of all operators of the framework, printed, read back and printed again: equal, and the
// same text. Programs as they are run: with kernels, workspaces, shared bytes, views, buffers and
// gradients; networks with blocks in blocks; sizes that only a run knows; odd names.
#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <set>

#include "src/base/testing.hpp"
#include "src/graph/versions.hpp"
#include "tests/oracle/random_program.hpp"
#include "tests/random_block_network.hpp"

namespace arenite {
namespace {

using graph::Graph;
using graph::OpId;
using graph::ValueId;

/// What the graphs of a test had in them.
struct Seen {
  std::set<std::string> operators;
  int graphs = 0, several_results = 0, regions = 0, buffers = 0, named_sizes = 0, merged = 0,
      workspaces = 0;

  void count(const Graph& graph) {
    ++graphs;
    for (std::size_t i = 0; i < graph.op_count(); ++i) {
      const graph::Op& op = graph[OpId(i)];
      operators.emplace(op.name());
      several_results += op.results.size() > 1 ? 1 : 0;
      regions += op.regions.empty() ? 0 : 1;
      workspaces += op.workspace ? 1 : 0;
    }
    for (std::size_t i = 0; i < graph.value_count(); ++i)
      named_sizes += graph[ValueId(i)].size_names.empty() ? 0 : 1;
    for (std::size_t i = 0; i < graph.storage_count(); ++i) {
      const graph::Storage& storage = graph.storage(graph::StorageId(i));
      buffers += storage.cls == graph::StorageClass::buffer ? 1 : 0;
      merged += storage.merged_into ? 1 : 0;
    }
  }
};

/// Programs may replace one version of a buffer twice, which scripts may not.
bool replaces_once(const Graph& graph) {
  try {
    const graph::Versions versions(graph);
  } catch (const Error&) {
    return false;
  }
  return true;
}

void round_trip(const Graph& graph, Seen& seen) {
  const std::string once = graph::print(graph);
  if (!replaces_once(graph)) {
    EXPECT_THROW(graph::parse(once, operators()), Error) << once;
    return;
  }
  seen.count(graph);
  Graph back;
  ASSERT_NO_THROW(back = graph::parse(once, operators())) << once;
  std::string why;
  ASSERT_TRUE(graph::equal(graph, back, &why)) << why << "\n" << once;
  ASSERT_EQ(graph::print(back), once);
}

/// The same graph under names that must be quoted, and with sizes that only a run knows.
Graph with_odd_names(Graph graph, oracle::Draw draw) {
  static const std::vector<std::string> names{"a b",         "x#1", "\"quoted\"", "tab\there",
                                              "line\nbreak", "ünï", "$3",         "result"};
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    graph::Value& value = graph[ValueId(i)];
    if (draw.chance(20)) value.name = draw.of(names) + (value.producer ? "" : std::to_string(i));
    if (value.is_declared() && value.shape.rank() > 0 && value.shape[0] > 0 && draw.chance(50) &&
        !graph::is_persistent(graph.root_storage(ValueId(i)).cls)) {
      value.size_names.resize(static_cast<std::size_t>(value.shape.rank()));
      value.size_names[0] = "n" + std::to_string(value.shape[0]);
    }
  }
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    if (draw.chance(10)) graph[OpId(i)].where = draw.of(names);
  }
  return graph;
}

TEST(RoundTrip, ProgramsOfAllOperators) {
  Seen seen;
  for (std::uint32_t number = 0; number < 400 && !HasFatalFailure(); ++number) {
    for (const runtime::ProgramSpec& spec : oracle::random_program(number).programs) {
      round_trip(spec.graph, seen);
      round_trip(with_odd_names(spec.graph, oracle::Draw(number)), seen);
    }
  }
  EXPECT_GE(seen.graphs, 1000);
  EXPECT_GT(seen.several_results, 1000);
  EXPECT_GT(seen.buffers, 500);
  EXPECT_GT(seen.named_sizes, 200);
  EXPECT_GT(seen.merged, 1000);
  EXPECT_GT(seen.workspaces, 100);
  for (const std::string& name : operators().names()) {
    // Those that differ by mode are gone from programs: see BothModes below.
    const bool has_blocks = !operators().at(name)->regions.empty() || operators().at(name)->in_mode;
    EXPECT_TRUE(has_blocks || seen.operators.contains(name)) << "no graph with " << name;
  }
}

TEST(RoundTrip, NetworksWithBlocks) {
  Seen seen;
  for (unsigned seed = 0; seed < testing::fewer_where_slow(150U) && !HasFatalFailure(); ++seed) {
    const testing::RandomNetwork network(seed);
    round_trip(network.forward, seen);
    round_trip(network.graph, seen);
  }
  EXPECT_GT(seen.regions, 300);
  EXPECT_TRUE(seen.operators.contains("if") && seen.operators.contains("loop"));
}

TEST(RoundTrip, BothModes) {
  Seen seen;
  round_trip(graph::parse(R"(
    $1 = InputTensor(x, float32, [8, 3]);
    $2 = BufferTensor(mean, float32, [3]);
    $3 = BufferTensor(variance, float32, [3]);
    $4 = ParameterTensor(weight, float32, [3]);
    $5, $6, $7 = batch_norm($1, $2, $3, _, $4, momentum=0.3);
    $8 = dropout($5, 0.25, seed=7);
    result = $8, $6;)",
                          operators()),
             seen);
  EXPECT_TRUE(seen.operators.contains("batch_norm") && seen.operators.contains("dropout"));
}

/// Versions of buffers and of views of them, as models keep them.
TEST(RoundTrip, BuffersThatModelsKeep) {
  Seen seen;
  for (std::int64_t rows = 1; rows < 40 && !HasFatalFailure(); ++rows) {
    const std::string all = std::to_string(2 * rows), half = std::to_string(rows);
    Graph graph = graph::parse(
        "$1 = BufferTensor(float32, [" + all + ", 3]); $2 = SliceNode($1, " + half + ", " + all +
            "); $3 = InputTensor(x, float32, [1, 3]); $4 = InputTensor(at, int64, [1]);"
            "$5 = ReplaceSliceNode($2, $3, $4); $6 = ReLUNode($1); $7 = SumNode($6, $6);"
            "result = $5, $7, $1;",
        operators());
    round_trip(graph, seen);
    EXPECT_EQ(graph::keep_state(graph, operators()), 1);
    round_trip(graph, seen);
    graph::in_place(graph);
    round_trip(graph, seen);
  }
  EXPECT_TRUE(seen.operators.contains("replace_slice"));
}

}  // namespace
}  // namespace arenite
