// Blocks as they run in programs, against the reference evaluator.
#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "src/base/testing.hpp"
#include "src/graph/random_regions.hpp"
#include "src/graph/test_operators.hpp"
#include "tests/reference/evaluator.hpp"

namespace arenite::runtime {
namespace {

using graph::Graph;
using graph::ValueId;

// ---- the test's operators: enough to tell every order of them ----

float relu_of(float x) { return 0.75f * x + 1; }
float add_of(float a, float b) { return a - 0.5f * b; }

using Sizes = std::vector<std::int64_t>;  // elements by operand

Sizes sizes_of(const graph::OpView& op) {
  Sizes sizes;
  for (std::size_t i = 0; i < op.operand_count(); ++i)
    sizes.push_back(op.operand(i).shape.elements());
  return sizes;
}

void run_relu(const KernelCall& call, const Sizes& sizes) {
  for (std::int64_t i = 0; i < sizes[0]; ++i) call.out<float>(0)[i] = relu_of(call.in<float>(0)[i]);
}

void run_add(const KernelCall& call, const Sizes& sizes) {
  for (std::int64_t i = 0; i < sizes[0]; ++i)
    call.out<float>(0)[i] = add_of(call.in<float>(0)[i], call.in<float>(1)[i]);
}

void run_concat(const KernelCall& call, const Sizes& sizes) {
  float* out = call.out<float>(0);
  for (std::size_t part = 0; part < sizes.size(); ++part)
    out = std::copy_n(call.in<float>(part), sizes[part], out);
}

const KernelTable& kernels() {
  static const KernelTable all = [] {
    KernelTable table;
    table.add("relu", {.name = "plain", .prepare = prepare<sizes_of, run_relu>});
    table.add("add", {.name = "plain", .prepare = prepare<sizes_of, run_add>});
    table.add("concat", {.name = "plain", .prepare = prepare<sizes_of, run_concat>});
    return table;
  }();
  return all;
}

// ---- the same in the reference evaluator, rounded as the kernels round ----

using Numbers = std::vector<double>;
using Inputs = std::map<std::string, Numbers>;

reference::Rules make_rules() {
  reference::Rules rules = reference::rules();  // slices
  rules["relu"] = [](reference::Call& call) {
    for (std::int64_t i = 0; i < call.in(0).shape.elements(); ++i)
      call.out(0)[i] = relu_of(static_cast<float>(call.in(0)[i]));
  };
  rules["add"] = [](reference::Call& call) {
    for (std::int64_t i = 0; i < call.in(0).shape.elements(); ++i) {
      call.out(0)[i] = add_of(static_cast<float>(call.in(0)[i]), static_cast<float>(call.in(1)[i]));
    }
  };
  rules["concat"] = [](reference::Call& call) {
    auto out = call.out(0).data.begin();
    for (std::size_t part = 0; part < call.operands(); ++part)
      out = std::ranges::copy(call.in(part).data, out).out;
  };
  return rules;
}

std::vector<Numbers> expected_outputs(const Graph& graph, const Inputs& inputs) {
  static const reference::Rules rules = make_rules();
  reference::Evaluator evaluator(graph, rules);
  for (const auto& [name, numbers] : inputs) evaluator[name].data = numbers;
  evaluator.run();
  std::vector<Numbers> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(evaluator[id].data);
  return outputs;
}

// ---- both, side by side ----

ProgramSpec program(Graph graph, bool share, plan::StateLayout& state) {
  ProgramSpec spec{.name = "blocks"};
  graph::select(graph, *kernel_selector(kernels()));
  if (share) {
    graph::in_place(graph);
  } else {
    graph::join_handovers(graph);  // where values swap they need a workspace
  }
  spec.graph = std::move(graph);
  spec.schedule = graph::coarsen(spec.graph);
  spec.plan = plan::plan_step(spec.graph, spec.schedule, state, {.reuse = share});
  return spec;
}

Inputs draw_inputs(const Graph& graph, std::mt19937& random) {
  Inputs inputs;
  for (ValueId id : graph.declared(graph::StorageClass::input)) {
    const graph::Value& value = graph[id];
    Numbers& numbers = inputs[value.name];
    for (std::int64_t i = 0; i < value.shape.elements(); ++i) {
      // Integers are conditions and trips: no, and few or many of them.
      numbers.push_back(value.type == DType::float32 ? static_cast<double>(random() % 1000)
                                                     : static_cast<double>(random() % 5) - 1);
    }
  }
  return inputs;
}

template <class T>
void give(Program& program, const std::string& name, const Numbers& numbers) {
  T* bytes = program.input<T>(name);
  for (std::size_t i = 0; i < numbers.size(); ++i) bytes[i] = static_cast<T>(numbers[i]);
}

std::vector<Numbers> run(Program& program, const Inputs& inputs) {
  const Graph& graph = program.spec().graph;
  for (ValueId id : graph.declared(graph::StorageClass::input)) {
    const Numbers& numbers = inputs.at(graph[id].name);
    if (graph[id].type == DType::float32) give<float>(program, graph[id].name, numbers);
    if (graph[id].type == DType::int64) give<std::int64_t>(program, graph[id].name, numbers);
    if (graph[id].type == DType::int32) give<std::int32_t>(program, graph[id].name, numbers);
    if (graph[id].type == DType::uint8) give<std::uint8_t>(program, graph[id].name, numbers);
  }
  program.submit();
  std::vector<Numbers> outputs;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const auto bytes = program.output<float>(i);
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

/// A script's outputs for inputs c (int64), d (int32), e (uint8), x and y (float, 64 elements).
class Blocks : public ::testing::Test {
 protected:
  std::vector<Numbers> outputs(const std::string& rest, double c, double d = 0, double e = 0) {
    const Graph graph = graph::parse(
        "$1 = InputTensor(c, int64, [1]);\n$2 = InputTensor(d, int32, [1]);\n"
        "$3 = InputTensor(e, uint8, [1]);\n$4 = InputTensor(x, float32, [64]);\n"
        "$5 = InputTensor(y, float32, [64]);\n" +
            rest,
        graph::testing::table());
    Inputs inputs{{"c", {c}}, {"d", {d}}, {"e", {e}}};
    for (int i = 0; i < 64; ++i) {
      inputs["x"].push_back(i);
      inputs["y"].push_back(100 - i);
    }
    const std::vector<Numbers> expected = expected_outputs(graph, inputs);
    plan::StateLayout state;
    for (const bool share : {false, true}) {
      std::vector<ProgramSpec> specs;
      specs.push_back(program(graph, share, state));
      ProgramSet set(session, kernels(), std::move(specs));
      for (int step = 0; step < 3; ++step) EXPECT_EQ(run(set["blocks"], inputs), expected) << rest;
    }
    return expected;
  }

  Session session{SessionOptions{.workers = 1}};
};

TEST_F(Blocks, RunTheSideThatTheConditionNames) {
  const std::string script = R"($6 = if($1) { $7 = relu($4); yield $7; } else { yield $5; }
                                $8 = if($2) { $9 = relu($6); yield $9; } else { yield $4; }
                                $10 = if($3) { yield $8; } else { $11 = add($8, $6); yield $11; }
                                result = $6, $8, $10;)";
  for (const double c : {0, 1, -7}) {
    for (const double d : {0, 1, -7}) {
      for (const double e : {0, 1, 255}) {
        const auto seen = outputs(script, c, d, e);
        EXPECT_EQ(seen[0][0], c != 0 ? 1 : 100);
        EXPECT_EQ(seen[1][1], d == 0 ? 1 : 0.75 * seen[0][1] + 1);
      }
    }
  }
}

TEST_F(Blocks, RepeatAsOftenAsTripsAndConditionAllow) {
  for (const double c : {-3, 0, 1, 2, 5, 9}) {
    const auto seen = outputs(R"($6, $7 = loop($1, _, $4, $5, max_trips=5) ($8, $9, $10) {
                                   $11 = relu($10); yield $11, $9;
                                 }
                                 result = $6, $7;)",
                              c);
    const int trips = std::clamp(static_cast<int>(c), 0, 5);
    float x = 3, y = 97;
    for (int i = 0; i < trips; ++i) {
      const float next = relu_of(y);
      y = x;
      x = next;
    }
    EXPECT_EQ(seen[0][3], x) << c;
    EXPECT_EQ(seen[1][3], y) << c;
  }
  // The number of the trip is the next condition: 0 ends it behind the first.
  EXPECT_EQ(outputs(R"($6 = loop(_, $1, $4, max_trips=5) ($7, $8) { $9 = relu($8); yield $7, $9; }
                       result = $6;)",
                    1)[0][0],
            1);
  EXPECT_EQ(outputs(R"($6 = loop(_, $1, $4, max_trips=5) ($7, $8) { $9 = relu($8); yield $7, $9; }
                       result = $6;)",
                    0)[0][0],
            0);
}

TEST_F(Blocks, FindWhatTheTakenSideSaved) {
  const std::string script = R"($6, $7 = if($1) { $8 = relu($4); yield $8, _; }
                                         else { $9 = add($4, $5); yield _, $9; }
                                $10 = relu($5);
                                $11 = if($1) { $12 = add($6, $10); yield $12; }
                                      else { $13 = add($7, $10); yield $13; }
                                result = $11;)";
  EXPECT_EQ(outputs(script, 1)[0][0], add_of(relu_of(0), relu_of(100)));
  EXPECT_EQ(outputs(script, 0)[0][0], add_of(add_of(0, 100), relu_of(100)));
}

TEST_F(Blocks, AreWhatTheReferenceSaysOfRandomGraphs) {
  std::mt19937 random(1);
  const unsigned graphs = arenite::testing::fewer_where_slow(200U);
  for (unsigned seed = 0; seed < graphs; ++seed) {
    const Graph graph = graph::testing::RandomRegions(seed).make();
    plan::StateLayout state;
    for (const bool share : {false, true}) {
      std::vector<ProgramSpec> specs;
      specs.push_back(program(graph, share, state));
      ProgramSet set(session, kernels(), std::move(specs));
      for (int step = 0; step < 6; ++step) {
        const auto inputs = draw_inputs(graph, random);
        ASSERT_EQ(run(set["blocks"], inputs), expected_outputs(graph, inputs))
            << "seed " << seed << (share ? ", shared\n" : "\n") << graph::print(graph);
      }
    }
  }
}

TEST(TidiedBlocks, GiveTheSame) {
  std::mt19937 random(11);
  int less = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Graph graph = graph::testing::RandomRegions(seed).make();
    Graph tidied = graph;
    if (graph::tidy(tidied, graph::testing::table()) > 0) ++less;
    for (int step = 0; step < 4; ++step) {
      const auto inputs = draw_inputs(graph, random);
      ASSERT_EQ(expected_outputs(tidied, inputs), expected_outputs(graph, inputs))
          << "seed " << seed << '\n'
          << graph::print(graph) << graph::print(tidied);
    }
  }
  EXPECT_GT(less, 300);
}

TEST_F(Blocks, OfUnknownKindsAreRefused) {
  Graph graph = graph::parse(
      "$1 = InputTensor(x, float32, [64]); $2 = block($1) ($3) { $4 = relu($3); yield $4; } "
      "result = $2;",
      graph::testing::table());
  plan::StateLayout state;
  std::vector<ProgramSpec> specs;
  specs.push_back(program(std::move(graph), false, state));
  EXPECT_EQ(graph::testing::error_of([&] { ProgramSet(session, kernels(), std::move(specs)); }),
            "program 'blocks', block #1: an op that holds blocks, and does not say how they run; "
            "expected 'if' or 'loop'");
}

}  // namespace
}  // namespace arenite::runtime
