// Scripts as models run them, evaluation after evaluation, against the reference evaluator.
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/heap_calls.hpp>

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "src/base/testing.hpp"
#include "tests/heap_counted.hpp"
#include "tests/script_pair.hpp"

namespace arenite {
namespace {

using graph::ValueId;
using testing::Pair;

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

template <class F>
void expect_no_allocation(const F& run) {
  run();
  ASSERT_EQ(runtime::heap_calls().has_value(), testing::heap_counted) << "run this through ctest";
  const runtime::Counters before = runtime::counters();
  const long heap = runtime::heap_calls().value_or(0), maps = runtime::map_calls().value_or(0);
  for (int time = 0; time < 1000; ++time) run();
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
  void* const place = result.data();
  expect_no_allocation([&] { model.evaluate(inputs, {&place, 1}); });
}

TEST(ScriptModel, AllocatesNothingWhileGradientsAddUp) {
  runtime::Session session({.workers = 1});
  Model model(session,
              graph::parse(R"(
    $1 = InputTensor(x, float32, [4, 64]);
    $2 = ParameterTensor(w, float32, [64, 3], uniform(-1, 1, seed=1));
    $3 = matmul($1, $2);
    $4 = reduce($3, axes=[0, 1]) { sum($1 * $1) };
    train($4, optimizer=adam, learning_rate=0.001, accumulate=5);
    result = $4;)",
                           operators()),
              {});
  const std::vector<float> x(256, 0.5f);
  const std::vector<NamedBytes> inputs{{"x", x.data(), 1024}};
  float loss = 0;
  void* const place = &loss;
  expect_no_allocation([&] {
    for (int batch = 0; batch < 4; ++batch) model.accumulate(inputs, {&place, 1});
    model.train_step(inputs, {&place, 1});
  });
}

/// Two lanes, or four, wherever a batch can be split.
ModelOptions with_lanes(int lanes) {
  ModelOptions options;
  options.target.two_lanes_microseconds = 0;
  if (lanes == 4) options.target.four_shards_microseconds = 0;
  return options;
}

// Every operator that can work on a share of a batch, with a mask and a prefix for all samples.
TEST(ScriptModel, LanesOfABatch) {
  for (const int batch : {2, 5, 8}) {
    for (const int lanes : {2, 4}) {
      const std::string n = std::to_string(batch);
      const std::string script = "$1 = InputTensor(x, float32, [" + n + R"(, 9, 8, 3]);
        $2 = ConstantTensor(kernel, float32, [3, 3, 3, 8]);
        $3 = ConstantTensor(offset, float32, [8]);
        $4 = conv2d($1, $2, $3, padding=[1, 1]);
        $5 = relu($4);
        $6, $7 = max_pool2d($5);
        $8 = ConstantTensor(deeper, float32, [3, 2, 8, 6]);
        $9 = conv2d($6, $8);
        $10 = avg_pool2d($9, kernel=[2, 2], stride=[1, 1]);
        $11 = flatten($10);
        $12 = ConstantTensor(weight, float32, [12, 8]);
        $13 = ConstantTensor(row, float32, [1, 8]);
        $14 = MatMulNode($11, $12);
        $15 = SumNode($14, $13);
        $16 = bias($15, $3);
        $17 = SiLUNode($16);
        $18 = RMSNormNode($17, $3);
        $19 = ReshapeNode($18, [-1, 4, 2]);
        $20 = PermuteNode($19, [0, 2, 1]);
        $21 = MatMulNode($19, $20);
        $22 = InputTensor(mask, float32, [1, 4, 4]);
        $23 = SumNode($21, $22);
        $24 = InputTensor(prefix, int64, [1]);
        $25 = SlicedSoftmaxNode($23, $24);
        $26 = MatMulNode($25, $19);
        $27 = ComplexHadamardProductNode($26, $19);
        $28 = sum_to($27, [)" + n +
                                 R"(, 1, 2]);
        $29 = broadcast_to($28, [)" +
                                 n + R"(, 4, 2]);
        $30 = HadamardProductNode($29, $27);
        $31 = sum_to($30, [1, 4, 2]);
        $32 = HadamardProductNode($30, $31);
        $33 = sum($32, $27);
        $34 = softmax($33);
        $35 = ConstantTensor(factor, float32, [1]);
        $36 = scale_by($34, $35);
        result = $36, $31, $18;)";
      graph::Remarks remarks;
      EXPECT_TRUE(graph::split_batch(graph::parse(script, operators()), operators(),
                                     {.lanes = lanes}, graph::default_target(), &remarks));
      EXPECT_TRUE(remarks.left.empty()) << remarks.left.front().what << remarks.left.front().why;
      Pair pair(script, static_cast<std::uint32_t>(batch), with_lanes(lanes));
      for (std::int64_t prefix : {4, 1}) {
        pair.set("prefix", prefix);
        EXPECT_LT(pair.difference(), 1e-4) << batch << " samples in " << lanes << " lanes";
      }
    }
  }
}

/// The gradients of what is trained, on numbers that depend on names alone.
std::vector<reference::Tensor> gradients(graph::Graph graph, const std::vector<ValueId>& losses) {
  graph::Builder builder(graph, operators());
  const auto of = graph::add_gradients(builder, losses, graph.training->parameters);
  reference::Evaluator evaluator(graph);
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    const graph::Value& value = graph[ValueId(i)];
    if (!value.is_declared()) continue;
    std::mt19937 random(static_cast<std::uint32_t>(value.name.front()));
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (double& x : evaluator[ValueId(i)].data)
      x = value.type == DType::int32 ? static_cast<double>(random() % 3) : uniform(random);
  }
  evaluator.run();
  std::vector<reference::Tensor> all;
  for (const ValueId id : of) all.push_back(evaluator[id]);
  return all;
}

TEST(ScriptModel, LanesHaveTheGradientsOfTheWhole) {
  graph::Graph whole = graph::parse(R"(
    $1 = InputTensor(x, float32, [7, 5]);
    $2 = ParameterTensor(w, float32, [5, 4]);
    $3 = ParameterTensor(b, float32, [1, 4]);
    $4 = MatMulNode($1, $2);
    $5 = SumNode($4, $3);
    $6 = SiLUNode($5);
    $7 = sum_to($6, [1, 4]);
    $8 = HadamardProductNode($6, $7);
    $9 = ParameterTensor(v, float32, [4, 3]);
    $10 = MatMulNode($8, $9);
    $11 = InputTensor(labels, int32, [7]);
    $12, $13, $14 = softmax_cross_entropy($10, $11);
    result = $12;)",
                                    operators());
  whole.training = graph::Training{{.optimizer = operators().at("sgd"), .learning_rate = 0.1},
                                   whole.outputs.front(),
                                   {whole.find("w"), whole.find("b"), whole.find("v")}};
  const auto expected = gradients(whole, whole.outputs);
  for (const int lanes : {2, 3, 4}) {
    const auto batch = graph::split_batch(whole, operators(), {.lanes = lanes});
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->losses.size(), static_cast<std::size_t>(lanes));
    const auto got = gradients(batch->graph, batch->losses);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(got[i].shape, expected[i].shape);
      for (std::size_t k = 0; k < got[i].size(); ++k)
        EXPECT_NEAR(got[i].data[k], expected[i].data[k], 1e-12) << "parameter " << i;
    }
  }
}

TEST(ScriptModel, AllocatesNothingWhereTheBatchIsSplit) {
  runtime::Session session({.workers = 2});
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
              {&constant, 1}, with_lanes(2));
  std::vector<float> result(7 * 8);
  void* const place = result.data();
  expect_no_allocation([&] { model.evaluate({&input, 1}, {&place, 1}); });
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

// The same with matrices, over caches that are written in place: nothing of their size is copied.
TEST(ScriptModel, KeepsCachesInPlace) {
  Pair pair(R"(
    $1 = InputTensor(x, float32, [1, 16]);
    $2 = InputTensor(position, int64, [1]);
    $3 = InputTensor(length, int64, [1]);
    $4 = ConstantTensor(wk, float32, [16, 16]);
    $5 = ConstantTensor(wv, float32, [16, 16]);
    $6 = BufferTensor(cache, float32, [4, 256, 16]);
    $7 = matmul($1, $4);
    $8 = matmul($1, $5);
    $9 = slice($6, 0, 1);
    $10 = reshape($9, [256, 16]);
    $11 = replace_slice($10, $7, $2, $3);
    $12 = slice($6, 1, 2);
    $13 = reshape($12, [256, 16]);
    $14 = replace_slice($13, $8, $2, $3);
    $15 = matmul($1, $11, transpose_b=1);
    $16 = sliced_softmax($15, $3);
    $17 = matmul($16, $14);
    $18 = matmul($17, $4);
    $19 = matmul($17, $5);
    $20 = slice($6, 2, 3);
    $21 = reshape($20, [256, 16]);
    $22 = replace_slice($21, $18, $2, $3);
    $23 = slice($6, 3, 4);
    $24 = reshape($23, [256, 16]);
    $25 = replace_slice($24, $19, $2, $3);
    $26 = matmul($17, $22, transpose_b=1);
    $27 = sliced_softmax($26, $3);
    $28 = matmul($27, $25);
    result = $28;)",
            3);
  EXPECT_TRUE(pair.model().copies().empty());
  EXPECT_LT(pair.model().plan().transient_bytes(), 256 * 16 * 4);
  for (std::int64_t position = 0; position < 20; ++position) {
    pair.set("position", position);
    pair.set("length", position + 1);
    EXPECT_LT(pair.difference(), 1e-5) << "position " << position;
  }
}

/// Statements over two buffers: views, new versions, those who read them, and results.
class RandomVersions {
 public:
  explicit RandomVersions(std::uint32_t seed) : random_(seed) {
    text_ =
        "$1 = BufferTensor(a, float32, [6, 2]);\n$2 = BufferTensor(b, float32, [4, 2]);\n"
        "$3 = InputTensor(x, float32, [1, 2]);\n$4 = InputTensor(begin, int64, [1]);\n"
        "$5 = InputTensor(choose, int64, [1]);\n";
    kept_ = {{1, 6}, {2, 4}};
    rows_ = {3};
    for (int i = below(10) + 3; i > 0; --i) add();
  }

  std::string script() {
    std::string results;
    for (const auto& [number, rows] : kept_) {
      if (below(4) == 0) results += (results.empty() ? "$" : ", $") + std::to_string(number);
    }
    for (const int number : rows_) {
      if (results.empty() || below(2) == 0)
        results += (results.empty() ? "$" : ", $") + std::to_string(number);
    }
    return text_ + "result = " + results + ";";
  }

 private:
  struct Kept {
    int number, rows;
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void add() {
    const Kept of = kept_[static_cast<std::size_t>(below(static_cast<int>(kept_.size())))];
    const std::string old = "$" + std::to_string(of.number), next = "$" + std::to_string(next_);
    switch (below(6)) {
      case 0: {
        const int rows = 2 + below(of.rows - 1), begin = below(of.rows - rows + 1);
        if (take(next + " = slice(" + old + ", " + std::to_string(begin) + ", " +
                 std::to_string(begin + rows) + ");\n"))
          kept_.push_back({next_ - 1, rows});
        return;
      }
      case 1:
        if (take(next + " = dynamic_slice(" + old + ", $4, rows=1);\n")) rows_.push_back(next_ - 1);
        return;
      case 2: {
        const std::string other = "$" + std::to_string(next_ + 1);
        if (take(next + " = if($5) { " + other + " = dynamic_slice(" + old +
                 ", $4, rows=1); yield " + other + "; } else { yield $3; }\n")) {
          rows_.push_back(next_ - 1);
          ++next_;
        }
        return;
      }
      default: {
        const int by = rows_[static_cast<std::size_t>(below(static_cast<int>(rows_.size())))];
        if (take(next + " = replace_slice(" + old + ", $" + std::to_string(by) + ", $4);\n"))
          kept_.push_back({next_ - 1, of.rows});
      }
    }
  }

  /// Unless it replaces a version twice.
  bool take(const std::string& statement) {
    try {
      graph::parse(text_ + statement + "result = _;", operators());
    } catch (const Error&) {
      return false;
    }
    text_ += statement;
    ++next_;
    return true;
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<Kept> kept_;  // values that are some version of a buffer's rows
  std::vector<int> rows_;   // values of one row
  int next_ = 6;
};

TEST(ScriptModel, VersionsAreWhatTheScriptSaysInPlaceOrNot) {
  const runtime::Session session({.workers = 1});  // StarPU starts once
  std::size_t copied = 0, in_place = 0;
  for (std::uint32_t seed = 0; seed < testing::fewer_where_slow(120U); ++seed) {
    const std::string script = RandomVersions(seed).script();
    Pair pair(script, seed);
    copied += pair.model().copies().size();
    in_place += pair.model().copies().empty() ? 1 : 0;
    for (std::int64_t time = 0; time < 4; ++time) {
      pair.set("begin", (time + seed) % 2);
      pair.set("choose", time % 2);
      ASSERT_EQ(pair.difference(), 0) << "seed " << seed << '\n' << script;
    }
  }
  EXPECT_GT(copied, testing::fewer_where_slow(50U));
  EXPECT_GT(in_place, testing::fewer_where_slow(20U));
}

}  // namespace
}  // namespace arenite
