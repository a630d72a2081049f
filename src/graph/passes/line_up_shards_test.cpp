#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace arenite::graph {
namespace {

/// A convolution and a dense layer, which are trained, and a running sum that is an output.
constexpr const char* script = R"(
    $1 = InputTensor(x, float32, [13, 6, 6, 3]);
    $2 = InputTensor(y, int32, [13]);
    $3 = ParameterTensor(w, float32, [3, 3, 3, 4]);
    $4 = ParameterTensor(v, float32, [64, 5]);
    $5 = BufferTensor(statistics, float64, [2]);
    $6 = conv2d($1, $3) @where("conv");
    $7 = flatten($6);
    $8 = dense($7, $4) @where("dense");
    $9, $10, $11 = softmax_cross_entropy($8, $2, divisor=13);
    $12 = accumulate($5, $10);
    train($9, optimizer=sgd, learning_rate=0.1, momentum=0.9, parameters=[$3, $4]);
    result = $9, $12;)";

struct LinedUp {
  Graph graph;
  BatchCut cut;
};

/// In shards, of which so many may be under way; none: as they come.
LinedUp lined_up(const BatchCut& cut, std::optional<int> at_once) {
  BatchGraph split = *split_batch(parse(script, operators()), operators(), cut);
  EXPECT_EQ(split.one_shard, "");
  add_training(split.graph, operators(), split.losses, split.cut);
  if (at_once) {
    EXPECT_EQ(line_up_shards(split.graph, operators(), split.cut, *at_once),
              split.cut.shards - std::min(*at_once, split.cut.shards));
  }
  return {std::move(split.graph), split.cut};
}

std::map<std::string, int> counted_ops(const Graph& graph) {
  std::map<std::string, int> counts;
  for (OpId id : graph[Graph::body].ops) ++counts[std::string(graph[id].name())];
  return counts;
}

/// Where shards were summed in several lanes' places.
int sums_in_lanes(const Graph& graph) {
  return static_cast<int>(std::ranges::count_if(graph[Graph::body].ops, [&](OpId id) {
    return graph[id].name() == "sum" && graph[id].lane != Op::shared_lane;
  }));
}

TEST(LanesOfABatch, OfShardsAreCutOneByOne) {
  const auto text = [](std::int64_t batch, const BatchCut& cut) {
    std::string all;
    for (const LaneRows& share : lane_rows(batch, cut)) {
      all += std::to_string(share.lane) + ":" + std::to_string(share.begin) + "+" +
             std::to_string(share.count) + " ";
    }
    return all;
  };
  EXPECT_EQ(text(13, {.shards = 4}), "0:0+4 1:4+3 2:7+3 3:10+3 ");
  EXPECT_EQ(text(13, {.shards = 2, .lanes = 3}), "0:0+3 1:3+2 2:5+2 3:7+2 4:9+2 5:11+2 ");
  EXPECT_EQ(text(5, {.shards = 3, .lanes = 2}), "0:0+1 1:1+1 2:2+1 3:3+1 4:4+1 ");
  EXPECT_EQ(text(3, {.shards = 2, .lanes = 2}), "0:0+1 1:1+1 2:2+1 ");
  EXPECT_EQ(text(2, {.shards = 8}), "0:0+1 1:1+1 ");
}

TEST(LineUpShards, EachGoesForwardAndBackwardBeforeTheNext) {
  const auto [graph, cut] = lined_up({.shards = 4}, 1);
  EXPECT_EQ(lane_rows(13, cut).size(), 4u);
  int turns = 0;
  std::optional<Phase> last;
  for (OpId id : graph[Graph::body].ops) {
    const Op& op = graph[id];
    EXPECT_LE(op.lane, 0);
    if (op.lane != 0) continue;
    if (last == Phase::backward && op.phase == Phase::forward) ++turns;
    last = op.phase;
  }
  EXPECT_EQ(turns, 3);
}

TEST(LineUpShards, AddsNeighboursAsSoonAsTheyAreThere) {
  // Two gradients and the statistics; the loss is an output. Each in a tree of three sums.
  for (const auto& [at_once, in_lanes] : {std::pair{1, 12}, {2, 8}, {3, 4}, {4, 0}, {9, 0}}) {
    const Graph graph = lined_up({.shards = 4}, at_once).graph;
    EXPECT_EQ(counted_ops(graph)["sum"], 12) << at_once;
    EXPECT_EQ(sums_in_lanes(graph), in_lanes) << at_once;
    int most = 0;
    for (OpId id : graph[Graph::body].ops) {
      most = std::max(most, graph[id].lane + 1);
      if (graph[id].name() == "sum") {
        EXPECT_EQ(graph[id].operands.size(), 2u);
      }
    }
    EXPECT_EQ(most, std::min(at_once, 4));
  }
  // In chains of two, two and one.
  const Graph five = lined_up({.shards = 5}, 3).graph;
  EXPECT_EQ(counted_ops(five)["sum"], 4 * 4);
  EXPECT_EQ(sums_in_lanes(five), 4);  // shards 0 and 1 are no neighbours, 2 and 3 neither: 3 and 4
}

TEST(LineUpShards, KeepLanesWithinAShard) {
  const Graph as_it_comes = lined_up({.shards = 3, .lanes = 2}, std::nullopt).graph;
  auto counts = counted_ops(as_it_comes);
  EXPECT_EQ(counts["sum"], 4 * (3 + 1));  // of each shard's lanes, then of the shards
  EXPECT_EQ(sums_in_lanes(as_it_comes), 4 * 3);
  const Graph graph = lined_up({.shards = 3, .lanes = 2}, 2).graph;
  EXPECT_EQ(counted_ops(graph)["sum"], 4 * (3 + 2));
  for (OpId id : graph[Graph::body].ops) EXPECT_LT(graph[id].lane, 4);
}

TEST(LineUpShards, NewVersionsTakeTheOldOnesBytes) {
  for (const int at_once : {1, 2, 4}) {
    Graph graph = lined_up({.shards = 4}, at_once).graph;
    keep_state(graph, operators());
    select(graph, *runtime::kernel_selector(kernels()));
    in_place(graph);
    EXPECT_TRUE(inserted_copies(graph).empty()) << at_once;
  }
}

std::string one_shard_of(const std::string& text, const BatchCut& cut = {.shards = 4}) {
  const auto split = split_batch(parse(text, operators()), operators(), cut);
  EXPECT_TRUE(split);
  EXPECT_EQ(split->one_shard.empty() ? cut : BatchCut{.lanes = cut.shards * cut.lanes}, split->cut);
  return split->one_shard;
}

TEST(LineUpShards, AreOneWhereTheyWouldWaitForEachOther) {
  EXPECT_EQ(one_shard_of(R"(
      $1 = InputTensor(x, float32, [8, 5]);
      $2 = relu($1) @where("first");
      $3 = sum_to($2, [1, 5]) @where("total");
      $4 = add($2, $3) @where("shifted");
      result = $4;)"),
            "add 'shifted' waits for all shards' sum_to 'total'");
  EXPECT_EQ(one_shard_of(R"(
      $1 = InputTensor(x, float32, [8, 5]);
      $2 = relu($1) @where("first");
      $3 = sum_to($2, [1, 5]) @where("total");
      $4 = relu($3) @where("positive");
      $5 = add($2, $4) @where("shifted");
      result = $5;)"),
            "add 'shifted' waits for all shards' relu 'positive'");
  EXPECT_EQ(one_shard_of(R"(
      $1 = InputTensor(x, float32, [8, 5]);
      $2 = ParameterTensor(w, float32, [1, 5]);
      $3 = mul($1, $2);
      $4 = sum_to($3, [1, 1]);
      $5 @name("loss") = mul($4, $4);
      train($5, optimizer=sgd, learning_rate=0.1, parameters=[$2]);
      result = _;)"),
            "the loss 'loss' is no sum over samples");
  EXPECT_EQ(one_shard_of(R"(
      $1 = InputTensor(x, float32, [8, 5]);
      $2 = relu($1);
      $3 = sum_to($2, [1, 5]);
      $4 = relu($3);
      result = $2, $4;)"),
            "");
}

/// Each shard has its part of what is linear in sums over samples, and of nothing else.
TEST(LineUpShards, HaveLossesThatAreLinearInSums) {
  const auto with_loss = [](const std::string& loss) {
    return one_shard_of(R"(
      $1 = InputTensor(x, float32, [8, 5000]);
      $2 = ParameterTensor(w, float32, [1, 5000]);
      $3 = mul($1, $2);
      $4 = sum_to($3, [1, 1]);
      $5 = mul($3, $3);
      $6 = sum_to($5, [1, 1]);
      $7 = mul($2, $2);
      $8 = sum_to($7, [1, 1]);
      $9 = full(shape=[1, 1], value=0.125);
      )" + loss + R"(
      train($12, optimizer=sgd, learning_rate=0.1, parameters=[$2]);
      result = _;)");
  };
  const std::string refused = "the loss 'loss' is no sum over samples";
  EXPECT_EQ(with_loss("$12 = mul($4, $9);"), "");
  EXPECT_EQ(with_loss("$10 = mul($9, $4); $11 = reshape($6, [1, 1]); $12 = add($11, $10);"), "");
  EXPECT_EQ(with_loss("$12 = map($4, $6, $8) { ($1 - 2 * $2) / (1 + $3) };"), "");
  EXPECT_EQ(with_loss("$11 = sum_to($3, [1, 5000]); $12 = sum_to($11, [1, 1]);"), "");
  EXPECT_EQ(with_loss("$12 = map($4, $6, $9) { fma($2, $3, $1) };"), "");
  EXPECT_EQ(
      with_loss("$11 = sum_to($5, [1, 5000]); $12 = reduce($11, axes=[0, 1], keep=1) { max($1) };")
          .substr(0, 8),
      "the loss");
  EXPECT_EQ(with_loss("$12 @name(\"loss\") = map($4, $9) { fma($1, $2, $2) };"), refused);
  EXPECT_EQ(with_loss("$12 @name(\"loss\") = add($4, $8);"), refused);
  EXPECT_EQ(with_loss("$12 @name(\"loss\") = add($4, $9);"), refused);
  EXPECT_EQ(with_loss("$12 @name(\"loss\") = mul($4, $6);"), refused);
  EXPECT_EQ(with_loss("$12 @name(\"loss\") = map($4, $8) { $2 / $1 };"), refused);
  EXPECT_EQ(with_loss("$12 @name(\"loss\") = map($4) { sqrt($1) };"), refused);
}

}  // namespace
}  // namespace arenite::graph
