// Every float32 CPU kernel of the convolution, alone and fused with ReLU and pooling, and of the
// dense layer, by itself, on layers of the networks: forward and both gradients, one thread, half
// of the pooling windows dead at random.
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

/// One op to run.
struct Case {
  struct Operand {
    const char* name;
    Shape shape;
    DType type = DType::float32;
  };

  std::string name, op;
  std::vector<Operand> operands;
  graph::Attributes attributes;
  std::int64_t samples;
  double flops;
  std::vector<std::size_t> renewed = {};  ///< operands that the results are new versions of
};

std::vector<Case> cases_of(const Layer& layer) {
  const Case::Operand x{"x", layer.x}, weight{"weight", layer.weight()},
      bias{"bias", Shape{layer.outputs}};
  std::vector<Case::Operand> gradients{{"gradient", layer.y()}};
  if (layer.pooled()) gradients.push_back({"code", layer.y(), DType::uint8});
  std::vector<Case> cases(3, {.name = layer.name,
                              .op = layer.op(),
                              .operands = {x, weight, bias},
                              .attributes = layer.attributes(),
                              .samples = layer.x[0],
                              .flops = layer.flops()});
  cases[0].name += "/forward";
  cases[1].name += "/grad_input";
  cases[1].op += "_grad_input";
  cases[1].operands = gradients;
  cases[1].operands.push_back(weight);
  cases[1].attributes.set("size", List{layer.x[1], layer.x[2]});
  cases[2].name += "/grad_weight";
  cases[2].op += "_grad_weight";
  cases[2].operands = gradients;
  cases[2].operands.insert(cases[2].operands.begin(), x);
  cases[2].attributes.set("kernel", List{layer.size, layer.size});
  return cases;
}

/// x [n, i] · weight [i, o]; its weight's gradient goes into SGD with momentum.
std::vector<Case> dense_cases(std::int64_t n, std::int64_t i, std::int64_t o) {
  const Case::Operand x{"x", {n, i}}, weight{"weight", {i, o}}, gradient{"gradient", {n, o}};
  const auto named = [&](const char* what) {
    return "dense." + std::to_string(n) + "x" + std::to_string(i) + "x" + std::to_string(o) + what;
  };
  const double flops = 2.0 * static_cast<double>(n * i * o);
  return {
      {named("/forward"), "dense", {x, weight, {"bias", {o}}}, {}, n, flops},
      {named("/grad_input"), "dense_grad_input", {gradient, weight}, {}, n, flops},
      {named("/update"),
       "dense_grad_weight_sgd",
       {weight, {"learning_rate", Shape{1}}, {"velocity", {i, o}}, x, gradient},
       {{"momentum", 0.9}},
       n,
       flops,
       {0, 2}},
  };
}

/// One op with its operands, outside any program.
class Bench {
 public:
  explicit Bench(const Case& of) : renewed_(of.renewed), builder_(graph_, operators()) {
    std::vector<graph::ValueId> operands;
    for (const Case::Operand& operand : of.operands) {
      operands.push_back(
          builder_.declare(operand.name, operand.type, operand.shape, graph::StorageClass::buffer));
    }
    builder_.add(of.op, operands, of.attributes);
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
    for (graph::ValueId id : graph_[op_].results) {
      const std::size_t i = results.size();
      results.push_back(i < renewed_.size() ? operands[renewed_[i]] : filled(graph_[id]));
    }
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

  std::vector<std::size_t> renewed_;
  std::mt19937 random_{1};
  graph::Graph graph_;
  graph::Builder builder_;
  graph::OpId op_;
  std::vector<std::unique_ptr<std::byte, Free>> blocks_;
};

void register_case(const Case& of) {
  for (const runtime::Kernel& kernel : kernels().find(of.op)) {
    if (kernel.device != DeviceKind::cpu || kernel.name == "plain") continue;
    if (kernel.compute != runtime::Compute::float32) continue;  // these run the float32 ones
    if (kernel.supports && !kernel.supports(Bench(of).view())) continue;
    benchmark::RegisterBenchmark(
        (of.name + "/" + kernel.name).c_str(),
        [of, name = kernel.name](benchmark::State& state) {
          Bench(of).run(state, kernels().at(of.op, name, DeviceKind::cpu));
          using benchmark::Counter;
          const auto samples = static_cast<double>(of.samples);
          state.counters["flop/s"] = Counter(of.flops, Counter::kIsIterationInvariantRate);
          state.counters["s/sample"] =
              Counter(samples, Counter::kIsIterationInvariantRate | Counter::kInvert);
        })
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace

void register_kernels() {
  for (const Layer& layer : layers()) {
    for (const Case& one : cases_of(layer)) register_case(one);
  }
  for (const std::int64_t n : {1, 4, 6, 10, 32}) {
    for (const auto& [i, o] : {std::pair{784, 512}, {512, 256}, {400, 120}, {84, 10}}) {
      for (const Case& one : dense_cases(n, i, o)) register_case(one);
    }
  }
}
