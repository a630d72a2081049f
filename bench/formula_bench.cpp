// Formulas of src/expr/formulas.def, and dropout, on one and on two threads: in one loop, by
// instructions on tiles, and by hand where bench/hand_loops.cpp has them. ns an element, in the
// first cache, in the last one, and from memory. bench/formulas_torch.py has PyTorch beside them.
#include "bench/arenite_bench.hpp"

#include <benchmark/benchmark.h>
#include <arenite/expr/text.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/hand_loops.hpp"
#include "src/expr/formulas.hpp"

namespace {

using namespace arenite;

constexpr std::int64_t columns = 256;

struct Case {
  std::string name, text;
  std::vector<std::string> operands;
  bool is_of_rows = false;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const expr::Formula& formula : expr::formulas()) {
    all.push_back({std::string(formula.name), expr::print(formula.standard(expr::Type::float32)),
                   formula.operands, formula.is_of_rows});
  }
  all.push_back({"dropout",
                 "a = uniform(index(0) * 256 + index(1), 7); "
                 "yield select(a < 0.1, 0, $1 * 1.1111112)",
                 {"x"}});
  return all;
}

/// The same for all elements of a step.
bool is_number(const std::string& operand) {
  static constexpr std::string_view numbers[] = {"rate",  "learning_rate", "unbiased_avg",
                                                 "fresh", "unbiased_root", "slowed"};
  return std::ranges::count(numbers, operand) > 0;
}

/// As a step renews them: the operands in whose bytes the results of an update lie.
std::vector<std::size_t> renewed(const Case& one) {
  std::vector<std::size_t> found;
  const bool updates = std::ranges::any_of(one.operands, is_number);
  for (std::size_t i = 0; updates && i < one.operands.size(); ++i) {
    if (one.operands[i] != "gradient" && !is_number(one.operands[i])) found.push_back(i);
  }
  return found;
}

/// Numbers of a step, what each column has, and others.
Shape shape_of(const Case& one, const std::string& operand, std::int64_t rows) {
  const bool normalizes = one.name.find("norm") != std::string::npos,
             is_of_columns = operand == "weight" || operand == "mean" || operand == "scale";
  if (is_number(operand)) return {1};
  if (operand == "bias" || (normalizes && is_of_columns)) return {columns};
  return {rows, columns};
}

/// By the kernel of that name, or by hand.
void run(benchmark::State& state, const Case& one, const std::string& kernel_name) {
  const std::int64_t elements = state.range(0) / state.threads(), rows = elements / columns;
  graph::Graph graph;
  graph::Builder builder(graph, operators());
  std::vector<graph::ValueId> ids;
  for (const std::string& name : one.operands)
    ids.push_back(builder.declare(name, DType::float32, shape_of(one, name, rows),
                                  graph::StorageClass::buffer));
  graph::Attributes attributes{{"expression", one.text}};
  if (one.is_of_rows) attributes.set("axes", std::vector<std::int64_t>{-1});
  const char* by = one.is_of_rows ? "reduce" : "map";
  const auto made = builder.add(by, ids, std::move(attributes));
  const std::vector<std::size_t> in_place = renewed(one);
  for (std::size_t i = 0; i < in_place.size(); ++i)
    graph.merge(graph[made[i]].storage, graph[ids[in_place[i]]].storage);
  const graph::OpView view(graph, graph[graph[graph::Graph::body].ops.back()]);
  const bool is_by_hand = kernel_name == "hand";
  const runtime::Kernel& kernel =
      kernels().at(by, is_by_hand ? "tiles" : kernel_name, DeviceKind::cpu);
  const runtime::PreparedKernel prepared = kernel.prepare(view);

  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(0.1F, 3);
  // Each on a line of its own, as values lie in blocks.
  struct alignas(64) Line : std::array<float, 16> {};
  std::vector<std::vector<Line>> values;
  std::vector<void*> operands, results;
  const auto value = [&](const Shape& shape) -> void* {
    values.emplace_back((static_cast<std::size_t>(shape.elements()) + 15) / 16);
    for (Line& line : values.back()) std::ranges::generate(line, [&] { return number(random); });
    return values.back().data();
  };
  for (std::size_t i = 0; i < ids.size(); ++i) operands.push_back(value(view.operand(i).shape));
  for (std::size_t i = 0; i < view.op().results.size(); ++i)
    results.push_back(i < in_place.size() ? operands[in_place[i]] : value(view.result(i).shape));
  std::vector<std::byte> workspace(static_cast<std::size_t>(kernel.workspace(view)) + 256);
  runtime::StatusWord status;
  const runtime::KernelCall call{.operands = operands.data(),
                                 .results = results.data(),
                                 .workspace = workspace.data(),
                                 .state = prepared.state.get(),
                                 .status = &status};
  std::vector<const float*> sources;
  std::vector<float*> targets;
  for (const void* operand : operands) sources.push_back(static_cast<const float*>(operand));
  for (void* result : results) targets.push_back(static_cast<float*>(result));
  const bench::HandLoop hand = is_by_hand ? bench::by_hand(one.name) : nullptr;
  for (auto _ : state) {
    if (hand != nullptr) {
      hand(sources.data(), rows, columns, targets.data());
    } else {
      prepared.run(call);
    }
    benchmark::ClobberMemory();
  }
  state.counters["ns/element"] =
      benchmark::Counter(static_cast<double>(elements) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate |
                             benchmark::Counter::kAvgThreads | benchmark::Counter::kInvert);
}

}  // namespace

void register_formulas() {
  for (const Case& one : cases()) {
    for (const char* kernel : {"fused", "tiles", "hand"}) {
      if (kernel == std::string("hand") && bench::by_hand(one.name) == nullptr) continue;
      if (kernel == std::string("fused") && expr::find_formula(one.name) == nullptr) continue;
      const std::string name = "formula/" + one.name + "/" + kernel;
      benchmark::RegisterBenchmark(name.c_str(), run, one, kernel)
          ->Arg(4 << 10)
          ->Arg(256 << 10)
          ->Arg(16 << 20)
          ->Threads(1)
          ->Threads(2)
          ->UseRealTime();
    }
  }
}
