#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/testing.hpp"

namespace arenite::graph {
namespace {

std::vector<const Op*> ops_of(const Graph& graph, std::string_view name) {
  std::vector<const Op*> found;
  for (const OpId id : nested_ops(graph)) {
    if (graph[id].name() == name) found.push_back(&graph[id]);
  }
  return found;
}

bool has_modes(const Graph& graph) {
  return std::ranges::any_of(
      nested_ops(graph), [&](OpId id) { return static_cast<bool>(graph[id].definition->in_mode); });
}

constexpr const char* network = R"(
  $1 = InputTensor(x, float32, [8, 3]);
  $2 = BufferTensor(mean, float32, [3]);
  $3 = BufferTensor(variance, float32, [3]);
  $4, $5, $6 = batch_norm($1, $2, $3) @where("norm");
  $7 = dropout($4, 0.25) @where("first");
  $8 = dropout($7) @where("second");
  result = $8;)";

TEST(Mode, LeavesAGraphWithoutSuchOpsAlone) {
  Graph graph =
      parse("$1 = InputTensor(x, float32, [8, 3]); $2 = relu($1); result = $2;", operators());
  const std::string before = print(graph);
  const ModeApplied applied = apply_mode(graph, operators(), Mode::train);
  EXPECT_EQ(applied.ops, 0);
  EXPECT_EQ(applied.position, "");
  EXPECT_EQ(print(graph), before);
}

TEST(Mode, DropsNothingInAnEvaluationAndKeepsBuffers) {
  Graph graph = parse(network, operators());
  Remarks remarks;
  const ModeApplied applied = apply_mode(graph, operators(), Mode::evaluate, 1, &remarks);
  EXPECT_EQ(applied.ops, 3);
  EXPECT_EQ(applied.position, "");
  EXPECT_FALSE(has_modes(graph));
  EXPECT_TRUE(ops_of(graph, "assign").empty());
  EXPECT_TRUE(ops_of(graph, "reduce").empty());
  EXPECT_TRUE(ops_of(graph, "dropout_in_training").empty());
  ASSERT_EQ(remarks.done.size(), 3u);
  EXPECT_EQ(remarks.done.front().what, "batch_norm 'norm'");
  EXPECT_EQ(remarks.done.front().why, "as in an evaluation");
}

TEST(Mode, CountsSamplesAndGivesEachDropoutItsNumbers) {
  Graph graph = parse(network, operators());
  const ModeApplied applied = apply_mode(graph, operators(), Mode::train);
  EXPECT_EQ(applied.position, "position");
  EXPECT_EQ(applied.samples, 8);
  EXPECT_FALSE(has_modes(graph));
  EXPECT_EQ(ops_of(graph, "assign").size(), 2u);
  const auto drops = ops_of(graph, "dropout_in_training");
  ASSERT_EQ(drops.size(), 2u);
  EXPECT_NE(drops[0]->attributes.integer("key"), drops[1]->attributes.integer("key"));
  EXPECT_EQ(drops[0]->operands[1], graph.find("position"));
  EXPECT_EQ(drops[1]->operands[1], graph.find("position"));
  EXPECT_EQ(drops[0]->attributes.real("rate"), 0.25);
  EXPECT_EQ(drops[0]->attributes.integer("rows"), 1);
}

TEST(Mode, FindsANameForThePosition) {
  Graph graph = parse(R"(
    $1 = InputTensor(position, float32, [4, 6]);
    $2 = reshape($1, [12, 2]);
    $3 = dropout($2);
    $4 = dropout($3, 0);
    result = $4;)",
                      operators());
  const ModeApplied applied = apply_mode(graph, operators(), Mode::train);
  EXPECT_EQ(applied.position, "position'");
  EXPECT_EQ(applied.samples, 4);
  const auto drops = ops_of(graph, "dropout_in_training");
  ASSERT_EQ(drops.size(), 1u);
  EXPECT_EQ(drops[0]->attributes.integer("rows"), 3);
}

TEST(Mode, ReachesIntoBlocks) {
  Graph graph = parse(R"(
    $1 = InputTensor(x, float32, [4, 6]);
    $2 = InputTensor(n, int64, [1]);
    $3 = if($2) { $4 = dropout($1); yield $4; } else { yield $1; }
    result = $3;)",
                      operators());
  EXPECT_EQ(apply_mode(graph, operators(), Mode::train).ops, 1);
  EXPECT_FALSE(has_modes(graph));
  EXPECT_EQ(ops_of(graph, "dropout_in_training").size(), 1u);
}

TEST(Mode, SaysWhereABatchHasNoStatistics) {
  Graph graph = parse(R"(
    $1 = InputTensor(x, float32, [1, 3]);
    $2 = BufferTensor(mean, float32, [3]);
    $3 = BufferTensor(variance, float32, [3]);
    $4, $5, $6 = batch_norm($1, $2, $3) @where("norm");
    result = $4;)",
                      operators());
  EXPECT_EQ(testing::error_of([&] { apply_mode(graph, operators(), Mode::train); }),
            "batch_norm 'norm': 1 of each channel in a batch of training; expected 2 or more, of "
            "which there is a variance (hint: another batch size, so that the last batch of an "
            "epoch has more samples)");
}

}  // namespace
}  // namespace arenite::graph
