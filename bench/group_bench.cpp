// Ops that reduce groups of elements, on one thread: those with kernels of their own beside the
// same as a `reduce`. ns an element of the first operand.
#include "bench/arenite_bench.hpp"

#include <benchmark/benchmark.h>
#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace arenite;
using List = std::vector<std::int64_t>;

struct Case {
  std::string name, op, kernel;
  std::vector<Shape> operands;
  graph::Attributes attributes;
};

graph::Attributes reduction(std::string formula, List axes) {
  return {{"axes", std::move(axes)}, {"expression", std::move(formula)}};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Shape& rows : {Shape{64, 64}, Shape{512, 128}, Shape{256, 512}, Shape{64, 4096}}) {
    const std::string size = "/" + std::to_string(rows[0]) + "x" + std::to_string(rows[1]);
    const Shape gain{rows[1]}, row{rows[0], 1};
    all.push_back({"rms_norm/reduce" + size,
                   "reduce",
                   "tiles",
                   {rows, gain},
                   reduction("$1 * rsqrt(mean($1 * $1) + 1e-5) * $2", {1})});
    all.push_back({"softmax/reduce" + size,
                   "reduce",
                   "tiles",
                   {rows},
                   reduction("e = exp($1 - max($1)); yield e * (1 / sum(e))", {1})});
    all.push_back(
        {"sum_to_rows/own" + size, "sum_to", "tiles", {rows}, {{"shape", List{rows[0], 1}}}});
    all.push_back(
        {"sum_to_rows/reduce" + size, "reduce", "tiles", {rows}, reduction("sum($1)", {1})});
  }
  for (const Shape& rows : {Shape{64, 10}, Shape{64, 512}, Shape{50176, 8}, Shape{12544, 32}}) {
    const std::string size = "/" + std::to_string(rows[0]) + "x" + std::to_string(rows[1]);
    all.push_back({"bias_grad/own" + size, "bias_grad", "plain", {rows}, {}});
    all.push_back({"sum_to/own" + size, "sum_to", "tiles", {rows}, {{"shape", List{1, rows[1]}}}});
    all.push_back(
        {"bias_grad/reduce" + size, "reduce", "tiles", {rows}, reduction("sum($1)", {0})});
  }
  std::vector<Case> fused;
  for (const Case& one : all) {
    if (one.op != "reduce") continue;
    fused.push_back(one);
    fused.back().name += "/fused";
    fused.back().kernel = "fused";
  }
  all.insert(all.end(), fused.begin(), fused.end());
  return all;
}

void run(benchmark::State& state, const Case& one) {
  graph::Graph graph;
  graph::Builder builder(graph, operators());
  std::vector<graph::ValueId> ids;
  for (const Shape& shape : one.operands)
    ids.push_back(builder.declare("x" + std::to_string(ids.size()), DType::float32, shape,
                                  graph::StorageClass::buffer));
  builder.add(one.op, ids, one.attributes);
  const graph::OpView view(graph, graph[graph[graph::Graph::body].ops.back()]);
  const runtime::Kernel& kernel = kernels().at(one.op, one.kernel, DeviceKind::cpu);
  if (kernel.supports && !kernel.supports(view)) return state.SkipWithError("not taken");
  const runtime::PreparedKernel prepared = kernel.prepare(view);

  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-3, 3);
  std::vector<std::vector<float>> values;
  std::vector<void*> operands, results;
  const auto value = [&](const Shape& shape) {
    values.emplace_back(static_cast<std::size_t>(shape.elements()));
    for (float& x : values.back()) x = number(random);
    return values.back().data();
  };
  for (const Shape& shape : one.operands) operands.push_back(value(shape));
  for (std::size_t i = 0; i < view.op().results.size(); ++i)
    results.push_back(value(view.result(i).shape));
  std::vector<double> workspace(
      static_cast<std::size_t>(kernel.workspace ? kernel.workspace(view) : 0) / 8 + 64);
  runtime::StatusWord status;
  const runtime::KernelCall call{.operands = operands.data(),
                                 .results = results.data(),
                                 .workspace = workspace.data(),
                                 .state = prepared.state.get(),
                                 .status = &status};
  for (auto _ : state) {
    prepared.run(call);
    benchmark::ClobberMemory();
  }
  state.counters["ns/element"] = benchmark::Counter(
      static_cast<double>(one.operands[0].elements()) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

}  // namespace

void register_groups() {
  for (const Case& one : cases())
    benchmark::RegisterBenchmark(("group/" + one.name).c_str(), run, one);
}
