// The traps that memory planners before this one fell into, each with the test that keeps this one
// out of it. Tests of other files are named where they say all there is to say.
//
//   a buffer or a constant in a reused slot . PersistentBytesOutliveAnEvaluation
//   scratch and metadata of one op .......... ScratchLivesOnlyWhileItsOpRuns
//   x + x ................................... AnArgumentUsedTwiceIsReleasedOnce
//     its gradient .......................... Gradients.SumContributionsOfEveryUse
//   a view that outlives its owner .......... AViewKeepsItsOwner
//   a view as an output ..................... AViewAsAnOutputKeepsItsOwner
//   an output that aliases an input ......... AnOutputMayBeAnInput
//   in place, with a second reader .......... InPlace.SparesASecondReader
//   in place, on a saved activation ......... InPlace.SparesWhatBackwardStillReads
//   in place, on an input or an output ...... InPlace.SparesInputsParametersAndOutputs
//   in place, on a constant ................. NothingIsDoneInPlaceOnAConstant
//   allocate(0) ............................. StaticAllocator.ZeroBytesTakeNoRoom
//     in a problem .......................... Solve.NothingAndZeroBytes
//   free with the rounded size .............. StaticAllocator.FreeTakesTheUnroundedSize
//   a peak rounded to an alignment .......... Exact.NothingLiesUponTheTopmostBuffer
//   a merge of three free blocks ............ StaticAllocator.MergesThreeNeighbours
//   growth at the tail ...................... StaticAllocator.ALargerRequestExtendsTheTailBlock
//   a token that grew after one tenant ...... StorageTokens.TvmsChainTakesFour
//     the same chain as a graph ............. TvmsChainTakesTwoSlots
//   two devices, values of one kind ......... EqualValuesOfTwoDevicesShareNothing
//   a saved activation across a reset ....... StepPlan.RefusesAResetBetweenThePhases
//   a diamond in any order .................. ADiamondIsSoundInEveryLegalOrder
//   a chain that needs the last two values .. FibonacciTakesThreeSlotsHoweverLong
//   a parameter that no gradient reaches .... AnUnreachedParameterKeepsItsBits
//     its gradient .......................... Gradients.AreAbsentWhereNoLossDepends
//   NaN in dead bytes times zeros ........... MasksSelect
//   the last use inside a block's result .... Liveness.BlocksOfAnIfAreDifferentSteps
//   a capture that one block reads .......... RegionPlans.ACaptureOfOneBlockEndsThere
//   blocks in blocks ........................ RegionPlans.NestedBlocksShareAtEachLevel
//   first allocated in one of two blocks .... RegionPlans.ReplayAsWithBytesOfTheirOwn
//   blocks of unequal size .................. RegionPlans.BlocksThatExcludeEachOtherShare…
//   "may share" taken for "shares" .......... RegionPlans.AResultThatIsAValueFromOutsideIsCopied
//   a loop that reads a value from outside .. RegionPlans.ALoopFindsItsCapturesInEveryTrip
//   carried values that swap ................ RegionPlans.CarriedValuesThatSwapAreSetAside
//   a prefix sum's two blocks ............... RegionPlans.APrefixSumTakesTwoBlocks
//   a path that greedy colouring gets wrong . Solve.APathTakesTwoSlotsWhateverItsNames
#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/graph/verify.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include "codelets/testing.hpp"
#include "tests/planner_traps.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace arenite::plan {
namespace {

using graph::Graph;
using graph::StorageClass;
using graph::ValueId;

// A buffer was given a slot that is free after its last reader: the first evaluation was right, the
// second one read what the slot's next tenant had left.
TEST(PlannerTraps, PersistentBytesOutliveAnEvaluation) {
  const Step step(R"($1 = InputTensor(x, float32, [64]);
$2 = BufferTensor(total, float32, [64]);
$3 = ConstantTensor(k, float32, [64]);
$4 @name("a") = sum($1, $2, $3);
$5 @name("b") = relu($4);
$6 @name("c") = relu($5);
result = $6;)");
  expect_sound(step);
  EXPECT_TRUE(step.block("total").persistent);
  EXPECT_TRUE(step.place("k").external);
  for (const auto& [name, words] :
       {std::pair("total", "expected a persistent block"),
        std::pair("k", "expected the host's constants bound by address")}) {
    const StepPlan faulty = step.with(name, "b");
    EXPECT_EQ(lost(step, faulty, 1), "") << name;
    expect_caught(step, faulty, words, name);
  }
}

// An op's own bytes were taken for dead before it ran (a value got them), or kept to the end of the
// program.
TEST(PlannerTraps, ScratchLivesOnlyWhileItsOpRuns) {
  register_trap_scratch();
  const Step step(R"($1 = InputTensor(x, float32, [64]);
$2 @name("a") = trap_scratch($1);
$3 @name("b") = trap_scratch($2);
$4 @name("c") = trap_scratch($3);
$5 = relu($4);
result = $5;)",
                  false, InFlight(1), [](Step& s) {
                    int number = 0;
                    for (graph::OpId op : s.graph[Graph::body].ops) {
                      const ValueId scratch = s.graph[op].workspace;
                      if (!scratch) continue;
                      const std::string name = "scratch" + std::to_string(number++);
                      s.graph[scratch].name = s.graph.storage(s.graph.root(scratch)).name = name;
                    }
                  });
  expect_sound(step);
  EXPECT_EQ(step.plan.separate, 3 * 256 + 3 * 1024);
  EXPECT_EQ(step.plan.transient_bytes(), 2 * 256 + 1024);  // what b's op needs
  expect_caught(step, step.with("a", "scratch1"), "share bytes", "a");
  expect_caught(step, step.with("b", "scratch1"), "share bytes", "b");
}

// x + x: the two uses counted as one reader, each gave the bytes back, so that the second one took
// them from a reader yet to come; or counted as two and given back once, they stayed for ever.
TEST(PlannerTraps, AnArgumentUsedTwiceIsReleasedOnce) {
  const Step early(R"($1 = InputTensor(x, float32, [64]);
$2 @name("a") = relu($1);
$3 @name("b") = sum($2, $2);
$4 @name("c") = relu($3);
$5 = sum($2, $4);
result = $5;)");
  expect_sound(early);
  EXPECT_EQ(early.plan.transient_bytes(), 3 * 256);
  expect_caught(early, early.with("c", "a"), "share bytes", "a");

  const Step late(R"($1 = InputTensor(x, float32, [64]);
$2 @name("a") = relu($1);
$3 @name("b") = sum($2, $2);
$4 @name("c") = relu($3);
$5 = relu($4);
result = $5;)");
  expect_sound(late);
  EXPECT_EQ(late.plan.transient_bytes(), 2 * 256);
  EXPECT_EQ(late.place("c").offset, late.place("a").offset);
}

// The owner's last reader was the view; its bytes were given away with the view still to be read.
TEST(PlannerTraps, AViewKeepsItsOwner) {
  const Step step(R"($1 = InputTensor(x, float32, [2, 64]);
$2 @name("owner") = relu($1);
$3 @name("view") = slice($2, begin=1, end=2);
$4 = slice($1, begin=0, end=1);
$5 @name("other") = relu($4);
$6 = relu($5);
$7 = sum($6, $3);
result = $7;)");
  expect_sound(step);
  EXPECT_EQ(step.root("view"), step.root("owner"));
  expect_caught(step, step.with("other", "owner", 256), "share bytes", "owner");
  // Nobody reads the owner's first row any more, but bytes are given back as a whole.
  expect_refused(step, step.with("other", "owner"), "share bytes");
}

// A view was an output, and its owner no output: the step went on to use the bytes.
TEST(PlannerTraps, AViewAsAnOutputKeepsItsOwner) {
  const Step step(R"($1 = InputTensor(x, float32, [2, 64]);
$2 @name("owner") = relu($1);
$3 @name("view") = slice($2, begin=1, end=2);
$4 @name("a") = relu($1);
$5 @name("b") = relu($4);
$6 = relu($5);
result = $3, $6;)",
                  true);
  expect_sound(step);
  EXPECT_EQ(step.block("view").name, "output");
  EXPECT_TRUE(step.block("view").per_task_set);
  expect_caught(step, step.with("owner", "b"), "share bytes of block 'output'", "owner");
}

// An output that is an input got a slot of its own, which nobody wrote, or the input's bytes were
// reused after their last reader.
TEST(PlannerTraps, AnOutputMayBeAnInput) {
  const Step step(R"($1 = InputTensor(x, float32, [2, 8, 4]);
$2 @name("out") = flatten($1);
$3 @name("a") = relu($2);
$4 @name("b") = relu($3);
$5 = relu($4);
result = $2, $1, $5;)",
                  true);
  expect_sound(step);
  EXPECT_EQ(step.root("out"), step.root("x"));
  EXPECT_EQ(step.block("x").name, "input");
  EXPECT_NE(step.root("a"), step.root("x"));  // the input is read by the caller too
  expect_caught(step, step.with("x", "a"), "of class input", "x");
}

// A result took the bytes of a constant, whose last reader it was in this evaluation.
TEST(PlannerTraps, NothingIsDoneInPlaceOnAConstant) {
  Graph graph = graph::parse(R"($1 = ConstantTensor(k, float32, [64]);
$2 = relu($1);
$3 = relu($2);
result = $3;)",
                             operators());
  const auto& ops = graph[Graph::body].ops;
  const ValueId k = graph.find("k"), first = graph[ops.front()].results.front();
  EXPECT_EQ(graph::in_place(graph), 1);  // the second relu's operand, in the output
  EXPECT_NE(graph.root(first), graph.root(k));
  graph.merge(graph.root(first), graph.root(k));
  EXPECT_THROW(graph::verify(graph), Error);
}

// What TVM's own test asks for, as a graph: x plus exp(y), then exp five times; y has one number.
// (A relu stands for exp, which is no operator here.)
TEST(PlannerTraps, TvmsChainTakesTwoSlots) {
  const std::string script = R"($1 = InputTensor(x, float32, [10, 1]);
$2 = InputTensor(y, float32, [1]);
$3 @name("exp_y") = relu($2);
$4 @name("add") = bias($1, $3);
$5 = relu($4);
$6 = relu($5);
$7 = relu($6);
$8 = relu($7);
$9 = relu($8);
$10 = permute($9, [1, 0]);
result = $10;)";
  for (bool in_place : {false, true}) {
    const Step step(script, in_place);
    expect_sound(step);
    EXPECT_EQ(step.plan.transient_bytes(), 2 * 256);
    EXPECT_TRUE(step.plan.optimal);
    expect_caught(step, step.with("add", "exp_y"), "share bytes", "exp_y");
  }
}

// Values of two devices that agree in size and type shared a slot: the key left out the device.
TEST(PlannerTraps, EqualValuesOfTwoDevicesShareNothing) {
  const auto device = [](int index) {
    return Space{.device = DeviceKind::cuda, .index = index, .memory = MemoryKind::device};
  };
  const Step step(
      R"($1 = InputTensor(x, float32, [64]);
$2 @name("a0") = relu($1);
$3 @name("b1") = relu($2);
$4 @name("c0") = relu($3);
$5 @name("d1") = relu($4);
$6 = relu($5);
result = $6;)",
      false, InFlight(1), [&](Step& s) {
        for (const auto& [name, at] : {std::pair("a0", 0), {"b1", 1}, {"c0", 0}, {"d1", 1}})
          s.graph.storage(s.root(name)).space = device(at);
      });
  expect_sound(step);
  EXPECT_EQ(step.plan.transient_bytes(), 2 * 256);
  for (const auto& [one, other] : {std::pair("a0", "c0"), {"b1", "d1"}}) {
    EXPECT_EQ(step.place(one).block, step.place(other).block);
    EXPECT_EQ(step.place(one).offset, step.place(other).offset);
  }
  EXPECT_EQ(step.block("a0").space, device(0));
  EXPECT_EQ(step.block("b1").space, device(1));
  expect_refused(step, step.with("d1", "a0"), "one space");
}

// Lifetimes came from one order of the ops; another legal order had a branch overwrite the other.
TEST(PlannerTraps, ADiamondIsSoundInEveryLegalOrder) {
  const std::string script = R"($1 = InputTensor(x, float32, [64]);
$2 @name("top") = relu($1);
$3 @name("l0") = relu($2) @lane(0);
$4 @name("r0") = relu($2) @lane(1);
$5 @name("l1") = relu($3) @lane(0);
$6 @name("r1") = relu($4) @lane(1);
$7 @name("l2") = relu($5) @lane(0);
$8 @name("r2") = relu($6) @lane(1);
$9 @name("join") = sum($7, $8);
$10 = relu($9);
result = $10;)";
  for (const InFlight in_flight :
       {InFlight::unlimited(), InFlight::lanes(), InFlight(1), InFlight(2), InFlight(3)}) {
    SCOPED_TRACE(to_string(in_flight));
    const Step step(script, false, in_flight);
    expect_sound(step);
    EXPECT_TRUE(!in_flight.is_unlimited() || step.plan.reuse_edges.empty());
    EXPECT_TRUE(in_flight != InFlight(1) || !step.plan.reuse_edges.empty());
    expect_refused(step, step.with("l1", "r1"), "share bytes");
    EXPECT_NE(lost(step, step.with("l1", "r1")), "");
    for (std::size_t i = 0; i < step.plan.reuse_edges.size(); ++i) {
      StepPlan faulty = step.plan;
      faulty.reuse_edges.erase(faulty.reuse_edges.begin() + static_cast<std::ptrdiff_t>(i));
      expect_refused(step, faulty, "share bytes");
      EXPECT_NE(lost(step, faulty), "") << "edge " << i;
    }
  }
}

// Each value needs the two before it: slots were given back a step late, or never.
TEST(PlannerTraps, FibonacciTakesThreeSlotsHoweverLong) {
  for (int length : {10, 100}) {
    std::string script = "$1 = InputTensor(x, float32, [64]);\n$2 = relu($1);\n$3 = relu($1);\n";
    for (int i = 4; i < 4 + length; ++i) {
      script += "$" + std::to_string(i) + " = sum($" + std::to_string(i - 2) + ", $" +
                std::to_string(i - 1) + ");\n";
    }
    script += "result = $" + std::to_string(3 + length) + ";\n";
    for (const InFlight in_flight : {InFlight::unlimited(), InFlight::lanes(), InFlight(1)}) {
      const Step three(script, false, in_flight), two(script, true, in_flight);
      expect_sound(three);
      expect_sound(two);
      EXPECT_EQ(three.plan.transient_bytes(), 3 * 256);
      // The sum takes the older one's bytes, and one of the two is the output.
      EXPECT_EQ(two.plan.transient_bytes(), 256);
    }
  }
}

// Its gradient had a slot that nobody wrote, and the update added what lay there.
TEST(PlannerTraps, AnUnreachedParameterKeepsItsBits) {
  runtime::ProgramSpec spec;
  spec.name = "train";
  graph::Builder builder(spec.graph, operators());
  const auto declare = [&](const char* name, Shape shape, StorageClass cls) {
    return builder.declare(name, DType::float32, std::move(shape), cls);
  };
  const ValueId x = declare("x", {4, 8}, StorageClass::input),
                y = builder.declare("y", DType::int32, {4}, StorageClass::input),
                rate = declare("rate", {1}, StorageClass::buffer);
  const std::vector<ValueId> weights{declare("reached", {8, 8}, StorageClass::parameter),
                                     declare("unreached", {8, 8}, StorageClass::parameter)};
  builder.add1("relu", {builder.add1("dense", {x, weights[1]})});  // read, but by no loss
  const ValueId logits = builder.add1("dense", {x, weights[0]});
  const ValueId loss =
      builder.add("softmax_cross_entropy", {logits, y}, {{"divisor", std::int64_t{4}}}).front();
  const auto gradients =
      graph::add_gradients(builder, {loss}, weights, [&](std::size_t i, ValueId gradient) {
        const auto kept = builder.context;
        builder.context.phase = Phase::update;
        builder.add("sgd", {weights[i], gradient, rate, ValueId{}});
        builder.context = kept;
      });
  EXPECT_FALSE(gradients[1]);
  EXPECT_THROW(builder.add("sgd", {weights[1], gradients[1], rate, ValueId{}}), Error);

  graph::keep_state(spec.graph, operators());
  graph::select(spec.graph, *runtime::kernel_selector(kernels()));
  graph::in_place(spec.graph);
  spec.schedule = one_op_a_task(spec.graph);
  StateLayout state;
  spec.plan = plan_step(spec.graph, spec.schedule, state);
  runtime::Session session({.workers = 2});
  std::vector<runtime::ProgramSpec> specs{std::move(spec)};
  runtime::ProgramSet programs(session, kernels(), std::move(specs));
  const auto fill = [&](const char* name, float with) {
    std::ranges::fill(programs.state<float>(name), with);
  };
  fill("rate", 1);
  fill("reached", 3);
  fill("unreached", 3);
  for (int step = 0; step < 3; ++step) {
    std::fill_n(programs["train"].input<float>("x"), 32, 1.0f);
    std::fill_n(programs["train"].input<std::int32_t>("y"), 4, 1);
    programs["train"].submit();
  }
  programs["train"].wait();
  for (float w : programs.state<float>("unreached")) EXPECT_EQ(w, 3);
  EXPECT_NE(programs.state<float>("reached")[0], 3);
}

// A mask of zeros was multiplied with bytes that nobody wrote: 0 · NaN is NaN. Masks must select.
TEST(PlannerTraps, MasksSelect) {
  using codelets::testing::OpHarness;
  using List = std::vector<std::int64_t>;
  const auto filled = [](OpHarness& h, const char* name, const Shape& shape, float with) {
    const ValueId id = h.declare(name, DType::float32, shape);
    h.write(id, std::vector<float>(static_cast<std::size_t>(shape.elements()), with));
    return id;
  };
  const auto codes = [](OpHarness& h, const Shape& shape, std::uint8_t with) {
    const ValueId id = h.declare("code", DType::uint8, shape);
    h.write(id, std::vector<std::uint8_t>(static_cast<std::size_t>(shape.elements()), with));
    return id;
  };
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  /// All are zeros, but where `live` says.
  const auto expect_zeros = [](OpHarness& h, const std::vector<ValueId>& results,
                               const std::function<bool(std::size_t)>& live = {}) {
    for (const std::string& kernel : h.cpu_kernels()) {
      h.run(kernel);
      for (ValueId id : results) {
        const std::vector<float> values = h.read<float>(id);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const bool wild = live && live(i);
          ASSERT_TRUE(wild ? std::isnan(values[i]) : values[i] == 0) << kernel << " at " << i;
        }
      }
    }
  };
  for (const std::int64_t c : {1, 16, 33}) {
    OpHarness relu;
    const Shape image{2, 3, 3, c};
    expect_zeros(
        relu, relu.op("relu_grad", {filled(relu, "g", image, nan), filled(relu, "y", image, 0)}));
    for (const std::int64_t n : {2, 3}) {  // one window; its last tap has won
      OpHarness pool;
      const Shape pooled{2, 1, 1, c};
      const auto taps = static_cast<std::size_t>(n * n), last = taps - 1;
      const ValueId code = codes(pool, pooled, static_cast<std::uint8_t>(last));
      expect_zeros(pool,
                   pool.op("max_pool2d_grad", {filled(pool, "g", pooled, nan), code},
                           {{"kernel", List{n, n}}, {"size", List{n, n}}}),
                   [&](std::size_t i) { return i / static_cast<std::size_t>(c) % taps == last; });
    }
    OpHarness input, weight;  // fused pooling: no tap has won
    const Shape out{2, 2, 2, c};
    expect_zeros(input, input.op("conv2d_relu_max_pool2d_grad_input",
                                 {filled(input, "g", out, nan), codes(input, out, 0x80),
                                  filled(input, "w", {3, 3, 4, c}, 1)},
                                 {{"size", List{6, 6}}}));
    expect_zeros(weight, weight.op("conv2d_relu_max_pool2d_grad_weight",
                                   {filled(weight, "x", {2, 6, 6, 4}, 1),
                                    filled(weight, "g", out, nan), codes(weight, out, 0x80)},
                                   {{"kernel", List{3, 3}}}));
  }
}

}  // namespace
}  // namespace arenite::plan
