#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/spaces.hpp>
#include <arenite/graph/verify.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <set>
#include <string>

namespace arenite::graph {
namespace {

constexpr Space gpu{.device = DeviceKind::cuda, .index = 0, .memory = MemoryKind::device};
constexpr Space other{.device = DeviceKind::cuda, .index = 1, .memory = MemoryKind::device};
constexpr Space host{};

/// Devices have kernels for everything but a few operators.
struct Kernels final : KernelSelector {
  std::set<std::string, std::less<>> missing;
  mutable std::set<Space> asked;

  bool has_kernel(const OpView& op, const Space& space) const override {
    asked.insert(space);
    return missing.count(op.op().name()) == 0;
  }
  std::string choose(const OpView&) const override { return "any"; }
  Support supports(const OpView&, const std::string&) const override { return {}; }
  std::int64_t workspace(const OpView&, const std::string&) const override { return 0; }
  int wanted_halo(const OpView&, const std::string&, std::size_t) const override { return -1; }
  bool writes_halo(const OpView&, const std::string&) const override { return false; }
};

struct Place : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};
  Kernels kernels;

  ValueId declare(const std::string& name, StorageClass cls, Shape shape = {4, 3}) {
    return builder.declare(name, DType::float32, std::move(shape), cls);
  }
  int place(const Spaces& spaces = {.shared = gpu, .lanes = {}}) {
    return graph::place(graph, operators(), spaces, kernels);
  }
  const Space& space(ValueId id) const { return graph.root_storage(id).space; }
  /// The value itself, or what it was copied from.
  const Op& maker(ValueId id) const { return graph[graph[id].producer]; }
  int count(std::string_view op) const {
    int found = 0;
    for (OpId id : graph[Graph::body].ops) found += graph[id].name() == op;
    return found;
  }
};

TEST_F(Place, LeavesTheHostAlone) {
  graph.outputs = {builder.add1("relu", {declare("x", StorageClass::input)})};
  EXPECT_EQ(place({.shared = host, .lanes = {host, host}}), 0);
  EXPECT_EQ(graph[Graph::body].ops.size(), 1u);
}

TEST_F(Place, CopiesInputsAheadAndOutputsBack) {
  const auto x = declare("x", StorageClass::input), w = declare("w", StorageClass::parameter);
  const auto y = builder.add1("add", {x, w}), z = builder.add1("mul", {y, x});
  graph.outputs = {z};
  EXPECT_EQ(place(), 2);
  EXPECT_EQ(space(x), host);
  EXPECT_EQ(space(w), gpu);
  EXPECT_EQ(space(y), gpu);
  const ValueId copy = maker(y).operands[0];
  EXPECT_EQ(maker(copy).operands[0], x);
  EXPECT_EQ(maker(z).operands[1], copy) << "one copy for both readers";
  EXPECT_EQ(graph.root_storage(copy).cls, StorageClass::input);
  EXPECT_TRUE(is_staging(graph, graph[copy].producer));
  EXPECT_EQ(space_of(graph, maker(copy)), gpu);
  EXPECT_EQ(space(graph.outputs[0]), host);
  EXPECT_EQ(maker(graph.outputs[0]).operands[0], z);
}

TEST_F(Place, KeepsOnTheHostWhatHasNoKernel) {
  kernels.missing = {"silu"};
  const auto x = declare("x", StorageClass::input);
  const auto y = builder.add1("relu", {x}), z = builder.add1("silu", {y});
  const auto last = builder.add1("relu", {z});
  Remarks remarks;
  graph::place(graph, operators(), {.shared = gpu, .lanes = {}}, kernels, &remarks);
  using List = std::vector<Remarks::Remark>;
  EXPECT_EQ(remarks.left, (List{{"silu #1", "there is no kernel of it for the device"}}));
  EXPECT_EQ(remarks.done, (List{{"'x'", "copied to " + to_string(gpu)},
                                {"the result of relu #0", "copied to " + to_string(host)},
                                {"the result of silu #1", "copied to " + to_string(gpu)}}));
  EXPECT_EQ(space(y), gpu);
  EXPECT_EQ(space(z), host);
  EXPECT_EQ(space(maker(z).operands[0]), host);
  EXPECT_EQ(graph.root_storage(maker(z).operands[0]).cls, StorageClass::activation);
  EXPECT_EQ(space(maker(last).operands[0]), gpu);
}

// What an op without a kernel writes has to be where it runs, and so has whoever else writes it.
TEST_F(Place, KeepsTogetherWhoWritesTheSameBytes) {
  kernels.missing = {"assign"};
  const auto total = declare("total", StorageClass::buffer), x = declare("x", StorageClass::input);
  const auto sum = builder.add1("relu", {x});
  const auto more = builder.add1("accumulate", {total, sum}),
             set = builder.add1("assign", {more, x}), seen = builder.add1("relu", {set});
  keep_state(graph, operators());
  place();
  EXPECT_EQ(space(total), host);
  EXPECT_EQ(space(sum), gpu);
  EXPECT_EQ(space(seen), gpu);
}

TEST_F(Place, CopiesAnewWhatHasChanged) {
  kernels.missing = {"silu"};
  const auto total = declare("total", StorageClass::buffer), x = declare("x", StorageClass::input);
  const auto before = builder.add1("silu", {total});
  const auto sum = builder.add1("accumulate", {total, x}), behind = builder.add1("silu", {sum}),
             once_more = builder.add1("silu", {sum});
  keep_state(graph, operators());
  place();
  EXPECT_EQ(space(total), gpu);
  EXPECT_NE(maker(before).operands[0], maker(behind).operands[0]);
  EXPECT_EQ(maker(behind).operands[0], maker(once_more).operands[0]);
}

TEST_F(Place, DeclaresConstantsWhereADeviceReadsThem) {
  const auto k = declare("k", StorageClass::constant, {8, 3}),
             x = declare("x", StorageClass::input);
  const auto part =
      builder.add1("slice", {k}, {{"begin", std::int64_t{4}}, {"end", std::int64_t{8}}});
  const auto y = builder.add1("add", {x, part});
  EXPECT_EQ(place(), 1) << "x alone is copied in each step";
  EXPECT_EQ(space(k), host);
  const ValueId there = graph.find(constant_name("k", gpu));
  ASSERT_TRUE(there);
  EXPECT_EQ(space(there), gpu);
  EXPECT_EQ(graph.root(maker(y).operands[1]), graph.root(there));
  EXPECT_EQ(graph[maker(y).operands[1]].offset, 4 * 3 * 4);
}

TEST_F(Place, GivesLanesTheirSpaces) {
  const auto x = declare("x", StorageClass::input), w = declare("w", StorageClass::parameter);
  std::vector<ValueId> lanes;
  for (int lane = 0; lane < 3; ++lane) {
    builder.context.lane = lane;
    lanes.push_back(builder.add1("mul", {x, w}));
  }
  builder.context = {.phase = Phase::update, .lane = Op::shared_lane, .where = ""};
  const auto sum = builder.add1("sum", lanes);
  builder.add("accumulate", {w, sum});
  place({.shared = gpu, .lanes = {host, gpu, other}});
  EXPECT_EQ(space(lanes[0]), host);
  EXPECT_EQ(space(lanes[1]), gpu);
  EXPECT_EQ(space(lanes[2]), other);
  EXPECT_EQ(space(sum), gpu);
  EXPECT_EQ(space(w), gpu);
  EXPECT_EQ(maker(sum).operands[1], lanes[1]);
  EXPECT_EQ(space_of(graph, maker(maker(lanes[2]).operands[1])), other);
  // Each about its own: two GPUs may differ.
  EXPECT_EQ(kernels.asked, (std::set<Space>{gpu, other}));
}

TEST_F(Place, RunsBlocksOnTheHost) {
  const auto x = declare("x", StorageClass::input);
  const auto yes = builder.declare("yes", DType::int64, {1}, StorageClass::input);
  const auto y = builder.add1("relu", {x});
  std::vector<RegionId> blocks;
  for (std::size_t side = 0; side < 2; ++side) {
    blocks.push_back(builder.begin_region("if", {yes}, {}, side));
    const auto part = builder.add1(
        "slice", {y}, {{"begin", std::int64_t(side)}, {"end", std::int64_t(side) + 2}});
    const auto inner = builder.add1("relu", {part});
    builder.end_region({inner});
  }
  const auto z = builder.add("if", {yes}, {}, blocks).front();
  const auto last = builder.add1("relu", {z});
  graph.outputs = {last};
  EXPECT_EQ(place(), 4) << "x there, y back, z there, the output back";
  EXPECT_EQ(space(y), gpu);
  EXPECT_EQ(space(z), host);
  EXPECT_EQ(space(last), gpu);
}

TEST_F(Place, OpsTouchOneSpace) {
  const auto x = declare("x", StorageClass::input);
  const auto y = builder.add1("relu", {x});
  graph.storage(graph[y].storage).space = gpu;
  EXPECT_ERROR("values in cpu:0/host and cuda:0/device; expected values in one space",
               check_spaces(graph));
}

/// Ops of lanes stand in any order: one of an earlier phase behind one of a later phase.
TEST_F(Place, CopiesOnceMoreForAnEarlierPhase) {
  const auto x = declare("x", StorageClass::input), w = declare("w", StorageClass::parameter);
  builder.context = {.phase = Phase::update, .lane = 0, .where = ""};
  const auto late = builder.add1("mul", {w, x});
  builder.context = {.phase = Phase::backward, .lane = 1, .where = ""};
  const auto early = builder.add1("mul", {w, x}), again = builder.add1("relu", {x});
  builder.context = {.phase = Phase::update, .lane = 0, .where = ""};
  const auto later = builder.add1("relu", {x});
  EXPECT_EQ(place(), 2);
  EXPECT_EQ(maker(maker(late).operands[1]).phase, Phase::update);
  const ValueId copy = maker(early).operands[1];
  EXPECT_EQ(maker(copy).phase, Phase::backward);
  EXPECT_EQ(maker(again).operands[0], copy);
  EXPECT_EQ(maker(later).operands[0], copy);
}

TEST_F(Place, MakesOneTaskOfALanesStep) {
  const auto x = declare("x", StorageClass::input), w = declare("w", StorageClass::parameter);
  builder.context.lane = 0;
  const auto y = builder.add1("mul", {x, w});
  builder.context = {.phase = Phase::backward, .lane = 0, .where = ""};
  const auto g = builder.add1("relu", {y});
  builder.context = {.phase = Phase::update, .lane = Op::shared_lane, .where = ""};
  builder.add("accumulate", {w, g});
  place();
  select(graph, kernels);
  const Schedule schedule = coarsen(graph);
  ASSERT_EQ(schedule.tasks.size(), 2u);
  EXPECT_TRUE(schedule.tasks[0].staging);
  EXPECT_EQ(schedule.tasks[0].space, gpu);
  EXPECT_EQ(schedule.tasks[1].ops.size(), 3u);
  EXPECT_EQ(schedule.tasks[1].space, gpu);
}

std::vector<Space> dealt(const std::vector<Space>& spaces, int lanes, double first = 1,
                         double others = 1) {
  const Spaces found = deal_out(
      spaces, lanes, [&](const Space& space) { return space == spaces[0] ? first : others; });
  EXPECT_EQ(found.shared, spaces[0]);
  return found.lanes;
}

TEST(DealOut, GivesEachWhatItCanDo) {
  EXPECT_EQ(dealt({gpu, host}, 4), (std::vector{gpu, gpu, host, host}));
  EXPECT_EQ(dealt({gpu, host}, 4, 1, 3), (std::vector{gpu, gpu, gpu, host}));
  EXPECT_EQ(dealt({gpu, host}, 3, 1, 3.5), (std::vector{gpu, gpu, gpu}));
  EXPECT_EQ(dealt({host, gpu}, 3, 2.5, 1), (std::vector{host, gpu, gpu}));
}

TEST(DealOut, KnowsHowManyLanesThereAre) {
  EXPECT_EQ(dealt({gpu}, 0), (std::vector{gpu}));
  EXPECT_EQ(dealt({gpu, other}, 0), (std::vector{gpu, other}));
  EXPECT_EQ(dealt({gpu, host}, 0).size(), 8u);
}

TEST(DealOut, AsksNobodyWhereThereIsNothingToChoose) {
  const std::vector one{gpu};
  const Spaces found = deal_out(one, 2, [](const Space&) -> double {
    ADD_FAILURE() << "asked";
    return 0;
  });
  EXPECT_EQ(found.lanes, (std::vector{gpu, gpu}));
}

}  // namespace
}  // namespace arenite::graph
