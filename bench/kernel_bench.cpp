// Every float32 CPU kernel of the convolution, alone and fused with ReLU and pooling, by itself, on
// layers of the networks: forward and both gradients, one thread, half of the pooling windows dead
// at random.
//
// flop/s counts what a dense convolution would do, so that kernels that do less pass the machine's
// peak. Operands have the halo that the kernel wishes for.
#include "bench/arenite_bench.hpp"

#include <benchmark/benchmark.h>
#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace arenite;
using List = std::vector<std::int64_t>;

/// x [N, H, W, C] * [size, size, C, K], stride 1, then windows of pool x pool; 1: nothing is
/// pooled.
struct Layer {
  std::string name;
  Shape x;
  std::int64_t size, outputs, padding, pool = 2;

  bool pooled() const { return pool > 1; }
  std::int64_t convolved(std::size_t axis) const { return x[axis] + 2 * padding - size + 1; }
  Shape weight() const { return {size, size, x[3], outputs}; }
  Shape y() const { return {x[0], convolved(1) / pool, convolved(2) / pool, outputs}; }
  double flops() const {
    return 2.0 * static_cast<double>(y().elements() * pool * pool * size * size * x[3]);
  }
  std::string op() const { return pooled() ? "conv2d_relu_max_pool2d" : "conv2d"; }
  graph::Attributes attributes() const {
    graph::Attributes all{{"padding", List{padding, padding}}};
    if (pooled()) all.set("pool", List{pool, pool});
    return all;
  }
};

const std::vector<Layer>& layers() {
  static const std::vector<Layer> all{
      {"cnn1.conv1", {64, 28, 28, 1}, 3, 4, 0},      {"lenet5.conv1", {32, 28, 28, 1}, 5, 6, 2},
      {"lenet5.conv2", {32, 14, 14, 6}, 5, 16, 0},   {"cnn2.conv1", {32, 28, 28, 1}, 3, 32, 1},
      {"cnn2.conv2", {32, 14, 14, 32}, 3, 64, 1},    {"vgg.conv2", {16, 32, 32, 64}, 3, 64, 1},
      {"vgg.conv4", {16, 16, 16, 128}, 3, 128, 1},   {"rgb.conv1", {16, 32, 32, 3}, 3, 64, 1},
      {"odd.conv2", {16, 16, 16, 20}, 5, 40, 2},     {"cnn1.ten", {10, 28, 28, 1}, 3, 4, 0},
      {"lenet5.five", {5, 28, 28, 1}, 5, 6, 2},      {"rgb.few", {16, 32, 32, 3}, 3, 8, 1},
      {"thirds.conv1", {16, 28, 28, 1}, 3, 6, 0, 3}, {"thirds.conv2", {16, 14, 14, 8}, 3, 16, 0, 3},
      {"vgg.conv3", {16, 16, 16, 64}, 3, 128, 1, 1}, {"vgg.conv5", {16, 8, 8, 128}, 3, 256, 1, 1},
      {"odd.conv3", {16, 9, 9, 40}, 3, 24, 0, 1},
  };
  return all;
}

/// One op with its operands, outside any program.
class Bench {
 public:
  Bench(const Layer& layer, const std::string& op) : builder_(graph_, operators()) {
    const auto declare = [&](const char* name, DType type, const Shape& shape) {
      return builder_.declare(name, type, shape, graph::StorageClass::buffer);
    };
    const graph::ValueId x = declare("x", DType::float32, layer.x),
                         weight = declare("weight", DType::float32, layer.weight()),
                         bias = declare("bias", DType::float32, Shape{layer.outputs}),
                         gradient = declare("gradient", DType::float32, layer.y());
    std::vector<graph::ValueId> gradients{gradient};
    if (layer.pooled()) gradients.push_back(declare("code", DType::uint8, layer.y()));
    graph::Attributes attributes = layer.attributes();
    std::vector<graph::ValueId> operands = gradients;
    if (op == layer.op()) {
      operands = {x, weight, bias};
    } else if (op == layer.op() + "_grad_input") {
      attributes.set("size", List{layer.x[1], layer.x[2]});
      operands.push_back(weight);
    } else {
      attributes.set("kernel", List{layer.size, layer.size});
      operands.insert(operands.begin(), x);
    }
    builder_.add(op, operands, attributes);
    op_ = graph_[graph::Graph::body].ops.back();
  }

  graph::OpView view() const { return {graph_, graph_[op_]}; }

  void run(benchmark::State& state, const runtime::Kernel& kernel) {
    for (std::size_t i = 0; i < graph_[op_].operands.size(); ++i) {
      const int wish = kernel.wanted_halo ? kernel.wanted_halo(view(), i) : -1;
      graph::Value& value = graph_[graph_[op_].operands[i]];
      value.layout.halo = std::max(0, wish);
    }
    std::vector<void*> operands, results;
    for (graph::ValueId id : graph_[op_].operands) operands.push_back(filled(graph_[id]));
    for (graph::ValueId id : graph_[op_].results) results.push_back(filled(graph_[id]));
    void* workspace = allocate(kernel.workspace ? kernel.workspace(view()) : 0);
    const runtime::PreparedKernel prepared = kernel.prepare(view());
    runtime::StatusWord status;
    const runtime::KernelCall call{.operands = operands.data(),
                                   .results = results.data(),
                                   .workspace = workspace,
                                   .state = prepared.state.get(),
                                   .status = &status};
    for (auto _ : state) {
      prepared.run(call);
      benchmark::ClobberMemory();
    }
  }

 private:
  struct Free {
    void operator()(std::byte* p) const {
      ::operator delete(p, std::align_val_t(default_alignment));
    }
  };

  /// Zeros.
  std::byte* allocate(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    auto* data = static_cast<std::byte*>(::operator new(size, std::align_val_t(default_alignment)));
    std::memset(data, 0, size);
    blocks_.emplace_back(data);
    return data;
  }

  /// Numbers around 0; codes of which half are dead. Halos are zeros.
  void* filled(const graph::Value& value) {
    std::byte* data = allocate(graph::byte_size(value.type, value.shape, value.layout));
    const bool image = value.shape.rank() == 4;
    const std::int64_t halo = value.layout.halo, rows = image ? value.shape[0] * value.shape[1] : 1,
                       height = image ? value.shape[1] : 1,
                       row = value.shape.elements() / std::max<std::int64_t>(1, rows),
                       channels = image ? value.shape[3] : 0;
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::int64_t y = 0; y < rows; ++y) {
      const std::int64_t above = y + halo * (1 + 2 * (y / height)),
                         at = above * (row + 2 * halo * channels) + halo * channels;
      for (std::int64_t i = at; i < at + row; ++i) {
        if (value.type == DType::uint8) {
          const auto bits = random_();
          data[i] = bits & 4 ? std::byte{0x80} : static_cast<std::byte>(bits & 3);
        } else {
          reinterpret_cast<float*>(data)[i] = uniform(random_);
        }
      }
    }
    return data;
  }

  std::mt19937 random_{1};
  graph::Graph graph_;
  graph::Builder builder_;
  graph::OpId op_;
  std::vector<std::unique_ptr<std::byte, Free>> blocks_;
};

void register_layer(const Layer& layer, const std::string& op, const std::string& label) {
  for (const runtime::Kernel& kernel : kernels().find(op)) {
    if (kernel.device != DeviceKind::cpu || kernel.name == "plain") continue;
    if (kernel.compute != runtime::Compute::float32) continue;  // these run the float32 ones
    if (kernel.supports && !kernel.supports(Bench(layer, op).view())) continue;
    benchmark::RegisterBenchmark(
        (layer.name + "/" + label + "/" + kernel.name).c_str(),
        [layer, op, name = kernel.name](benchmark::State& state) {
          Bench(layer, op).run(state, kernels().at(op, name, DeviceKind::cpu));
          using benchmark::Counter;
          const auto samples = static_cast<double>(layer.x[0]);
          state.counters["flop/s"] = Counter(layer.flops(), Counter::kIsIterationInvariantRate);
          state.counters["s/sample"] =
              Counter(samples, Counter::kIsIterationInvariantRate | Counter::kInvert);
        })
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace

void register_kernels() {
  for (const Layer& layer : layers()) {
    register_layer(layer, layer.op(), "forward");
    register_layer(layer, layer.op() + "_grad_input", "grad_input");
    register_layer(layer, layer.op() + "_grad_weight", "grad_weight");
  }
}
