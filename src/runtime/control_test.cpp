// Blocks as they run, against a plain interpreter.
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

#include "src/graph/random_regions.hpp"
#include "src/graph/test_operators.hpp"

namespace arenite::runtime {
namespace {

using graph::Graph;
using graph::OpId;
using graph::RegionId;
using graph::ValueId;

// ---- the test's operators: enough to tell every order of them ----

float relu_of(float x) { return 0.75f * x + 1; }
float add_of(float a, float b) { return a - 0.5f * b; }

struct Sizes {
  std::vector<std::int64_t> elements;  // by operand, then results
};

PreparedKernel with_sizes(KernelFunction run, const graph::OpView& op) {
  auto sizes = std::make_shared<Sizes>();
  for (std::size_t i = 0; i < op.operand_count(); ++i)
    sizes->elements.push_back(op.operand(i).shape.elements());
  return {run, std::move(sizes)};
}

void run_relu(const KernelCall& call) {
  const auto n = static_cast<const Sizes*>(call.state)->elements[0];
  for (std::int64_t i = 0; i < n; ++i) call.out<float>(0)[i] = relu_of(call.in<float>(0)[i]);
}

void run_add(const KernelCall& call) {
  const auto n = static_cast<const Sizes*>(call.state)->elements[0];
  for (std::int64_t i = 0; i < n; ++i)
    call.out<float>(0)[i] = add_of(call.in<float>(0)[i], call.in<float>(1)[i]);
}

void run_concat(const KernelCall& call) {
  float* out = call.out<float>(0);
  const auto& elements = static_cast<const Sizes*>(call.state)->elements;
  for (std::size_t part = 0; part < elements.size(); ++part)
    out = std::copy_n(call.in<float>(part), elements[part], out);
}

const KernelTable& kernels() {
  static const KernelTable all = [] {
    KernelTable table;
    const auto add = [&](const char* op, KernelFunction run) {
      table.add(op, {.name = "plain", .prepare = [run](const graph::OpView& view) {
                       return with_sizes(run, view);
                     }});
    };
    add("relu", run_relu);
    add("add", run_add);
    add("concat", run_concat);
    return table;
  }();
  return all;
}

// ---- the plain interpreter: every value has numbers of its own ----

using Numbers = std::vector<double>;

class Interpreter {
 public:
  Interpreter(const Graph& graph, const std::map<std::string, Numbers>& inputs) : graph_(graph) {
    for (std::size_t i = 0; i < graph.value_count(); ++i) {
      const ValueId id(i);
      if (graph[id].is_declared()) values_[id] = inputs.at(graph[id].name);
    }
  }

  std::vector<Numbers> run() {
    run(graph_[Graph::body].ops);
    std::vector<Numbers> outputs;
    for (ValueId id : graph_.outputs) outputs.push_back(values_.at(id));
    return outputs;
  }

 private:
  void run(const std::vector<OpId>& ops) {
    for (OpId id : ops) run(graph_[id]);
  }

  void run(const graph::Op& op) {
    const auto in = [&](std::size_t i) -> const Numbers& { return values_.at(op.operands[i]); };
    if (op.name() == "if") return run_if(op);
    if (op.name() == "loop") return run_loop(op);
    Numbers y;
    if (op.name() == "relu") {
      for (double x : in(0)) y.push_back(relu_of(static_cast<float>(x)));
    } else if (op.name() == "add") {
      for (std::size_t i = 0; i < in(0).size(); ++i)
        y.push_back(add_of(static_cast<float>(in(0)[i]), static_cast<float>(in(1)[i])));
    } else if (op.name() == "slice") {
      y.assign(in(0).begin() + op.attributes.integer("begin"),
               in(0).begin() + op.attributes.integer("end"));
    } else {
      ASSERT_EQ(op.name(), "concat");
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        y.insert(y.end(), in(i).begin(), in(i).end());
    }
    values_[op.results[0]] = y;
  }

  void run_if(const graph::Op& op) {
    const graph::Region& region = graph_[op.regions[values_.at(op.operands[0])[0] != 0 ? 0 : 1]];
    run(region.ops);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (region.results[i]) values_[op.results[i]] = values_.at(region.results[i]);
    }
  }

  void run_loop(const graph::Op& op) {
    const graph::Region& body = graph_[op.regions[0]];
    double trips = static_cast<double>(op.attributes.integer("max_trips"));
    if (op.operands[0]) trips = std::min(trips, values_.at(op.operands[0])[0]);
    bool more = !op.operands[1] || values_.at(op.operands[1])[0] != 0;
    std::vector<Numbers> carried;
    for (std::size_t i = 2; i < op.operands.size(); ++i)
      carried.push_back(values_.at(op.operands[i]));
    for (double trip = 0; more && trip < trips; ++trip) {
      values_[body.parameters[0]] = {trip};
      for (std::size_t i = 0; i < carried.size(); ++i) values_[body.parameters[i + 1]] = carried[i];
      run(body.ops);
      std::size_t next = 0;
      if (op.operands[1]) more = values_.at(body.results[next++])[0] != 0;
      for (Numbers& numbers : carried) numbers = values_.at(body.results[next++]);
    }
    for (std::size_t i = 0; i < carried.size(); ++i) values_[op.results[i]] = carried[i];
  }

  const Graph& graph_;
  std::map<ValueId, Numbers> values_;
};

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

std::map<std::string, Numbers> draw_inputs(const Graph& graph, std::mt19937& random) {
  std::map<std::string, Numbers> inputs;
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

std::vector<Numbers> run(Program& program, const std::map<std::string, Numbers>& inputs) {
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
    std::map<std::string, Numbers> inputs{{"c", {c}}, {"d", {d}}, {"e", {e}}};
    for (int i = 0; i < 64; ++i) {
      inputs["x"].push_back(i);
      inputs["y"].push_back(100 - i);
    }
    const std::vector<Numbers> expected = Interpreter(graph, inputs).run();
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

TEST_F(Blocks, AreWhatTheInterpreterSaysOfRandomGraphs) {
  std::mt19937 random(1);
  const unsigned graphs = ARENITE_CHECKED ? 60 : 200;
  for (unsigned seed = 0; seed < graphs; ++seed) {
    const Graph graph = graph::testing::RandomRegions(seed).make();
    plan::StateLayout state;
    for (const bool share : {false, true}) {
      std::vector<ProgramSpec> specs;
      specs.push_back(program(graph, share, state));
      ProgramSet set(session, kernels(), std::move(specs));
      for (int step = 0; step < 6; ++step) {
        const auto inputs = draw_inputs(graph, random);
        ASSERT_EQ(run(set["blocks"], inputs), Interpreter(graph, inputs).run())
            << "seed " << seed << (share ? ", shared\n" : "\n") << graph::print(graph);
      }
    }
  }
}

TEST_F(Blocks, OfUnknownKindsAreRefused) {
  Graph graph = graph::parse(
      "$1 = InputTensor(x, float32, [64]); $2 = block($1) ($3) { $4 = relu($3); yield $4; } "
      "result = $2;",
      graph::testing::table());
  plan::StateLayout state;
  std::vector<ProgramSpec> specs;
  specs.push_back(program(std::move(graph), false, state));
  EXPECT_EQ(graph::testing::message([&] { ProgramSet(session, kernels(), std::move(specs)); }),
            "program 'blocks', block #1: an op that holds blocks, and does not say how they run; "
            "expected 'if' or 'loop'");
}

}  // namespace
}  // namespace arenite::runtime
