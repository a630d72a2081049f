#include "tests/reference/exact_products.hpp"

#include "codelets/pool2d.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace arenite::reference {
namespace {

using codelets::testing::OpHarness;
using graph::ValueId;
using List = std::vector<std::int64_t>;

struct Layer {
  Shape x;
  List kernel;
  std::int64_t outputs;
  graph::Attributes window;  ///< of the convolution
  List pool = {1, 1};        ///< of the fused operation

  Shape weight() const { return {kernel[0], kernel[1], x[3], outputs}; }
  /// At most: of a direction.
  std::int64_t products() const { return x.elements() * kernel[0] * kernel[1] * outputs; }
  bool pooled() const { return pool != List{1, 1}; }
};

/// Each reaches other tiles, edges of tiles, or ways of reading.
std::vector<Layer> layers() {
  const graph::Attributes padded{{"padding", List{1, 1}}};
  const graph::Attributes odd{
      {"stride", List{2, 1}}, {"padding", List{2, 1}}, {"dilation", List{1, 2}}};
  std::vector<Layer> all{
      {{2, 9, 10, 8}, {3, 3}, 12, padded},                     // fours, tiles that are not full
      {{3, 11, 9, 3}, {5, 5}, 6, {}},                          // one element at a time, few outputs
      {{4, 14, 14, 8}, {5, 5}, 8, {}},                         // fours, few outputs and channels
      {{2, 13, 12, 5}, {3, 4}, 10, odd},                       // strides and dilations
      {{4, 28, 28, 1}, {3, 3}, 32, padded},                    // thin
      {{3, 11, 9, 1}, {3, 3}, 4, {}},                          // thin, few outputs
      {{3, 12, 15, 1}, {5, 5}, 6, {{"padding", List{2, 1}}}},  // thin, 5×5
      {{2, 16, 17, 3}, {3, 3}, 200, padded},                   // thin, a lane a block
      {{16, 48, 48, 4}, {3, 3}, 64, {}},                       // large tiles forward
      {{10, 60, 61, 64}, {3, 3}, 4, padded},  // large tiles of the input's gradient
      {{6, 56, 56, 28}, {3, 3}, 64, {}},      // large tiles of the weight's; Winograd's forward
      {{4, 80, 80, 32}, {3, 3}, 16, padded},  // Winograd's gradient of the input
      {{3, 9, 8, 70}, {3, 3}, 67, {{"padding", List{2, 0}}}},  // several of its blocks, half full
      {{2, 5, 6, 3}, {3, 3}, 5, {{"padding", List{3, 5}}}},    // patches that lie in the padding
  };
  const std::size_t alone = all.size();
  for (std::size_t i = 0; i < alone; ++i) {
    Layer fused = all[i];
    fused.pool = i == 3 ? List{3, 2} : List{2, 2};
    all.push_back(fused);
  }
  all.push_back({{2, 12, 9, 8}, {3, 3}, 16, padded, {4, 1}});
  return all;
}

/// A dense layer of so many samples, inputs and outputs.
struct Dense {
  std::int64_t n, i, o;

  std::int64_t products() const { return n * i * o; }
};

std::vector<Dense> dense_layers() {
  return {
      {64, 3136, 128},  // the depth in many parts
      {64, 128, 10},    // one element at a time
      {5, 33, 17},      // tiles that are not full
      {3, 12, 4},       // few outputs
      {1024, 128, 10},  // the weight gradient's depth in parts
      {520, 512, 200},  // large tiles
      {516, 512, 32},   // tall ones
  };
}

/// A value in the harness of plain kernels, and in that of those that are looked at.
using Both = std::pair<ValueId, ValueId>;

class Comparison {
 public:
  Comparison(const runtime::KernelTable& table, codelets::testing::Runner runner)
      : table_(table), runner_(std::move(runner)) {}

  void compare(const Layer& layer) {
    begin();
    const std::string op = layer.pooled() ? "conv2d_relu_max_pool2d" : "conv2d";
    graph::Attributes attributes = layer.window;
    if (layer.pooled()) attributes.set("pool", layer.pool);
    const Both x = integers("x", layer.x, 3), weight = integers("weight", layer.weight(), 2),
               bias = integers("bias", Shape{layer.outputs}, 4);
    const std::vector<Both> y = run(op, {x, weight, bias}, attributes);
    std::vector<Both> gradients{integers("gradient", here_->graph()[y[0].first].shape, 2)};
    if (layer.pooled()) {
      vary_dead(y[1]);
      gradients.push_back(y[1]);
    }

    graph::Attributes sized = attributes, shaped = attributes;
    sized.set("size", List{layer.x[1], layer.x[2]});
    shaped.set("kernel", layer.kernel);
    std::vector<Both> operands = gradients;
    operands.push_back(weight);
    run(op + "_grad_input", operands, sized);
    operands.push_back(x);
    run(op + "_grad_input_relu", operands, sized);
    if (!layer.pooled()) run("conv2d_relu", {x, weight, bias}, attributes);
    operands = gradients;
    operands.insert(operands.begin(), x);
    run(op + "_grad_weight", operands, shaped);
  }

  void compare(const Dense& layer) {
    begin();
    const Both x = integers("x", {layer.n, layer.i}, 2),
               weight = integers("weight", {layer.i, layer.o}, 2),
               bias = integers("bias", {layer.o}, 4),
               gradient = integers("gradient", {layer.n, layer.o}, 2);
    run("dense", {x, weight}, {});
    run("dense_relu", {x, weight, bias}, {});
    run("dense_grad_input", {gradient, weight}, {});
    run("dense_grad_input_relu", {gradient, weight, x}, {});
    run("dense_grad_weight", {x, gradient}, {});
    const Both rate = integers("rate", {1}, 2),
               velocity = integers("velocity", {layer.i, layer.o}, 3);
    run("dense_grad_weight_sgd", {weight, rate, velocity, x, gradient}, {{"momentum", 0.5}});
    if (layer.i < 12) return;
    const Both rows = integers("rows", {8, layer.o}, 2);
    run("dense_grad_weight_sgd", {rows, rate, {}, x, gradient}, {{"rows", List{4, 12}}});
  }

  bool variants = true;  ///< compare kernels that only a choice takes, too
  std::map<std::string, int> compared;

 private:
  void begin() {
    here_ = std::make_unique<OpHarness>(1);
    there_ = std::make_unique<OpHarness>(1, runner_);
  }

  /// The same small integers in both harnesses.
  Both integers(const std::string& name, Shape shape, int most) {
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    std::uniform_int_distribution<int> uniform(-most, most);
    for (float& value : values) value = static_cast<float>(uniform(random_));
    const Both ids{here_->declare(name, DType::float32, shape),
                   there_->declare(name, DType::float32, shape)};
    here_->write(ids.first, values);
    there_->write(ids.second, values);
    return ids;
  }

  /// Codes of what is dead, each with other bits beside that one.
  void vary_dead(const Both& codes) {
    auto values = here_->read<std::uint8_t>(codes.first);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if ((values[i] & codelets::pool2d::dead) != 0)
        values[i] = static_cast<std::uint8_t>(codelets::pool2d::dead | i % 128);
    }
    here_->write(codes.first, values);
    there_->write(codes.second, values);
  }

  /// The op's results; in both harnesses they, and what it writes of its operands, are what the
  /// plain kernel gives.
  std::vector<Both> run(const std::string& op, const std::vector<Both>& operands,
                        const graph::Attributes& attributes) {
    std::vector<ValueId> mine, theirs;
    for (const auto& [a, b] : operands) {
      mine.push_back(a);
      theirs.push_back(b);
    }
    const auto expected = here_->op(op, mine, attributes),
               actual = there_->op(op, theirs, attributes);
    std::vector<std::vector<float>> before;
    std::vector<Both> results, written;
    for (std::size_t i = 0; i < expected.size(); ++i) results.emplace_back(expected[i], actual[i]);
    written = results;
    for (const auto& [a, b] : operands) {
      if (!a || here_->graph()[a].type != DType::float32) continue;
      written.emplace_back(a, b);
      before.push_back(here_->read<float>(a));
    }
    EXPECT_EQ(here_->run("plain"), runtime::StatusWord::ok);
    for (const runtime::Kernel* kernel : there_->supporting(table_, DeviceKind::cuda)) {
      const auto begins = [&](const char* with) { return kernel->name.starts_with(with); };
      if (!begins("tiled") && !begins("thin") && !begins("winograd")) continue;
      if (kernel->only_chosen && !variants) continue;
      const std::string where = op + "/" + kernel->name;
      SCOPED_TRACE(where + " of " + to_string(there_->graph()[theirs[0]].shape));
      ++compared[where];
      for (std::size_t i = 0; i < before.size(); ++i)
        there_->write(written[results.size() + i].second, before[i]);
      EXPECT_EQ(there_->run(*kernel), runtime::StatusWord::ok);
      for (const Both& both : written) expect_same(both);
    }
    // What follows reads it, whether or not there was a kernel.
    for (const Both& both : written) copy(both);
    return results;
  }

  template <class F>
  static void as_type(DType type, F f) {
    if (type == DType::uint8) return f(std::uint8_t{});
    f(float{});
  }

  void expect_same(const Both& both) {
    as_type(here_->graph()[both.first].type, [&](auto sample) {
      using T = decltype(sample);
      const std::vector<T> expected = here_->read<T>(both.first),
                           actual = there_->read<T>(both.second);
      const auto [x, y] = std::mismatch(expected.begin(), expected.end(), actual.begin());
      if (x == expected.end()) return;
      ADD_FAILURE() << here_->graph()[both.first].name << " element " << x - expected.begin()
                    << " of " << expected.size() << ": " << +*y << ", expected " << +*x;
    });
  }

  void copy(const Both& both) {
    as_type(here_->graph()[both.first].type, [&](auto sample) {
      using T = decltype(sample);
      there_->write(both.second, here_->read<T>(both.first));
    });
  }

  const runtime::KernelTable& table_;
  codelets::testing::Runner runner_;
  std::mt19937 random_{5};
  std::unique_ptr<OpHarness> here_, there_;
};

}  // namespace

std::map<std::string, int> compare_exact_products(const runtime::KernelTable& table,
                                                  const codelets::testing::Runner& runner) {
  Comparison comparison(table, runner);
  // Under sanitizers all is slow: there those of more than a few products are left out; elsewhere,
  // for large ones, tilings that their sizes did not choose.
  const auto compare_all = [&](const auto& all) {
    for (const auto& layer : all) {
      comparison.variants = layer.products() < 20'000'000;
      if (!ARENITE_PLAIN_KERNELS || layer.products() < 2'000'000) comparison.compare(layer);
    }
  };
  compare_all(layers());
  compare_all(dense_layers());
  return comparison.compared;
}

}  // namespace arenite::reference
