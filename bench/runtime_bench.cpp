// What a task and a step cost when the kernels do nothing: the runtime's own share.
#include <benchmark/benchmark.h>
#include <arenite/arenite.hpp>

#include "src/compile/compile.hpp"

namespace {

using namespace arenite;

/// An operator without work: one float in, one float out.
void register_nothing() {
  static const bool once = [] {
    register_operator(
        {.name = "bench_nothing",
         .operands = {{"x"}},
         .results = {"y"},
         .infer =
             [](const graph::OpView& op) {
               return std::vector<graph::ResultType>{{op.operand(0).type, op.operand(0).shape}};
             }},
        {{.name = "plain", .prepare = [](const graph::OpView&) {
            return runtime::PreparedKernel{[](const runtime::KernelCall&) {}, nullptr};
          }}});
    return true;
  }();
  static_cast<void>(once);
}

/// `width` chains of `depth` ops side by side, each op a task of its own.
runtime::ProgramSpec chains(int width, int depth, plan::StateLayout& state) {
  graph::Graph graph;
  graph::Builder builder(graph, operators());
  const graph::ValueId x = builder.declare("x", DType::float32, {1}, graph::StorageClass::input);
  for (int lane = 0; lane < width; ++lane) {
    builder.context = {.phase = Phase::forward, .lane = lane, .where = "chain"};
    graph::ValueId value = x;
    for (int i = 0; i < depth; ++i) value = builder.add1("bench_nothing", {value});
  }
  graph::TargetProfile one_op_a_task;
  one_op_a_task.task_microseconds = one_op_a_task.phase_microseconds = 0;
  return compile::compile(graph, {.name = "chains"}, {.target = one_op_a_task}, state).spec;
}

void empty_steps(benchmark::State& bench) {
  register_nothing();
  const int workers = static_cast<int>(bench.range(0)), width = static_cast<int>(bench.range(1)),
            depth = static_cast<int>(bench.range(2));
  runtime::Session session({.workers = workers});
  plan::StateLayout state;
  std::vector<runtime::ProgramSpec> specs;
  specs.push_back(chains(width, depth, state));
  runtime::ProgramSet programs(session, kernels(), std::move(specs));
  runtime::Program& program = programs["chains"];
  for (auto _ : bench) program.submit();
  program.wait();
  bench.counters["per_task"] =
      benchmark::Counter(static_cast<double>(bench.iterations()) * width * depth,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace

BENCHMARK(empty_steps)
    ->ArgNames({"workers", "chains", "tasks"})
    ->Args({1, 1, 1})
    ->Args({1, 1, 16})
    ->Args({1, 2, 16})
    ->Args({2, 2, 16})
    ->UseRealTime();
