#include <arenite/graph/dependencies.hpp>

#include <gtest/gtest.h>

#include <ctime>
#include <set>

#include "src/base/testing.hpp"
#include "src/graph/random_graph.hpp"

namespace arenite::graph {
namespace {

using Ids = std::vector<OpId>;

class DependenciesTest : public ::testing::Test {
 protected:
  DependenciesTest() : builder(graph, testing::table()) {
    x = builder.declare("x", DType::float32, {4}, StorageClass::input);
    b = builder.declare("b", DType::float32, {4}, StorageClass::buffer);
  }

  ValueId relu(ValueId of) { return builder.add1("relu", {of}); }
  ValueId rows(ValueId of, std::int64_t begin, std::int64_t end) {
    return builder.add1("slice", {of}, {{"begin", begin}, {"end", end}});
  }
  /// An op whose result is a new version of its operand 0, and lies there.
  ValueId renew(const char* op, std::vector<ValueId> operands) {
    const ValueId made = builder.add1(op, operands);
    graph[made].offset = graph[operands[0]].offset;
    graph.storage(graph[made].storage).bytes += graph[made].offset;
    graph.merge(graph[made].storage, graph.root(operands[0]));
    return made;
  }
  static Ids ids(std::initializer_list<std::size_t> all) {
    Ids list;
    for (std::size_t i : all) list.emplace_back(i);
    return list;
  }
  Ids before(std::size_t op) const {
    const Dependencies all = dependencies(graph);
    return all.predecessors.at(op);
  }

  Graph graph;
  Builder builder;
  ValueId x, b;
};

TEST_F(DependenciesTest, ReadersFollowTheWriterOnly) {
  const ValueId y = relu(x);      // 0
  const ValueId left = relu(y);   // 1
  const ValueId right = relu(y);  // 2
  builder.add("add", {left, right});
  EXPECT_EQ(before(0), Ids{});
  EXPECT_EQ(before(1), ids({0}));
  EXPECT_EQ(before(2), ids({0}));
  EXPECT_EQ(before(3), ids({1, 2}));
  EXPECT_EQ(dependencies(graph).edge_count(), 4u);
}

TEST_F(DependenciesTest, WritersFollowReaders) {
  relu(b);                                               // 0
  relu(b);                                               // 1
  const ValueId once = renew("accumulate", {b, x});      // 2: after both readers
  const ValueId twice = renew("accumulate", {once, x});  // 3: in order with the other accumulation
  const ValueId filled = renew("fill", {twice});         // 4
  relu(filled);                                          // 5
  EXPECT_EQ(before(2), ids({0, 1}));
  EXPECT_EQ(before(3), ids({2}));
  EXPECT_EQ(before(4), ids({3}));
  EXPECT_EQ(before(5), ids({4}));
}

TEST_F(DependenciesTest, ViewsAreTransparent) {
  const ValueId y = relu(x);            // 0
  const ValueId first = rows(y, 0, 2);  // 1
  const ValueId last = rows(y, 2, 4);   // 2
  relu(first);                          // 3
  renew("accumulate", {last, x});       // 4: touches other bytes than 3
  renew("accumulate", {y, x});          // 5
  EXPECT_TRUE(is_view_op(graph, OpId(1)));
  EXPECT_FALSE(is_view_op(graph, OpId(0)));
  EXPECT_TRUE(accesses(graph, OpId(1)).empty());
  EXPECT_EQ(before(1), Ids{});
  EXPECT_EQ(before(3), ids({0}));
  EXPECT_EQ(before(4), ids({0}));
  EXPECT_EQ(before(5), ids({0, 3, 4}));  // it reads what 0 wrote, too
}

TEST_F(DependenciesTest, MergedResultsMeetInTheirRoot) {
  const ValueId y = relu(x);  // 0
  relu(y);                    // 1
  const ValueId z = relu(y);  // 2, in place
  graph.merge(graph[z].storage, graph[y].storage);
  EXPECT_EQ(before(2), ids({0, 1}));
  const StorageId root = graph.root(y);
  EXPECT_EQ(accesses(graph, OpId(2)), (std::vector<Access>{{root, 0, 16, true, true}}));
}

TEST_F(DependenciesTest, ListsEachRangeOnce) {
  builder.add("add", {b, b});
  const StorageId y = graph[graph[OpId(0)].results[0]].storage;
  EXPECT_EQ(accesses(graph, OpId(0)),
            (std::vector<Access>{{graph[b].storage, 0, 16, true, false}, {y, 0, 16, false, true}}));
}

TEST_F(DependenciesTest, KnowsWorkspacesAndAbsentOperands) {
  builder.add("scale", {x, ValueId{}, b});
  const StorageId scratch =
      graph.add_storage({.name = "s", .cls = StorageClass::workspace, .bytes = 64});
  graph[OpId(0)].workspace = graph.add_value(
      {.name = "s", .type = DType::uint8, .shape = {64}, .storage = scratch, .producer = OpId(0)});
  renew("fill", {b});
  EXPECT_EQ(accesses(graph, OpId(0)).size(), 4u);
  EXPECT_EQ(accesses(graph, OpId(0)).back(), (Access{scratch, 0, 64, false, true}));
  EXPECT_EQ(accesses(graph, OpId(1)), (std::vector<Access>{{graph[b].storage, 0, 16, true, true}}));
}

TEST_F(DependenciesTest, CountsHalos) {
  const ValueId image =
      builder.declare("image", DType::float32, {1, 2, 2, 1}, StorageClass::buffer);
  graph[image].layout.halo = 1;
  graph.storage(graph[image].storage).bytes = 64;
  renew("fill", {image});
  EXPECT_EQ(accesses(graph, OpId(0)).front().bytes, 16);  // the result has no halo
  EXPECT_EQ(accesses(graph, OpId(0)).back().bytes, 64);
}

TEST_F(DependenciesTest, WhoReadsAValueOfNoBytesFollowsItsMaker) {
  const ValueId nothing = builder.declare("nothing", DType::float32, {0}, StorageClass::buffer);
  const ValueId made = renew("fill", {nothing});  // 0
  renew("fill", {made});                          // 1
  renew("fill", {nothing});                       // 2
  EXPECT_TRUE(accesses(graph, OpId(1)).empty());
  EXPECT_EQ(before(0), Ids{});
  EXPECT_EQ(before(1), ids({0}));
  EXPECT_EQ(before(2), Ids{});
}

TEST_F(DependenciesTest, RegionsCountAsWhatTheyCapture) {
  const ValueId y = relu(x);  // 0
  const RegionId region = builder.begin_region("block", {x});
  renew("accumulate", {b, y});  // 1: in the region
  builder.end_region({});
  builder.add("block", {x}, {}, {region});  // 2
  relu(b);                                  // 3
  const Dependencies all = dependencies(graph);
  EXPECT_EQ(all.ops, ids({0, 2, 3}));
  EXPECT_EQ(all.predecessors[1], Ids{});
  EXPECT_EQ(all.predecessors[2], ids({0}));
  EXPECT_EQ(all.predecessors[3], ids({2}));
}

/// Every pair of ops that meets in a byte, at least one of them writing, or in a value of none.
std::set<std::pair<std::uint32_t, std::uint32_t>> hazards(const Graph& graph) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  const auto& ops = graph[Graph::body].ops;
  for (std::size_t j = 0; j < ops.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      for (const Access& a : accesses(graph, ops[i])) {
        for (const Access& c : accesses(graph, ops[j])) {
          const bool meet = a.storage == c.storage && a.offset < c.offset + c.bytes &&
                            c.offset < a.offset + a.bytes;
          if (meet && (a.writes || c.writes)) pairs.emplace(ops[i].index, ops[j].index);
        }
      }
      for (const ValueId operand : graph[ops[j]].operands) {
        if (operand && graph[operand].producer == ops[i] &&
            graph.root_storage(operand).bytes == 0 && !is_view_op(graph, ops[i]))
          pairs.emplace(ops[i].index, ops[j].index);
      }
    }
  }
  return pairs;
}

TEST(Dependencies, OrderExactlyTheHazardsOfRandomGraphs) {
  for (unsigned seed = 0; seed < arenite::testing::fewer_where_slow(300U); ++seed) {
    const Graph graph = testing::RandomGraph(seed).make();
    const auto expected = hazards(graph);
    const Dependencies found = dependencies(graph);
    // Every edge is a hazard, and every hazard follows from edges.
    std::vector<std::set<std::uint32_t>> reached(graph.op_count());
    for (OpId op : found.ops) {
      for (OpId before : found.of(op)) {
        EXPECT_TRUE(expected.count({before.index, op.index})) << "seed " << seed;
        reached[op.index].insert(before.index);
        reached[op.index].insert(reached[before.index].begin(), reached[before.index].end());
      }
    }
    for (const auto& [before, op] : expected)
      EXPECT_TRUE(reached[op].count(before)) << "seed " << seed;
  }
}

TEST_F(DependenciesTest, TenThousandOpsAreQuick) {
  // A buffer read whole and by parts in turns, and a long chain: the shapes that could go
  // quadratic.
  const ValueId shared = builder.declare("shared", DType::float32, {64}, StorageClass::buffer);
  ValueId at = x;
  for (std::int64_t i = 0; i < 2500; ++i) {
    at = relu(at);
    relu(shared);
    relu(rows(shared, i % 64, i % 64 + 1));
  }
  renew("fill", {shared});
  const std::clock_t start = std::clock();  // whatever else the machine does
  const Dependencies all = dependencies(graph);
  EXPECT_EQ(all.predecessors.back().size(), 5000u);
  EXPECT_LT(std::clock() - start, 2 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace arenite::graph
