#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/graph/verify.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include "src/graph/random_graph.hpp"
#include "src/graph/random_regions.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

/// Whatever time it takes, which depends on a build's kernels.
PlannedBytes planned(Graph graph) {
  in_place(graph);
  plan::StateLayout state;
  const plan::StepPlan plan =
      plan::plan_step(graph, coarsen(graph), state, {.solve = {.strategy = "first_fit_by_size"}});
  return {
      .bytes = {plan.packings[0].peak}, .least = {plan.packings[0].lower_bound}, .microseconds = 0};
}

/// Of each order half of what the one before needed.
std::function<PlannedBytes(const Graph&)> always_better() {
  return [bytes = std::int64_t{1} << 50](const Graph&) mutable {
    bytes /= 2;
    return PlannedBytes{.bytes = {bytes}, .least = {bytes}, .microseconds = 1};
  };
}

std::vector<std::size_t> positions(const Graph& graph) {
  std::vector<std::size_t> at(graph.op_count());
  for (std::size_t r = 0; r < graph.region_count(); ++r) {
    const auto& ops = graph[RegionId(r)].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) at[ops[i].index] = i;
  }
  return at;
}

/// Three convolutions, trained in so many lanes.
Graph trained(int lanes) {
  const Graph forward = parse(R"(
      $1 = InputTensor(x, float32, [8, 16, 16, 8]); $2 = InputTensor(y, int32, [8]);
      $3 = ParameterTensor(w1, float32, [3, 3, 8, 16]);
      $4 = ParameterTensor(w2, float32, [3, 3, 16, 16]);
      $5 = ParameterTensor(w3, float32, [3, 3, 16, 1]);
      $6 = conv2d($1, $3, padding=[1, 1]) @where("one");
      $7 = conv2d($6, $4, padding=[1, 1]) @where("two");
      $8 = conv2d($7, $5, padding=[1, 1]) @where("three");
      $9 = flatten($8);
      $10, $11, $12 = softmax_cross_entropy($9, $2, divisor=8);
      train($10, optimizer=sgd, learning_rate=0.1, momentum=0.9, parameters=[$3, $4, $5]);
      result = _;)",
                              operators());
  BatchGraph split = *split_batch(forward, operators(), {.lanes = lanes});
  add_training(split.graph, operators(), split.losses);
  select(split.graph, *runtime::kernel_selector(kernels()));
  return std::move(split.graph);
}

TEST(Order, WhoReadsAnActivationLastComesBeforeWhatNeedsRoom) {
  for (const int lanes : {1, 2, 4}) {
    Graph graph = trained(lanes);
    const Graph given = graph;
    Remarks remarks;
    const int moved = order(graph, planned, {}, &remarks);
    EXPECT_EQ(remarks.done.size(), static_cast<std::size_t>(moved) + 1);
    EXPECT_LT(planned(graph).sum(), planned(given).sum() * 9 / 10);
    const std::vector<std::size_t> at = positions(graph);
    int pairs = 0;
    for (OpId weight : graph[Graph::body].ops) {
      for (OpId input : graph[Graph::body].ops) {
        if (graph[weight].name() != "conv2d_grad_weight" ||
            graph[input].name() != "conv2d_grad_input" ||
            graph[weight].where != graph[input].where || graph[weight].lane != graph[input].lane)
          continue;
        ++pairs;
        EXPECT_LT(at[weight.index], at[input.index]) << describe(graph, weight);
      }
    }
    EXPECT_EQ(pairs, 2 * lanes);
    EXPECT_EQ(order(graph, planned), 0);
  }
}

TEST(Order, StaysWhereNoneIsBetter) {
  const Graph given = trained(2);
  const auto keeps = [&](const std::function<PlannedBytes(const Graph&)>& cost) {
    Graph graph = given;
    Remarks remarks;
    EXPECT_EQ(order(graph, cost, {}, &remarks), 0);
    EXPECT_TRUE(equal(graph, given));
    EXPECT_TRUE(remarks.done.empty());
    EXPECT_EQ(remarks.left.size(), 1u);
  };
  keeps([](const Graph&) { return PlannedBytes{.bytes = {1000}, .least = {1000}}; });
  // The given order might need as few, if somebody looked for longer.
  keeps([n = 1000](const Graph&) mutable {
    n -= 100;
    return PlannedBytes{.bytes = {n}, .least = {0}};
  });
  // One block would grow.
  keeps([n = 1000](const Graph&) mutable {
    n -= 100;
    return PlannedBytes{.bytes = {n, 1000 - n / 2}, .least = {n, 1000 - n / 2}};
  });
  // Tasks would wait for each other.
  keeps([n = 1000](const Graph&) mutable {
    n -= 100;
    return PlannedBytes{.bytes = {n}, .least = {n}, .microseconds = 1e6 / n};
  });
}

TEST(Order, TakesLongerOnlyForBytes) {
  const auto moved = [](double microseconds) {
    Graph graph = trained(2);
    int asked = 0;
    return order(graph, [&](const Graph&) {
      const bool given = ++asked == 1;
      const std::int64_t bytes = given ? 1000 : 880;
      return PlannedBytes{
          .bytes = {bytes}, .least = {bytes}, .microseconds = given ? 100 : microseconds};
    });
  };
  EXPECT_GT(moved(101.9), 0);
  EXPECT_EQ(moved(102.1), 0);
}

constexpr const char* products = R"(
    $4 = matmul($1, $2); $5 = matmul($1, $3);
    $6 = matmul($4, $2, transpose_b=1); $7 = matmul($5, $3, transpose_b=1);
    $8 = add($6, $7);)";

TEST(Order, WorksInBlocksAsInTheBody) {
  const std::string declared = R"(
      $1 = InputTensor(x, float32, [16, 64]);
      $2 = ConstantTensor(v, float32, [64, 256]); $3 = ConstantTensor(w, float32, [64, 256]);)";
  const std::string body = declared + products + "result = $8;";
  const std::string block = R"(
      $9 = InputTensor(y, float32, [16, 64]);
      $2 = ConstantTensor(v, float32, [64, 256]); $3 = ConstantTensor(w, float32, [64, 256]);
      $10 = loop(_, _, $9, max_trips=3) ($11, $1) {)" +
                            std::string(products) + "yield $8; }; result = $10;";
  for (const std::string& script : {body, block}) {
    Graph graph = parse(script, operators());
    for (OpId id : nested_ops(graph)) graph[id].lane = 0;
    select(graph, *runtime::kernel_selector(kernels()));
    const std::int64_t before = planned(graph).sum();
    EXPECT_EQ(order(graph, planned), 1) << script;
    EXPECT_LE(planned(graph).sum(), before - 16 * 256 * 4 / 2) << script;
  }
}

TEST(Order, KeepsWhatDependenciesDemand) {
  int moved = 0, in_blocks = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Graph given =
        seed % 2 == 0 ? testing::RandomGraph(seed).make() : testing::RandomRegions(seed).make();
    Graph graph = given;
    Remarks remarks;
    moved += order(graph, always_better(), {}, &remarks);
    EXPECT_NO_THROW(verify(graph)) << seed;
    const std::vector<std::size_t> at = positions(graph), was = positions(given);
    for (std::size_t r = 0; r < given.region_count(); ++r) {
      const RegionId region(r);
      std::vector<OpId> ops = graph[region].ops, all = given[region].ops;
      in_blocks += r > 0 && ops != all ? 1 : 0;
      EXPECT_TRUE(std::ranges::is_permutation(ops, all)) << seed;
      const Dependencies demanded = dependencies(given, region);
      for (OpId id : all) {
        for (OpId before : demanded.of(id))
          EXPECT_LT(at[before.index], at[id.index]) << seed << ": " << describe(given, id);
      }
    }
  }
  EXPECT_GT(moved, 100);
  EXPECT_GT(in_blocks, 10);
}

TEST(Order, UpdatesNoPartOfAParameterThatIsStillRead) {
  Graph graph = parse(R"(
      $1 = InputTensor(x, float32, [64, 64]); $2 = ParameterTensor(w, float32, [128, 64]);
      $3 = slice($2, begin=0, end=64); $4 = slice($2, begin=64, end=128);
      $5 = BufferTensor(learning_rate, float32, [1]);
      $6 = matmul($1, $3) @backward;
      $7 = matmul($1, $4) @backward;
      $9 = sgd($3, $6, $5) @update;
      $8 = matmul($7, $1) @backward;
      result = $8;)",
                      operators());
  EXPECT_EQ(keep_state(graph, operators()), 1);
  EXPECT_EQ(order(graph, always_better()), 0);
  EXPECT_NO_THROW(verify(graph));
}

/// `products` twice, in a task each.
TEST(Order, OfFreeTasksChangesWithinThemAlone) {
  Graph graph = parse(R"(
      $1 = InputTensor(x, float32, [16, 64]);
      $2 = ConstantTensor(v, float32, [64, 256]); $3 = ConstantTensor(w, float32, [64, 256]);
      $4 = matmul($1, $2); $5 = matmul($1, $3);
      $6 = matmul($4, $2, transpose_b=1); $7 = matmul($5, $3, transpose_b=1);
      $8 = add($6, $7);
      $9 = matmul($8, $2); $10 = matmul($8, $3);
      $11 = matmul($9, $2, transpose_b=1); $12 = matmul($10, $3, transpose_b=1);
      $13 = add($11, $12);
      result = $13;)",
                      operators());
  const std::vector<OpId> ops = graph[Graph::body].ops;
  const auto in_tasks_of = [&](std::size_t size) {
    return [&ops, size](const Graph&) {
      Schedule schedule;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        if (i % size == 0) schedule.tasks.emplace_back();
        schedule.tasks.back().ops.push_back(ops[i]);
      }
      return schedule;
    };
  };
  int asked = 0;
  const auto none_is_asked = [&](const Graph&) {
    ++asked;
    return PlannedBytes{};
  };
  EXPECT_EQ(order(graph, none_is_asked, in_tasks_of(1)), 0);
  EXPECT_EQ(asked, 0);
  EXPECT_GT(order(graph, always_better(), in_tasks_of(5)), 0);
  const std::vector<std::size_t> at = positions(graph);
  for (std::size_t i = 0; i < ops.size(); ++i)
    EXPECT_EQ(at[ops[i].index] < 5, i < 5) << describe(graph, ops[i]);
}

TEST(Order, OfLargeGraphsIsNotPlanned) {
  std::string script = "$1 = InputTensor(x, float32, [64, 64]);";
  const int chains = 4100;
  for (int i = 2; i < 2 + chains; ++i) script += "$" + std::to_string(i) + " = relu($1);";
  for (int i = 2; i < 2 + chains; ++i)
    script += "$" + std::to_string(i + chains) + " = add($1, $" + std::to_string(i) + ");";
  Graph graph = parse(script + "result = _;", operators());
  Remarks remarks;
  EXPECT_EQ(order(graph, always_better(), {}, &remarks), 0);
  ASSERT_EQ(remarks.left.size(), 1u);
  EXPECT_EQ(remarks.left[0].why, "planning more orders would take too long");
}

}  // namespace
}  // namespace arenite::graph
