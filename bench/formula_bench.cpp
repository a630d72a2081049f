// Formulas of src/expr/formulas.def on one thread, in one loop and by instructions on tiles, some
// beside a loop by hand: ns an element, in the first cache, in the last one, and from memory.
#include "bench/arenite_bench.hpp"

#include <benchmark/benchmark.h>
#include <arenite/expr/text.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/expr/formulas.hpp"

namespace {

using namespace arenite;

using HandLoop = void (*)(const float* const* operands, std::int64_t count, float* result);

#define ARENITE_BY_HAND [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]

ARENITE_BY_HAND void add(const float* const* operands, std::int64_t count, float* y) {
  const float *a = operands[0], *b = operands[1];
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

ARENITE_BY_HAND void relu(const float* const* operands, std::int64_t count, float* y) {
  const float* x = operands[0];
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] <= 0 ? 0 : x[i];
}

ARENITE_BY_HAND void relu_grad(const float* const* operands, std::int64_t count, float* dx) {
  const float *gradient = operands[0], *output = operands[1];
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) dx[i] = output[i] <= 0 ? 0 : gradient[i];
}

HandLoop by_hand(std::string_view formula) {
  if (formula == "add") return add;
  if (formula == "relu") return relu;
  return formula == "relu_grad" ? relu_grad : nullptr;
}

/// By the kernel of that name, or by hand.
void run(benchmark::State& state, const expr::Formula& formula, const std::string& kernel_name) {
  const std::int64_t elements = state.range(0);
  graph::Graph graph;
  graph::Builder builder(graph, operators());
  std::vector<graph::ValueId> ids;
  for (const std::string& name : formula.operands)
    ids.push_back(
        builder.declare(name, DType::float32, Shape{elements}, graph::StorageClass::buffer));
  const std::string text = expr::print(formula.standard(expr::Type::float32));
  builder.add("map", ids, {{"expression", text}});
  const graph::Op& op = graph[graph[graph::Graph::body].ops.back()];
  const graph::OpView view(graph, op);
  const HandLoop hand = kernel_name == "hand" ? by_hand(formula.name) : nullptr;
  const runtime::Kernel& kernel =
      kernels().at("map", hand ? "tiles" : kernel_name, DeviceKind::cpu);
  const runtime::PreparedKernel prepared = kernel.prepare(view);

  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-3, 3);
  std::vector<std::vector<float>> values(op.operands.size() + op.results.size());
  std::vector<void*> operands, results;
  for (std::vector<float>& one : values) {
    one.resize(static_cast<std::size_t>(elements));
    for (float& x : one) x = number(random);
    (operands.size() < op.operands.size() ? operands : results).push_back(one.data());
  }
  std::vector<std::byte> workspace(static_cast<std::size_t>(kernel.workspace(view)) + 256);
  runtime::StatusWord status;
  const runtime::KernelCall call{.operands = operands.data(),
                                 .results = results.data(),
                                 .workspace = workspace.data(),
                                 .state = prepared.state.get(),
                                 .status = &status};
  std::vector<const float*> sources;
  for (const void* operand : operands) sources.push_back(static_cast<const float*>(operand));
  for (auto _ : state) {
    if (hand) {
      hand(sources.data(), elements, static_cast<float*>(results[0]));
    } else {
      prepared.run(call);
    }
    benchmark::ClobberMemory();
  }
  state.counters["ns/element"] = benchmark::Counter(
      static_cast<double>(elements) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

}  // namespace

void register_formulas() {
  for (const expr::Formula& formula : expr::formulas()) {
    if (formula.is_of_rows) continue;  // group_bench.cpp
    for (const char* kernel : {"fused", "tiles", "hand"}) {
      if (kernel == std::string("hand") && !by_hand(formula.name)) continue;
      const std::string name = "formula/" + std::string(formula.name) + "/" + kernel;
      benchmark::RegisterBenchmark(name.c_str(), run, formula, kernel)
          ->Arg(4 << 10)
          ->Arg(256 << 10)
          ->Arg(16 << 20);
    }
  }
}
