// What it would give to compute a formula on a block of samples that a convolution or a product has
// just made, while they are in the cache: one thread, the product alone, then both on all samples
// and on blocks of them. Each block walks or transforms the weights anew.
#include "bench/arenite_bench.hpp"

#include <benchmark/benchmark.h>
#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

using namespace arenite;
using List = std::vector<std::int64_t>;

struct Case {
  std::string op;
  Shape x, weight;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{{"conv2d", {16, 28, 28, 32}, {3, 3, 32, 32}},
                                     {"conv2d", {64, 28, 28, 32}, {3, 3, 32, 32}},
                                     {"conv2d", {16, 28, 28, 1}, {3, 3, 1, 32}},
                                     {"conv2d", {16, 56, 56, 64}, {1, 1, 64, 64}},
                                     {"dense", {64, 784}, {784, 256}},
                                     {"dense", {1024, 256}, {256, 1024}},
                                     {"dense", {4096, 64}, {64, 256}}};
  return all;
}

/// One op of declared values, outside any program, with the first kernel that takes it.
struct Prepared {
  graph::Graph graph;
  graph::Builder builder{graph, operators()};
  runtime::PreparedKernel kernel;
  std::vector<std::byte> workspace;
  Shape result;

  Prepared(const std::string& name, const std::vector<Shape>& shapes,
           const graph::Attributes& attributes) {
    std::vector<graph::ValueId> operands;
    for (const Shape& shape : shapes)
      operands.push_back(builder.declare("v" + std::to_string(operands.size()), DType::float32,
                                         shape, graph::StorageClass::buffer));
    result = graph[builder.add1(name, operands, attributes)].shape;
    const graph::OpView op(graph, graph[graph[graph::Graph::body].ops.back()]);
    for (const runtime::Kernel& one : kernels().find(name)) {
      if (one.device != DeviceKind::cpu || one.compute != runtime::Compute::float32 ||
          (one.supports && !one.supports(op)))
        continue;
      if (one.workspace) workspace.resize(static_cast<std::size_t>(one.workspace(op)) + 256);
      kernel = one.prepare(op);
      return;
    }
  }

  void run(std::vector<void*> operands, void* to) {
    const auto first = reinterpret_cast<std::uintptr_t>(workspace.data());
    runtime::StatusWord status;
    kernel.run({.operands = operands.data(),
                .results = &to,
                .workspace = workspace.data() + (256 - first % 256) % 256,
                .state = kernel.state.get(),
                .status = &status});
  }
};

Shape with_samples(const Shape& shape, std::int64_t samples) {
  List dims(shape.begin(), shape.end());
  dims[0] = samples;
  return Shape(dims);
}

/// `formula` is empty: the product alone.
void run(benchmark::State& state, const Case& one, const std::string& formula) {
  const std::int64_t samples = one.x[0], block = state.range(0) == 0 ? samples : state.range(0);
  graph::Attributes attributes;
  if (one.op == "conv2d") attributes.set("padding", List{one.weight[0] / 2, one.weight[0] / 2});
  Prepared product(one.op, {with_samples(one.x, block), one.weight}, attributes);
  std::unique_ptr<Prepared> behind;
  if (!formula.empty())
    behind = std::make_unique<Prepared>(formula, std::vector{product.result}, graph::Attributes{});
  const std::int64_t in = one.x.elements() / samples, out = product.result.elements() / block;
  std::vector<float> x(static_cast<std::size_t>(one.x.elements()), 0.5F),
      weight(static_cast<std::size_t>(one.weight.elements()), 0.01F),
      y(static_cast<std::size_t>(samples * out));
  for (auto _ : state) {
    for (std::int64_t first = 0; first < samples; first += block) {
      float* const made = y.data() + first * out;
      product.run({x.data() + first * in, weight.data(), nullptr}, made);
      if (behind) behind->run({made}, made);
    }
    benchmark::ClobberMemory();
  }
}

}  // namespace

void register_blocks() {
  for (const Case& one : cases()) {
    const std::string name = "blocks/" + one.op + to_string(one.x) + to_string(one.weight) + "/";
    benchmark::RegisterBenchmark((name + "alone").c_str(), run, one, "")->Arg(0);
    for (const char* formula : {"relu", "silu", "gelu"}) {
      auto* const both = benchmark::RegisterBenchmark((name + formula).c_str(), run, one, formula);
      for (const std::int64_t block : {0, 1, 2, 4, 8, 32, 64, 128, 256, 512}) {
        const bool suits = one.op == "dense" ? block >= 32 : block <= 8;
        if (block == 0 || (suits && block < one.x[0])) both->Arg(block);
      }
    }
  }
}
