// What `tidy` makes of a graph gives the same bits, run op by op with plain kernels.
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "tests/oracle/executor.hpp"
#include "tests/script_pair.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace arenite::oracle {
namespace {

using graph::Graph;
using graph::ValueId;

/// The last kernel of the table, which takes an op whatever lies around it.
class PlainKernels final : public graph::KernelSelector {
 public:
  bool has_kernel(const graph::OpView& op, const Space& space) const override {
    return all_->has_kernel(op, space);
  }
  std::string choose(const graph::OpView& op) const override {
    std::string last;
    for (const runtime::Kernel& kernel : kernels().find(op.op())) {
      if (kernel.device == DeviceKind::cpu && kernel.compute == runtime::Compute::float32)
        last = kernel.name;
    }
    return last;
  }
  graph::Support supports(const graph::OpView& op, const std::string& kernel) const override {
    return all_->supports(op, kernel);
  }
  std::int64_t workspace(const graph::OpView& op, const std::string& kernel) const override {
    return all_->workspace(op, kernel);
  }
  int wanted_halo(const graph::OpView&, const std::string&, std::size_t) const override {
    return 0;
  }
  bool writes_halo(const graph::OpView&, const std::string&) const override { return false; }

 private:
  const std::unique_ptr<graph::KernelSelector> all_ = runtime::kernel_selector(kernels());
};

/// Four steps of the graph as it is.
Trace run(Graph graph, const NamedBytes& numbers) {
  RandomProgram program;
  program.steps.resize(4);
  NamedBytes constants;
  for (const auto& [name, bytes] : numbers) {
    const graph::StorageClass cls = graph.root_storage(graph.find(name)).cls;
    if (cls == graph::StorageClass::constant) constants[name] = bytes;
    if (graph::is_persistent(cls)) program.state[name] = bytes;
    if (cls != graph::StorageClass::input) continue;
    for (Step& step : program.steps) step.inputs[name] = bytes;
  }
  graph::select(graph, PlainKernels());
  runtime::ProgramSpec& spec = program.programs.emplace_back();
  spec.name = "graph";
  spec.graph = std::move(graph);
  spec.schedule = graph::coarsen(spec.graph);
  plan::StateLayout state;
  spec.plan = plan::plan_step(spec.graph, spec.schedule, state);
  complete(program, std::move(constants), state);
  return reference(program, real_kernels(program));
}

/// The operators, of which products take factors as they are: transposed ones may be added up in
/// another order.
const graph::OperatorTable& exact_operators() {
  static const graph::OperatorTable all = [] {
    graph::OperatorTable table;
    for (const std::string& name : operators().names()) {
      graph::OperatorDefinition definition = *operators().at(name);
      if (name == "matmul" || name == "dense") definition.simplify = {};
      table.add(std::move(definition));
    }
    return table;
  }();
  return all;
}

/// Tidied, it gives what it gave; returns how many ops are gone or others.
int compare(const RandomGraph& random) {
  Graph tidied = random.graph, again;
  for (std::size_t i = 0; i < tidied.op_count(); ++i) {
    graph::Op& op = tidied[graph::OpId(i)];
    op.definition = exact_operators().at(op.name());
  }
  const int count = graph::tidy(tidied, exact_operators());
  // There is no order to run none in.
  const auto is_view = [&](graph::OpId id) { return graph::is_view_op(tidied, id); };
  if (std::ranges::all_of(tidied[Graph::body].ops, is_view)) return count;
  const Trace actual = run(tidied, random.numbers), expected = run(random.graph, random.numbers);
  // An index that was written to may be wrong; who says so has another number now.
  const auto is_wrong = [](const Seen& step) { return step.status != runtime::StatusWord::ok; };
  if (std::ranges::any_of(expected, is_wrong)) return 0;
  EXPECT_EQ(difference(actual, expected), "") << print(random.graph) << print(tidied);
  again = tidied;
  EXPECT_EQ(graph::tidy(again, exact_operators()), 0) << print(random.graph) << print(tidied);
  return count;
}

TEST(TidiedPrograms, HaveTheSameBits) {
  int many = 0;
  for (std::uint32_t seed = 0; seed < (ARENITE_PLAIN_KERNELS ? 60U : 300U); ++seed) {
    SCOPED_TRACE("program " + std::to_string(seed));
    const RandomGraph random = random_ops_graph(seed);
    if (compare(random) > 5) ++many;
    if (HasFailure()) return;
  }
  EXPECT_GT(many, ARENITE_PLAIN_KERNELS ? 20 : 100);
}

/// Of products of transposed matrices, and others: c = x · w, with x and w as they are given.
TEST(TidiedPrograms, HaveProductsThatAreAsExact) {
  for (const auto& [x, w, product] : std::vector<std::array<std::string, 3>>{
           {"[5, 70]", "[9, 70]", "matmul($1, $4)"},
           {"[5, 70]", "[9, 70]", "dense($1, $4)"},
           {"[70, 5]", "[70, 9]", "matmul($3, $2)"},
           {"[70, 5]", "[70, 9]", "dense($3, $2)"},
           {"[70, 5]", "[9, 70]", "matmul($3, $4)"},
           {"[5, 70]", "[70, 9]", "matmul($3, $4, transpose_a=1, transpose_b=1)"},
           {"[70]", "[9, 70]", "matmul($1, $4)"}}) {
    SCOPED_TRACE(product + " of " + x + " and " + w);
    const std::string permuted = x == "[70]" ? "$3 = relu($1);" : "$3 = permute($1, dims=[1, 0]);";
    RandomGraph random{
        .graph = graph::parse(
            "$1 = InputTensor(x, float32, " + x + "); $2 = InputTensor(w, float32, " + w + ");" +
                permuted + "$4 = permute($2, dims=[1, 0]); $5 = " + product + "; result = $5;",
            operators()),
        .numbers = {}};
    Draw draw(1);
    for (const char* name : {"x", "w"}) {
      const std::int64_t count = random.graph[random.graph.find(name)].shape.elements();
      random.numbers[name] = random_bytes(draw, DType::float32, count, -1, 1);
    }
    Graph tidied = random.graph;
    graph::tidy(tidied, operators());
    const auto& ops = tidied[Graph::body].ops;
    ASSERT_EQ(ops.size(), 1u) << print(tidied);
    EXPECT_EQ(tidied[ops[0]].name(), "matmul");
    const Bytes actual = run(tidied, random.numbers)[0].outputs[0],
                expected = run(random.graph, random.numbers)[0].outputs[0];
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t at = 0; at < actual.size(); at += sizeof(float)) {
      float a = 0, b = 0;
      std::memcpy(&a, &actual[at], sizeof a);
      std::memcpy(&b, &expected[at], sizeof b);
      EXPECT_NEAR(a, b, 1e-5);
    }
  }
}

/// Permutes in front of a product, ops that nobody needs, equal ones, and a chain to the output.
TEST(TidiedScripts, HaveNoBytesThatNobodyNeeds) {
  testing::Pair pair(R"(
    $1 = InputTensor(x, float32, [30, 20]); $2 = InputTensor(y, float32, [30, 10]);
    $3 = permute($1, dims=[1, 0]); $4 = permute($3, dims=[1, 0]); $5 = permute($4, dims=[1, 0]);
    $6 = matmul($5, $2); $7 = silu($1); $8 = add($7, $7); $9 = relu($6); $10 = relu($6);
    $11 = relu($10); $12 = silu($11); $13 = identity($12); $14 = add($9, $13); result = $13;)",
                     1);
  EXPECT_EQ(pair.model().plan().transient_bytes(), 0);
  EXPECT_LT(pair.difference(), 1e-5);
}

/// A product reads a transposed weight with no more scratch than its copy would have taken.
TEST(TidiedScripts, NeedNoMoreBytesForATransposedWeight) {
  testing::Pair pair(R"(
    $1 = InputTensor(x, float32, [8, 16]); $2 = ConstantTensor(w, float32, [4, 16]);
    $3 = permute($2, dims=[1, 0]); $4 = matmul($1, $3); result = $4;)",
                     3);
  EXPECT_LE(pair.model().plan().transient_bytes(), 16 * 4 * 4);
  EXPECT_LT(pair.difference(), 1e-5);
}

/// What a buffer held before is copied; its new version is kept, whoever reads it.
TEST(TidiedScripts, KeepVersionsOfBuffers) {
  testing::Pair pair(R"(
    $1 = InputTensor(x, float32, [1, 4]); $2 = BufferTensor(s, float32, [3, 4]);
    $3 = identity($2); $4 = full(shape=[1], value=1, type="int64"); $5 = slice($2, begin=0, end=3);
    $6 = slice($5, begin=1, end=3); $7 = replace_slice($6, $1, $4); $8 = permute($3, dims=[1, 0]);
    $9 = permute($8, dims=[1, 0]); $10 = relu($9); $11 = relu($2); result = $10, $11, $9;)",
                     2);
  for (int time = 0; time < 4; ++time) EXPECT_EQ(pair.difference(), 0);
}

}  // namespace
}  // namespace arenite::oracle
