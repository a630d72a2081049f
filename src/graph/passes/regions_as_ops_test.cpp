// Passes in graphs with blocks: what has nothing to do with them becomes what it becomes without.
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/graph/passes/rebuild.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

using Names = std::vector<std::string>;

Names op_names(const Graph& graph, RegionId region = Graph::body) {
  Names names;
  for (OpId id : graph[region].ops) names.emplace_back(graph[id].name());
  return names;
}

OpId first_named(const Graph& graph, std::string_view name, RegionId region = Graph::body) {
  for (OpId id : graph[region].ops) {
    if (graph[id].name() == name) return id;
  }
  return {};
}

/// A training step of two layers in lanes, and one op that has nothing to do with it.
class Step {
 public:
  Graph graph;
  std::vector<int> counts;  ///< what each pass returned

  /// The op, an `if`, stands in front of this op of the forward pass; nowhere when it is negative.
  Step(int lanes, int place) : place_(place) {
    const std::vector<Shape> shapes{{inputs, hidden}, {hidden}, {hidden, classes}, {classes}};
    for (std::size_t i = 0; i < parameters.size(); ++i)
      declare(parameters[i], shapes[i], StorageClass::parameter);
    declare("rate", {1}, StorageClass::buffer);
    declare("c", {1}, StorageClass::input, DType::int32);
    declare("z", {3}, StorageClass::input);
    for (int lane = 0; lane < lanes; ++lane) forward(lane, lanes * samples);
    count(fuse(graph, operators()));
    gradients();
  }

  /// Updates in groups are for GPUs, where nobody asks for those that make their gradient.
  void run_passes(double task_microseconds, bool groups) {
    TargetProfile target;
    target.handover_gigabytes = 0.01;
    target.task_microseconds = task_microseconds;
    count(fuse(graph, operators()));
    count(merge_sums(graph, operators()));
    count(split_features(graph, operators(), target));
    count(split_rows(graph, operators(), target));
    count(groups ? group_updates(graph, operators()) : 0);
    count(fuse_updates(graph, operators()));
  }

  /// All but the `if`.
  Graph rest() const {
    std::vector<OpId> order = graph[Graph::body].ops;
    std::erase_if(order, [&](OpId id) { return graph[id].name() == "if"; });
    return rebuild(graph, operators(), order,
                   [](OpId, std::vector<ValueId>&, Builder&) { return false; });
  }

 private:
  static constexpr std::int64_t samples = 4, inputs = 200, hidden = 64, classes = 10;
  const Names parameters{"w1", "b1", "w2", "b2"};

  void count(int n) { counts.push_back(n); }

  ValueId declare(const std::string& name, Shape shape, StorageClass cls,
                  DType type = DType::float32) {
    return Builder(graph, operators()).declare(name, type, std::move(shape), cls);
  }

  ValueId add(const char* op, const std::vector<ValueId>& operands, int lane,
              Attributes attributes = {}) {
    Builder builder(graph, operators());
    if (place_-- == 0) {
      const ValueId c = graph.find("c"), z = graph.find("z");
      std::vector<RegionId> blocks;
      for (int side = 0; side < 2; ++side) {
        blocks.push_back(builder.begin_region("if", {c}));
        builder.end_region({side == 0 ? builder.add1("relu", {z}) : z});
      }
      builder.add("if", {c}, {}, blocks);
    }
    builder.context = {.phase = Phase::forward, .lane = lane, .where = op};
    return builder.add(op, operands, std::move(attributes)).front();
  }

  void forward(int lane, std::int64_t batch) {
    const std::string n = std::to_string(lane);
    const ValueId x = declare("x" + n, {samples, inputs}, StorageClass::input),
                  y = declare("y" + n, {samples}, StorageClass::input, DType::int32);
    const auto p = [&](std::size_t i) { return graph.find(parameters[i]); };
    const ValueId images = add("relu", {x}, lane),
                  first = add("relu", {add("dense", {images, p(0), p(1)}, lane)}, lane),
                  second = add("dense", {first, p(2), p(3)}, lane);
    graph.outputs.push_back(add("softmax_cross_entropy", {second, y}, lane, {{"divisor", batch}}));
  }

  void gradients() {
    Builder builder(graph, operators());
    std::vector<ValueId> wrt;
    for (const std::string& name : parameters) wrt.push_back(graph.find(name));
    add_gradients(builder, graph.outputs, wrt, [&](std::size_t i, ValueId gradient) {
      const OpContext saved = builder.context;
      builder.context = {.phase = Phase::update, .lane = Op::shared_lane, .where = parameters[i]};
      builder.add("sgd", {wrt[i], gradient, graph.find("rate")});
      builder.context = saved;
    });
  }

  int place_;
};

TEST(RegionsAsOps, ChangeNothingElsewhere) {
  std::vector<int> done(7, 0);
  for (const int lanes : {1, 2, 4}) {
    for (const double task_microseconds : {0.1, 1.0, 1e6}) {
      const bool groups = task_microseconds < 1;
      Step plain(lanes, -1);
      plain.run_passes(task_microseconds, groups);
      for (std::size_t i = 0; i < done.size(); ++i) done[i] += plain.counts.at(i);
      for (int place = 0; place < 5 * lanes; ++place) {
        Step step(lanes, place);
        step.run_passes(task_microseconds, groups);
        EXPECT_EQ(step.counts, plain.counts);
        ASSERT_TRUE(first_named(step.graph, "if"));
        std::string why;
        EXPECT_TRUE(equal(step.rest(), plain.rest(), &why))
            << lanes << " lanes, in front of op " << place << ": " << why;
      }
    }
  }
  // Each pass had something to do.
  EXPECT_TRUE(std::ranges::all_of(done, [](int n) { return n > 0; }))
      << ::testing::PrintToString(done);
}

struct FuseInBlocks : ::testing::Test {
  Graph graph;

  int run(const std::string& rest) {
    graph = parse(R"($1 = InputTensor(c, int32, [1]); $2 = InputTensor(x, float32, [4, 4]);
                     $3 = ConstantTensor(w, float32, [4, 4]);
                     $4 = ConstantTensor(b, float32, [4]);)" +
                      rest,
                  operators());
    return fuse(graph, operators());
  }
  /// Of a block of the first op of this name.
  Names block(std::string_view holder, std::size_t region = 0) const {
    return op_names(graph, graph[first_named(graph, holder)].regions[region]);
  }
};

TEST_F(FuseInBlocks, TakesChainsWithinOne) {
  EXPECT_EQ(run(R"($5 = if($1) { $6 = dense($2, $3, $4); $7 = relu($6); yield $7; }
                   else { $8 = matmul($2, $3); $9 = loop(_, _, $8, max_trips=3) ($10, $11) {
                            $12 = dense($11, $3); $13 = relu($12); yield $13; } yield $9; }
                   $14 = relu($5); result = $14;)"),
            2);
  EXPECT_EQ(block("if"), Names{"dense_relu"});
  EXPECT_EQ(block("if", 1), (Names{"matmul", "loop"}));
  const RegionId otherwise = graph[first_named(graph, "if")].regions[1];
  EXPECT_EQ(op_names(graph, graph[first_named(graph, "loop", otherwise)].regions[0]),
            Names{"dense_relu"});
  EXPECT_EQ(op_names(graph), (Names{"if", "relu"}));
}

TEST_F(FuseInBlocks, LeavesWhatBlocksYield) {
  EXPECT_EQ(run(R"($5, $6 = if($1) { $7 = dense($2, $3, $4); $8 = relu($7); yield $8, $7; }
                            else { yield $2, $2; }
                   result = $5, $6;)"),
            0);
  EXPECT_EQ(block("if"), (Names{"dense", "relu"}));
}

TEST_F(FuseInBlocks, LeavesWhatDeeperBlocksRead) {
  EXPECT_EQ(run(R"($5 = dense($2, $3, $4);
                   $6 = relu($5);
                   $7 = if($1) { $8 = dense($6, $3); $9 = relu($8);
                                 $10 = if($1) { $11 = sum($9, $8); yield $11; }
                                       else { yield $5; }
                                 yield $10; }
                        else { yield $6; }
                   result = $7;)"),
            0);
  EXPECT_EQ(op_names(graph), (Names{"dense", "relu", "if"}));
  EXPECT_EQ(block("if"), (Names{"dense", "relu", "if"}));
}

TEST_F(FuseInBlocks, LeavesChainsThatCrossABlocksEdge) {
  EXPECT_EQ(run(R"($5 = dense($2, $3, $4);
                   $6 = if($1) { $7 = relu($5); yield $7; } else { $8 = dense($2, $3); yield $8; }
                   $9 = relu($6);
                   result = $9;)"),
            0);
}

TEST_F(FuseInBlocks, StandsBeforeAChangeOfTheWeight) {
  EXPECT_EQ(run(R"($5 = BufferTensor(v, float32, [4, 4]);
                   $6 = if($1) { $7 = dense($2, $5, $4); accumulate($5, $2); $8 = relu($7);
                                 yield $8; } else { yield $2; }
                   result = $6;)"),
            1);
  EXPECT_EQ(block("if"), (Names{"dense_relu", "accumulate"}));
}

/// What a block makes a new version of is there behind it.
TEST_F(FuseInBlocks, KeepsChainsFromBlocksThatChangeTheirWeight) {
  EXPECT_EQ(run(R"($5 = BufferTensor(v, float32, [4, 4]);
                   $6 = dense($2, $5, $4);
                   if($1) { accumulate($5, $2); yield; } else { yield; }
                   $7 = relu($6);
                   result = $7;)"),
            1);
  EXPECT_EQ(op_names(graph), (Names{"dense_relu", "if", "assign"}));
}

/// Gradients and updates of one weight, whose gradient or weight a block reads as well.
struct ReadInABlock : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};

  ValueId declare(const std::string& name, Shape shape, StorageClass cls = StorageClass::buffer,
                  DType type = DType::float32) {
    return builder.declare(name, type, std::move(shape), cls);
  }
  ValueId c = declare("c", {1}, StorageClass::input, DType::int32),
          w = declare("w", {5, 3}, StorageClass::parameter), rate = declare("rate", {1});

  ValueId gradient(const std::string& n) {
    builder.context = {.phase = Phase::backward, .where = "g" + n};
    return builder.add1("dense_grad_weight", {declare("x" + n, {4, 5}), declare("d" + n, {4, 3})});
  }
  void update(ValueId gradient) {
    builder.context = {.phase = Phase::update, .where = "w"};
    builder.add("sgd", {w, gradient, rate});
  }
  /// An `if` that reads the value.
  void branch(ValueId read) {
    builder.context = {.phase = Phase::backward, .where = "branch"};
    std::vector<RegionId> blocks;
    for (int side = 0; side < 2; ++side) {
      blocks.push_back(builder.begin_region("if", {c}));
      if (side == 0) builder.add1("relu", {read});
      builder.end_region({});
    }
    builder.add("if", {c}, {}, blocks);
  }
};

TEST_F(ReadInABlock, AGradientStaysForTheBlock) {
  const ValueId g = gradient("0");
  branch(g);
  update(g);
  EXPECT_EQ(fuse_updates(graph, operators()), 0);
  TargetProfile target;
  target.task_microseconds = 1e-3;
  EXPECT_EQ(split_rows(graph, operators(), target), 0);
}

TEST_F(ReadInABlock, ATermOfASumStaysForTheBlock) {
  const ValueId a = gradient("0"), b = gradient("1");
  branch(a);
  update(builder.add1("sum", {a, b}));
  EXPECT_EQ(merge_sums(graph, operators()), 0);
}

TEST_F(ReadInABlock, AGroupOfUpdatesEndsAtABlockThatReadsThem) {
  const ValueId bias = declare("b", {3}, StorageClass::parameter),
                other = declare("b2", {3}, StorageClass::parameter);
  builder.context = {.phase = Phase::update, .where = "b"};
  builder.add("sgd", {bias, declare("gb", {3}), rate});
  builder.context.where = "if";
  const RegionId yes = builder.begin_region("if", {c});
  builder.add1("relu", {bias});
  builder.end_region({});
  const RegionId no = builder.begin_region("if", {c});
  builder.end_region({});
  builder.add("if", {c}, {}, {yes, no});
  builder.add("sgd", {other, declare("gb2", {3}), rate});
  EXPECT_EQ(group_updates(graph, operators()), 0);
}

}  // namespace
}  // namespace arenite::graph
