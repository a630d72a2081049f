// Scripts as models run them, evaluation after evaluation, against the reference evaluator.
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/heap_calls.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/heap_counted.hpp"
#include "tests/reference/evaluator.hpp"

namespace arenite {
namespace {

using graph::StorageClass;
using graph::ValueId;

/// A script's model and its meaning, fed the same numbers.
class Pair {
 public:
  Pair(const std::string& script, std::uint32_t seed)
      : graph_(graph::parse(script, operators())), random_(seed) {
    kept_ = graph_;
    graph::keep_buffers(kept_, operators());
    reference_.emplace(kept_);
    std::vector<NamedBytes> constants;
    for (const ValueId id : graph_.declared(StorageClass::constant)) constants.push_back(draw(id));
    model_.emplace(session_, graph_, constants);
  }

  /// Sets an int64 input of the next evaluation.
  void set(const std::string& name, std::int64_t value) { integers_[name] = {value}; }

  /// Evaluates both on new random inputs; how far the outputs are apart, as a part of the largest.
  double difference() {
    std::vector<NamedBytes> inputs;
    for (const ValueId id : graph_.declared(StorageClass::input)) inputs.push_back(draw(id));
    std::vector<std::vector<float>> outputs;
    for (const Port& port : model_->outputs()) {
      outputs.emplace_back(static_cast<std::size_t>(port.shape.elements()));
    }
    std::vector<void*> places;
    for (auto& output : outputs) places.push_back(output.data());
    model_->evaluate(inputs, places);
    reference_->run();
    double worst = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const reference::Tensor& expected = (*reference_)[kept_.outputs[i]];
      double largest = 0, apart = 0;
      for (std::size_t k = 0; k < outputs[i].size(); ++k) {
        const double value = expected.data[k];
        largest = std::max(largest, std::fabs(value));
        const double off = std::fabs(static_cast<double>(outputs[i][k]) - value);
        apart = std::isnan(off) ? 1e9 : std::max(apart, off);
      }
      worst = std::max(worst, apart / std::max(largest, 1e-30));
    }
    return worst;
  }

 private:
  NamedBytes draw(ValueId id) {
    const graph::Value& value = graph_[id];
    reference::Tensor& tensor = (*reference_)[value.name];
    if (value.type == DType::int64) {
      const std::vector<std::int64_t>& given = integers_[value.name];
      std::copy(given.begin(), given.end(), tensor.data.begin());
      return {value.name, given.data(), std::nullopt};
    }
    std::vector<float>& floats = floats_[value.name];
    floats.resize(tensor.size());
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      floats[i] = uniform(random_);
      tensor.data[i] = static_cast<double>(floats[i]);
    }
    return {value.name, floats.data(), std::nullopt};
  }

  runtime::Session session_{{.workers = 1}};
  graph::Graph graph_;
  graph::Graph kept_;
  std::mt19937 random_;
  std::map<std::string, std::vector<float>> floats_;
  std::map<std::string, std::vector<std::int64_t>> integers_;
  std::optional<reference::Evaluator> reference_;
  std::optional<Model> model_;
};

TEST(ScriptModel, ALayerOfTheEarlierForm) {
  Pair pair(R"(
    $1 = InputTensor(input, float32, [128, 28, 28]);
    $2 = ReshapeNode($1, [128, 784]);
    $3 = ConstantTensor(constant_0, float32, [784, 1000]);
    $4 = MatMulNode($2, $3);
    $5 = ConstantTensor(constant_1, float32, [1, 1000]);
    $6 = SumNode($4, $5);
    $7 = ReLUNode($6);
    result = $7;)",
            1);
  for (int time = 0; time < 3; ++time) EXPECT_LT(pair.difference(), 1e-5);
}

void expect_no_allocation(Model& model, std::span<const NamedBytes> inputs, void* place) {
  model.evaluate(inputs, {&place, 1});
  ASSERT_EQ(runtime::heap_calls().has_value(), testing::heap_counted) << "run this through ctest";
  const runtime::Counters before = runtime::counters();
  const long heap = runtime::heap_calls().value_or(0), maps = runtime::map_calls().value_or(0);
  for (int time = 0; time < 1000; ++time) model.evaluate(inputs, {&place, 1});
  EXPECT_EQ(runtime::heap_calls().value_or(0) - heap, 0);
  EXPECT_EQ(runtime::map_calls().value_or(0) - maps, 0);
  EXPECT_EQ(runtime::counters().handles, before.handles);
  EXPECT_EQ(runtime::counters().tasks, before.tasks);
}

TEST(ScriptModel, AllocatesNothingAfterTheFirstEvaluation) {
  runtime::Session session({.workers = 1});
  Model model(session,
              graph::parse(R"(
    $1 = BufferTensor(state, float32, [4, 64]);
    $2 = InputTensor(x, float32, [1, 64]);
    $3 = InputTensor(begin, int64, [1]);
    $4 = ReplaceSliceNode($1, $2, $3);
    $5 = PermuteNode($4, [1, 0]);
    $6 = MatMulNode($4, $5);
    $7 = SlicedSoftmaxNode($6, 3);
    result = $7;)",
                           operators()),
              {});
  const std::vector<float> x(64, 0.5f);
  const std::int64_t begin = 2;
  const std::vector<NamedBytes> inputs{{"begin", &begin, 8}, {"x", x.data(), 256}};
  std::vector<float> result(16);
  expect_no_allocation(model, inputs, result.data());
}

TEST(ScriptModel, AllocatesNothingWhereTheBatchIsSplit) {
  runtime::Session session({.workers = 2});
  ModelOptions options;
  options.target.two_lanes_microseconds = 0;
  const std::vector<float> weight(64 * 8, 0.5f), x(7 * 64, 0.25f);
  const NamedBytes constant{"weight", weight.data(), {}}, input{"x", x.data(), {}};
  Model model(session,
              graph::parse(R"(
    $1 = InputTensor(x, float32, [7, 64]);
    $2 = ConstantTensor(weight, float32, [64, 8]);
    $3 = MatMulNode($1, $2);
    $4 = ReLUNode($3);
    result = $4;)",
                           operators()),
              {&constant, 1}, options);
  std::vector<float> result(7 * 8);
  expect_no_allocation(model, {&input, 1}, result.data());
  EXPECT_EQ(result, std::vector<float>(7 * 8, 8));
}

// One layer's attention with a cache of keys and of values: each evaluation adds a row to both and
// looks at all rows so far.
TEST(ScriptModel, AttentionWithACache) {
  Pair pair(R"(
    $1 = InputTensor(x, float32, [8]);
    $2 = ConstantTensor(norm, float32, [8]);
    $3 = RMSNormNode($1, $2);
    $4 = ConstantTensor(wq, float32, [8, 8]);
    $5 = ConstantTensor(wk, float32, [8, 8]);
    $6 = ConstantTensor(wv, float32, [8, 8]);
    $7 = InputTensor(rotation, float32, [1, 2, 2]);
    $8 = MatMulNode($3, $4);
    $9 = ReshapeNode($8, [2, 2, 2]);
    $10 = ComplexHadamardProductNode($9, $7);
    $11 = MatMulNode($3, $5);
    $12 = ReshapeNode($11, [2, 2, 2]);
    $13 = ComplexHadamardProductNode($12, $7);
    $14 = MatMulNode($3, $6);
    $20 = BufferTensor(cache, float32, [2, 6, 8]);
    $21 = SliceNode($20, 0, 1);
    $22 = ReshapeNode($21, [6, 8]);
    $23 = SliceNode($20, 1, 2);
    $24 = ReshapeNode($23, [6, 8]);
    $25 = InputTensor(position, int64, [1]);
    $26 = InputTensor(length, int64, [1]);
    $27 = ReshapeNode($13, [1, 8]);
    $28 = ReshapeNode($14, [1, 8]);
    $29 = ReplaceSliceNode($22, $27, $25, $26);
    $30 = ReplaceSliceNode($24, $28, $25, $26);
    $31 = ReshapeNode($29, [6, 2, 4]);
    $32 = PermuteNode($31, [1, 2, 0]);
    $33 = ReshapeNode($10, [2, 1, 4]);
    $34 = MatMulNode($33, $32);
    $35 = ConstantTensor(scale, float32, [1, 1, 1]);
    $36 = HadamardProductNode($34, $35);
    $37 = SlicedSoftmaxNode($36, $26);
    $38 = ReshapeNode($30, [6, 2, 4]);
    $39 = PermuteNode($38, [1, 0, 2]);
    $40 = MatMulNode($37, $39);
    $41 = ReshapeNode($40, [8]);
    $42 = SumNode($1, $41);
    $43 = SiLUNode($42);
    result = $43, $29;)",
            2);
  for (std::int64_t position = 0; position < 6; ++position) {
    pair.set("position", position);
    pair.set("length", position + 1);
    EXPECT_LT(pair.difference(), 1e-5) << "position " << position;
  }
}

}  // namespace
}  // namespace arenite
