#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <tuple>

namespace arenite::plan {
namespace {

using graph::Builder;
using graph::Graph;
using graph::StorageClass;
using graph::ValueId;

/// x → dense → relu → … → loss in the given number of lanes, with gradients and updates.
struct Network {
  Graph graph;
  graph::Schedule schedule;
  StateLayout state;

  explicit Network(int lanes = 1, int depth = 3, double task_microseconds = 50) {
    Graph forward;
    Builder builder(forward, operators());
    ValueId x = builder.declare("x", DType::float32, {8, 64}, StorageClass::input);
    const ValueId y = builder.declare("y", DType::int32, {8}, StorageClass::input);
    std::vector<std::string> weights;
    for (int i = 0; i < depth; ++i) {
      weights.push_back("w" + std::to_string(i));
      builder.context.where = weights.back();
      const ValueId w =
          builder.declare(weights.back(), DType::float32, {64, 64}, StorageClass::parameter);
      x = builder.add1("relu", {builder.add1("dense", {x, w})});
    }
    builder.context.where = "loss";
    const ValueId loss =
        builder.add("softmax_cross_entropy", {x, y}, {{"divisor", std::int64_t{8}}}).front();
    forward.training =
        graph::Training{{.optimizer = operators().at("sgd"), .learning_rate = 0.1}, loss, {}};
    for (const auto& name : weights) forward.training->parameters.push_back(forward.find(name));
    graph::BatchGraph split = *graph::split_batch(forward, operators(), {.lanes = lanes});
    graph::add_training(split.graph, operators(), split.losses);
    graph::select(split.graph, *runtime::kernel_selector(kernels()));
    graph::in_place(split.graph);
    graph::TargetProfile model;
    model.task_microseconds = model.phase_microseconds = task_microseconds;
    schedule = graph::coarsen(split.graph, model);
    graph = std::move(split.graph);
  }

  StepPlan plan(StepOptions options = {}) { return plan_step(graph, schedule, state, options); }
};

TEST(StepPlan, EveryLayoutIsVerified) {
  for (int lanes : {1, 2, 3}) {
    for (double grain : {0.0, 5.0, 50.0}) {
      for (ArenaLayout layout : {ArenaLayout::overlay, ArenaLayout::two}) {
        Network network(lanes, 4, grain);
        const StepPlan plan = network.plan({.layout = layout, .solve = {}});
        EXPECT_NO_THROW(verify_step(network.graph, network.schedule, plan));
        EXPECT_GE(plan.transient_bytes(), plan.lower_bound);
        EXPECT_LE(plan.transient_bytes(), plan.separate);
      }
    }
  }
}

TEST(StepPlan, OverlayNeedsNoMoreThanTwoArenas) {
  Network a(1, 6), b(1, 6);
  const auto overlay = a.plan({.layout = ArenaLayout::overlay, .solve = {}});
  const auto two = b.plan({.layout = ArenaLayout::two, .solve = {}});
  EXPECT_LE(overlay.transient_bytes(), two.transient_bytes());
  EXPECT_EQ(two.blocks.size(), overlay.blocks.size() + 1);
}

TEST(StepPlan, RefusesAResetBetweenThePhases) {
  Network network(1, 1);
  try {
    network.plan({.layout = ArenaLayout::reset, .solve = {}});
    FAIL();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("cross from forward to backward (w0"), std::string::npos) << message;
    EXPECT_NE(message.find("use the layout 'overlay'"), std::string::npos) << message;
  }
}

TEST(StepPlan, WithoutReuseEveryStorageHasItsOwnBytes) {
  Network network(2, 3);
  const StepPlan plan = network.plan({.reuse = false, .solve = {}});
  EXPECT_TRUE(plan.reuse_edges.empty());
  EXPECT_EQ(plan.transient_bytes(), plan.separate);
  verify_step(network.graph, network.schedule, plan);
}

TEST(StepPlan, IsTheSameEveryTime) {
  Network a(2, 5, 0), b(2, 5, 0);
  const StepPlan p = a.plan(), q = b.plan();
  EXPECT_EQ(p.reuse_edges, q.reuse_edges);
  ASSERT_EQ(p.placements.size(), q.placements.size());
  for (std::size_t i = 0; i < p.placements.size(); ++i)
    EXPECT_EQ(p.placements[i].offset, q.placements[i].offset);
}

TEST(StepPlan, VerifierCatchesADroppedReuseEdge) {
  // One op a task, so that reuse must be bought with edges somewhere.
  Network network(2, 5, 0);
  StepPlan plan = network.plan();
  ASSERT_FALSE(plan.reuse_edges.empty());
  for (std::size_t i = 0; i < plan.reuse_edges.size(); ++i) {
    StepPlan broken = plan;
    broken.reuse_edges.erase(broken.reuse_edges.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_THROW(verify_step(network.graph, network.schedule, broken), Error)
        << "edge " << i << " was not needed";
  }
}

TEST(StepPlan, VerifierCatchesDroppedDataEdgesAndCycles) {
  Network network(1, 2, 0);
  const StepPlan plan = network.plan();
  graph::Schedule broken = network.schedule;
  auto task = std::find_if(broken.tasks.begin(), broken.tasks.end(),
                           [](const auto& t) { return !t.predecessors.empty(); });
  task->predecessors.clear();
  EXPECT_THROW(verify_step(network.graph, broken, plan), Error);

  StepPlan cyclic = plan;
  cyclic.reuse_edges.push_back(
      {graph::TaskId(network.schedule.tasks.size() - 1), graph::TaskId(0)});
  EXPECT_THROW(verify_step(network.graph, network.schedule, cyclic), Error);
}

void expect_rejected(const Network& network, const graph::Schedule& schedule, StepPlan plan,
                     const std::string& words) {
  plan.lower_bound = 0;  // so that only the mutation can be at fault
  plan.optimal = false;
  try {
    verify_step(network.graph, schedule, plan);
    ADD_FAILURE() << "accepted; expected: " << words;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

std::size_t place_of_class(const StepPlan& plan, StorageClass cls) {
  const auto it = std::find_if(plan.placements.begin(), plan.placements.end(),
                               [&](const Placement& p) { return p.cls == cls; });
  return static_cast<std::size_t>(it - plan.placements.begin());
}

std::size_t block_of_name(const StepPlan& plan, const std::string& name) {
  const auto it = std::find_if(plan.blocks.begin(), plan.blocks.end(),
                               [&](const BlockPlan& b) { return b.name == name; });
  return static_cast<std::size_t>(it - plan.blocks.begin());
}

TEST(StepPlan, VerifierCatchesMovedBytes) {
  const Network network(2, 3);
  StateLayout state;
  const StepPlan plan = plan_step(network.graph, network.schedule, state);
  int moved = 0;
  for (graph::OpId op : network.graph[Graph::body].ops) {
    const auto touched = graph::accesses(network.graph, op);  // alive together, whatever the order
    for (const auto& a : touched) {
      for (const auto& b : touched) {
        const Placement& onto = plan.placement(b.storage);
        if (a.storage == b.storage || !graph::is_transient(plan.placement(a.storage).cls) ||
            !graph::is_transient(onto.cls) || onto.block != plan.placement(a.storage).block)
          continue;
        StepPlan broken = plan;
        auto place = std::find_if(broken.placements.begin(), broken.placements.end(),
                                  [&](const Placement& p) { return p.storage == a.storage; });
        place->offset = onto.offset;
        broken.blocks[place->block].bytes += place->bytes;
        expect_rejected(network, network.schedule, broken, "share bytes");
        ++moved;
      }
    }
  }
  EXPECT_GT(moved, 20);
}

TEST(StateLayouts, GiveReleasedPlacesToOthers) {
  constexpr auto buffer = StorageClass::buffer, parameter = StorageClass::parameter;
  StateLayout state;
  const std::int64_t one = default_alignment;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(state.place(buffer, std::to_string(i), one), i * one);
  state.release(buffer, "1");
  state.release(buffer, "1");     // which is gone
  state.release(parameter, "2");  // which never was
  state.release(buffer, "3");
  EXPECT_EQ(state.place(buffer, "large", 2 * one), 5 * one);
  state.release(buffer, "2");  // between two that are free
  EXPECT_EQ(state.place(buffer, "three", 2 * one + 1), one);
  state.release(buffer, "three");
  EXPECT_EQ(state.place(parameter, "two", 2 * one), one);
  EXPECT_EQ(state.place(buffer, "empty", 0), 7 * one);
  EXPECT_EQ(state.place(buffer, "small", 1), 3 * one);
  EXPECT_EQ(state.place(buffer, "0", one), 0);
  EXPECT_EQ(state.bytes(), 7 * one);
  state.release(buffer, "empty");
  EXPECT_EQ(state.place(buffer, "next", 1), 7 * one);
  state.release(buffer, "next");
  EXPECT_EQ(state.place(buffer, "longer", 3 * one), 7 * one);
  EXPECT_EQ(state.bytes(), 10 * one);
  EXPECT_THROW(static_cast<void>(state.offset(buffer, "3")), Error);
}

TEST(StepPlan, VerifierBelievesNoLabel) {
  const Network network(1, 2, 0);
  const graph::Schedule& schedule = network.schedule;
  StateLayout state;
  const StepPlan plan = plan_step(network.graph, schedule, state);
  const std::size_t weight = place_of_class(plan, StorageClass::parameter),
                    input = place_of_class(plan, StorageClass::input),
                    value = place_of_class(plan, StorageClass::activation),
                    step = block_of_name(plan, "step");

  StepPlan broken = plan;
  broken.placements[weight].cls = StorageClass::activation;
  expect_rejected(network, schedule, broken, "of class parameter");

  broken = plan;
  broken.placements[value].external = true;
  expect_rejected(network, schedule, broken,
                  "the host's constants bound by address, and nothing else");

  for (const auto& [index, block, words] :
       {std::tuple(weight, "step", "expected a persistent block"),
        std::tuple(weight, "input", "expected a persistent block"),
        std::tuple(input, "step", "expected a block of each task set"),
        std::tuple(value, "input", "expected a block that holds only one step's values"),
        std::tuple(value, "state", "expected a block that holds only one step's values")}) {
    broken = plan;
    BlockPlan& into = broken.blocks[block_of_name(plan, block)];
    broken.placements[index].block = block_of_name(plan, block);
    broken.placements[index].offset = round_up(into.bytes, default_alignment);
    into.bytes = broken.placements[index].offset + broken.placements[index].bytes;
    expect_rejected(network, schedule, broken, words);
  }

  broken = plan;
  broken.blocks[step].per_task_set = true;
  expect_rejected(network, schedule, broken, "expected a block that holds only one step's values");

  broken = plan;
  broken.placements[value].storage = graph::StorageId(network.graph.storage_count());
  expect_rejected(network, schedule, broken, "places of root storages");

  broken = plan;
  broken.placements[value].offset = std::numeric_limits<std::int64_t>::max() / 256 * 256;
  expect_rejected(network, schedule, broken, "a place inside its block");

  graph::Schedule ahead = schedule;
  ahead.tasks.front().staging = true;  // reads a weight
  expect_rejected(network, ahead, plan, "which all steps share");

  graph::Schedule backwards = schedule;
  backwards.tasks.front().predecessors.push_back(graph::TaskId(1));
  expect_rejected(network, backwards, plan, "an earlier task");
}

TEST(StepPlan, OutputsHaveBytesOfTheirOwnInEachTaskSet) {
  Network network(1, 4, 0);
  const auto& ops = network.graph[Graph::body].ops;
  network.graph.outputs = {network.graph[ops.front()].results.front()};
  const graph::StorageId output = network.graph.root(network.graph.outputs.front());
  const graph::StorageId marked = network.graph.root(network.graph[ops.back()].operands[1]);
  network.graph.storage(marked).cls = StorageClass::output;

  const StepPlan plan = network.plan();
  const std::size_t block = block_of_name(plan, "output");
  ASSERT_LT(block, plan.blocks.size());
  EXPECT_TRUE(plan.blocks[block].per_task_set);
  EXPECT_EQ(plan.placement(output).block, block);
  EXPECT_EQ(plan.placement(marked).block, block);
  verify_step(network.graph, network.schedule, plan);

  StepPlan broken = plan;
  const std::size_t index = static_cast<std::size_t>(&plan.placement(output) - &plan.placements[0]);
  broken.placements[index].offset = plan.placement(marked).offset;
  broken.blocks[block].bytes += broken.placements[index].bytes;
  expect_rejected(network, network.schedule, broken, "an output; expected bytes of its own");

  network.graph.outputs.clear();
  expect_rejected(network, network.schedule, plan, "a block that holds only one step's values");
}

TEST(StepPlan, KeepsSpacesApart) {
  const Space device{.device = DeviceKind::cuda, .memory = MemoryKind::device};
  for (ArenaLayout layout : {ArenaLayout::overlay, ArenaLayout::two}) {
    Network network(2, 4, 0);
    Graph& graph = network.graph;
    for (graph::OpId id : graph[Graph::body].ops) {
      if (graph[id].lane != 1) continue;
      for (ValueId result : graph[id].results) graph.storage(graph.root(result)).space = device;
      if (graph[id].workspace) graph.storage(graph.root(graph[id].workspace)).space = device;
    }
    graph.storage(graph.root(graph.find("w1"))).space = device;
    graph.storage(graph.root(graph.find("y"))).space = device;

    const StepPlan plan = network.plan({.layout = layout, .solve = {}});
    verify_step(graph, network.schedule, plan);
    const bool two = layout == ArenaLayout::two;
    for (const std::string name : {"state", "input", two ? "backward" : "step"}) {
      const std::size_t here = block_of_name(plan, name),
                        there = block_of_name(plan, name + "@cuda:0/device");
      ASSERT_LT(here, plan.blocks.size()) << name;
      ASSERT_LT(there, plan.blocks.size()) << name;
      EXPECT_EQ(plan.blocks[here].space, Space{});
      EXPECT_EQ(plan.blocks[there].space, device);
    }
    std::vector<std::int64_t> ends(plan.blocks.size(), 0);
    for (const Placement& place : plan.placements) {
      EXPECT_EQ(plan.blocks[place.block].space, graph.storage(place.storage).space);
      ends[place.block] = std::max(ends[place.block], place.offset + place.bytes);
    }
    for (std::size_t b = 0; b < ends.size(); ++b)
      EXPECT_EQ(plan.blocks[b].bytes, round_up(ends[b], default_alignment)) << plan.blocks[b].name;
    EXPECT_EQ(network.state.bytes(device), 64 * 64 * 4);
    EXPECT_EQ(network.state.offset(graph::StorageClass::parameter, "w1", device), 0);
    EXPECT_THROW(network.state.offset(graph::StorageClass::parameter, "w1"), Error);
  }
}

TEST(StepPlan, ProgramsAgreeOnSharedBlocks) {
  Network a(1, 3), b(2, 3);
  const StepPlan first = a.plan(), second = plan_step(b.graph, b.schedule, a.state);
  const std::vector<const StepPlan*> both{&first, &second};
  EXPECT_NO_THROW(verify_together(both));

  const auto expect = [&](StepPlan broken, const std::string& words) {
    const std::vector<const StepPlan*> plans{&first, &broken};
    try {
      verify_together(plans);
      ADD_FAILURE() << "accepted; expected: " << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  const std::size_t weight = place_of_class(second, StorageClass::parameter);
  StepPlan broken = second;
  broken.placements[weight].offset += 256;
  expect(broken, "in one program, at 0–16384 in another; expected one place");
  broken = second;
  broken.placements[weight].name = "other";
  expect(broken, "overlap in block 'state'");
  broken = second;
  broken.blocks[block_of_name(second, "step")].per_task_set = true;
  expect(broken, "block 'step' of two kinds");
  broken = second;
  broken.blocks[block_of_name(second, "step")].name = "state";
  expect(broken, "block 'state' of two kinds");
  broken = second;
  broken.placements[place_of_class(second, StorageClass::activation)].block = 0;
  expect(broken, "expected persistent storages and constants only");
}

TEST(StepPlan, PlansThousandsOfTasks) {
  Graph graph;
  Builder builder(graph, operators());
  for (int lane = 0; lane < 8; ++lane) {
    ValueId x = builder.declare("x" + std::to_string(lane), DType::float32, {8, 64 + lane},
                                StorageClass::input);
    builder.context.lane = lane;
    for (int i = 0; i < 600; ++i) x = builder.add1("relu", {x});
  }
  graph::TargetProfile model;
  model.task_microseconds = model.phase_microseconds = 0;
  const graph::Schedule schedule = graph::coarsen(graph, model);
  ASSERT_EQ(schedule.tasks.size(), 4800u);
  StateLayout state;
  const std::clock_t start = std::clock();  // whatever else the machine does
  const StepPlan plan = plan_step(graph, schedule, state);
  const std::clock_t planned = std::clock() - start;
  verify_step(graph, schedule, plan);
  EXPECT_LE(plan.transient_bytes(), 20 * round_up(8 * 71 * 4, default_alignment));
#ifdef NDEBUG
  EXPECT_LT(planned, 15 * CLOCKS_PER_SEC);
#else
  static_cast<void>(planned);
#endif
}

TEST(StepPlan, PersistentStoragesKeepTheirPlaceAcrossPrograms) {
  Network network(1, 2);
  const StepPlan first = network.plan();
  const std::int64_t w1 = network.state.offset(graph::StorageClass::parameter, "w1");
  const StepPlan second = network.plan();
  EXPECT_EQ(network.state.offset(graph::StorageClass::parameter, "w1"), w1);
  EXPECT_THROW(network.state.place(graph::StorageClass::parameter, "w1", 4), Error);
  EXPECT_THROW(network.state.offset(graph::StorageClass::parameter, "w9"), Error);
}

}  // namespace
}  // namespace arenite::plan
