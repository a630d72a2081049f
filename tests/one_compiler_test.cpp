// One way from any graph to its program: what couples samples is never cut, what a layer keeps is
// kept, and an op with blocks is one op to its surroundings, whoever compiles.
#include <arenite/arenite.hpp>
#include <arenite/graph/text.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/base/testing.hpp"
#include "src/compile/compile.hpp"

namespace arenite {
namespace {

using graph::OpView;
using graph::ValueId;

// ---- an operator from outside that couples the samples of a batch ------------------------------

struct Sizes {
  std::int64_t rows = 0, columns = 0;
};

/// y = x − mean of x over the batch, column by column; its gradient is the same of the gradient.
void center(const runtime::KernelCall& call, const Sizes& size) {
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  for (std::int64_t c = 0; c < size.columns; ++c) {
    double sum = 0;
    for (std::int64_t r = 0; r < size.rows; ++r) sum += x[r * size.columns + c];
    const auto mean = static_cast<float>(sum / static_cast<double>(size.rows));
    for (std::int64_t r = 0; r < size.rows; ++r)
      y[r * size.columns + c] = x[r * size.columns + c] - mean;
  }
}

void register_center() {
  static const bool once = [] {
    graph::OperatorDefinition definition;
    definition.name = "test_center";
    definition.operands = {{"x"}};
    definition.results = {"y"};
    definition.infer = [](const OpView& op) {
      return std::vector<graph::ResultType>{{op.operand(0).type, op.operand(0).shape}};
    };
    definition.gradient = [](graph::GradientContext& context) {
      const ValueId gradient = context.result_gradient(0);
      if (gradient && context.wants(0))
        context.set(0, context.builder().add1("test_center", {gradient}));
    };
    register_operator(std::move(definition),
                      {{.name = "plain", .prepare = [](const OpView& op) {
                          const Shape& x = op.operand(0).shape;
                          return runtime::prepared<center>(
                              Sizes{x[0], x.elements() / std::max<std::int64_t>(x[0], 1)});
                        }}});
    return true;
  }();
  static_cast<void>(once);
}

nn::Layer centered() {
  return [](nn::ModelBuilder& model, ValueId x) {
    model.begin("center");
    return model.graph().add1("test_center", {x});
  };
}

const data::ImageData& images() {
  static const data::ImageData data = data::synthetic({.train = 96, .test = 32});
  return data;
}

double loss_of(const nn::Layer& layers, train::TrainerOptions how, int* lanes = nullptr) {
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, layers, images().shape(), std::move(how));
  if (lanes != nullptr) *lanes = trainer.lanes();
  return trainer.fit(images().train, {.epochs = 2}).train.loss;
}

TEST(OneCompiler, NeverCutsABatchThatAnOperatorSeesAsAWhole) {
  register_center();
  const nn::Layer layers =
      nn::sequential(nn::flatten(), centered(), nn::dense(16), nn::relu(), nn::dense(10));
  const double one = loss_of(layers, {.batch = 32, .lanes = 1});
  for (const int asked : {2, 4, 0}) {
    int lanes = 0;
    EXPECT_EQ(loss_of(layers, {.batch = 32, .lanes = asked}, &lanes), one) << asked;
    EXPECT_EQ(lanes, 1);
  }
}

TEST(OneCompiler, SaysWhyABatchWasNotCut) {
  register_center();
  runtime::Session session({.workers = 1});
  const train::Trainer trainer(session, nn::sequential(nn::flatten(), centered(), nn::dense(10)),
                               images().shape(), {.batch = 32, .lanes = 4});
  EXPECT_EQ(trainer.undivided(),
            "batch 'N': test_center 'center1' cannot work on a share of 32 samples: it sees all 32 "
            "samples of its operand 'x' at once: the operator has no of_share");
}

// Behind layers that can be cut, the rest alone is whole.
TEST(OneCompiler, CutsWhatStandsBeforeAnOperatorThatSeesAll) {
  register_center();
  const nn::Layer layers =
      nn::sequential(nn::conv2d({.channels = 8, .kernel = 3}), nn::relu(), nn::max_pool2d(2),
                     nn::flatten(), nn::dense(12), centered(), nn::dense(10));
  const double one = loss_of(layers, {.batch = 32, .lanes = 1});
  for (const int asked : {2, 4}) {
    int lanes = 0;
    // Gradients are added lane by lane, which rounds differently.
    EXPECT_NEAR(loss_of(layers, {.batch = 32, .lanes = asked}, &lanes), one, 1e-4 * one) << asked;
    EXPECT_EQ(lanes, asked);
  }
}

// ---- a layer that keeps something --------------------------------------------------------------

/// x · n in the n-th step: n is a row of a buffer, which each step replaces.
nn::Layer counted() {
  return [](nn::ModelBuilder& model, ValueId x) {
    model.begin("counted");
    graph::Builder& builder = model.graph();
    const ValueId steps =
        builder.declare("steps", DType::float32, {2, 1}, graph::StorageClass::buffer);
    const ValueId row =
        builder.add1("slice", {steps}, {{"begin", std::int64_t{1}}, {"end", std::int64_t{2}}});
    const ValueId one =
        builder.add1("full", {}, {{"shape", std::vector<std::int64_t>{1, 1}}, {"value", 1.0}});
    const ValueId at = builder.add1(
        "full", {},
        {{"shape", std::vector<std::int64_t>{1}}, {"value", 1.0}, {"type", std::string("int64")}});
    const ValueId next = builder.add1("add", {row, one});
    builder.add1("replace_slice", {steps, next, at});
    const ValueId factor =
        builder.add1("reshape", {next}, {{"shape", std::vector<std::int64_t>{1}}});
    return builder.add1("scale_by", {x, factor});
  };
}

/// x · n in all steps.
nn::Layer scaled(double n) {
  return [n](nn::ModelBuilder& model, ValueId x) {
    graph::Builder& builder = model.graph();
    const ValueId factor =
        builder.add1("full", {}, {{"shape", std::vector<std::int64_t>{1}}, {"value", n}});
    return builder.add1("scale_by", {x, factor});
  };
}

TEST(OneCompiler, KeepsTheRowsOfABufferThatALayerReplaces) {
  // Without learning, an epoch of one step each: its loss is that of its factor.
  const auto losses = [](const nn::Layer& layer, int lanes, int epochs) {
    runtime::Session session({.workers = 2});
    train::Trainer trainer(session, nn::sequential(nn::flatten(), layer, nn::dense(10)),
                           images().shape(),
                           {.batch = 96, .optimizer = optim::sgd({.lr = 0}), .lanes = lanes});
    EXPECT_EQ(trainer.lanes(), lanes);
    std::vector<double> all;
    for (int epoch = 0; epoch < epochs; ++epoch)
      all.push_back(trainer.fit(images().train, {.epochs = 1, .shuffle = false}).train.loss);
    return all;
  };
  std::vector<double> expected;
  for (const double n : {1, 2, 3}) expected.push_back(losses(scaled(n), 1, 1).front());
  EXPECT_NE(expected[0], expected[1]);
  EXPECT_NE(expected[1], expected[2]);
  EXPECT_EQ(losses(counted(), 1, 3), expected);
  for (const int lanes : {2, 4}) {
    // The lanes' sums are added, which rounds differently in double precision.
    const std::vector<double> got = losses(counted(), lanes, 3);
    for (std::size_t epoch = 0; epoch < 3; ++epoch)
      EXPECT_NEAR(got[epoch], expected[epoch], 1e-12) << lanes;
  }
}

// ---- blocks ------------------------------------------------------------------------------------

std::map<std::string, int> ops_of(const graph::Graph& graph) {
  std::map<std::string, int> count;
  for (const graph::OpId id : graph[graph::Graph::body].ops)
    ++count[std::string(graph[id].name()) + "/" + graph[id].kernel + "@" +
            std::to_string(graph[id].lane)];
  return count;
}

TEST(OneCompiler, RefusesAGraphThatNobodyVerified) {
  graph::Graph graph = graph::parse(
      "$1 = InputTensor(x, float32, [4, 8]); $2 = relu($1); $3 = relu($2); result = $3;",
      operators());
  graph[graph::ValueId(1)].shape = {4, 4};
  EXPECT_ERROR("relu #0", compile::lower(graph, {.name = "step", .train = false}, {}));
}

TEST(OneCompiler, ChoosesKernelsForAllOpsOrNone) {
  const auto refusal = [](const std::string& script) -> std::string {
    const graph::Graph graph = graph::parse(script, operators());
    try {
      compile::lower(graph, {.name = "step", .train = graph.training.has_value()}, {});
    } catch (const Error& error) {
      return error.text().found;
    }
    return "";
  };
  const std::string x = "$1 = InputTensor(x, float32, [2, 3]);\n",
                    w = "$2 = ParameterTensor(w, float32, [3, 2]);\n";
  EXPECT_EQ(refusal(x + "$2 = relu($1) @kernel(\"plain\"); $3 = relu($2); result = $3;"),
            "a kernel for relu #0, and none for relu #1");
  EXPECT_EQ(refusal(x + "$2 = relu($1) @kernel(\"plain\"); $3 = flatten($2); result = $3;"), "");
  EXPECT_EQ(refusal(x + w + "$3 = dense($1, $2) @kernel(\"plain\");\n" +
                    "$4 = sum_to($3, [1, 1]) @kernel(\"plain\"); $5 = reshape($4, [1]);\n" +
                    "train($5, optimizer=sgd, learning_rate=1, parameters=[$2]); result = $3;"),
            "a kernel for dense #0, and none for its gradients");
}

constexpr const char* network = R"(
    $1 = InputTensor(image, float32, [64, 12, 12, 16]);
    $2 = InputTensor(label, int32, [64]);
    $3 = ParameterTensor(k, float32, [3, 3, 16, 32]);
    $4 = ParameterTensor(b, float32, [32]);
    $5 = conv2d($1, $3, $4, padding=[1, 1]);
    $6 = relu($5);
    $7, $17 = max_pool2d($6, kernel=[2, 2]);
    $8 = flatten($7);
    $9 = ParameterTensor(w, float32, [1152, 64]);
    $10 = dense($8, $9);
    $11 = relu($10);
    $12 = ParameterTensor(v, float32, [64, 10]);
    $13 = dense($11, $12);
    $14, $15, $16 = softmax_cross_entropy($13, $2);
    train($14, optimizer=sgd, learning_rate=0.1, momentum=0.9, parameters=[$3, $4, $9, $12]);)";
constexpr const char* unrelated = R"(
    $20 = InputTensor(flag, int64, [1]);
    $21 = InputTensor(other, float32, [64, 5]);
    $22 = if($20) { $23 = relu($21); yield $23; } else { yield $21; })";

/// The network, and beside it what has nothing to do with it.
std::string beside_an_if(bool there) {
  return std::string(network) + (there ? unrelated : "") +
         (there ? "\nresult = $14, $22;" : "\nresult = $14;");
}

TEST(OneCompiler, ChangesNothingButTheIfWhereThereIsOne) {
  for (const int lanes : {0, 2}) {
    const auto compiled = [&](const std::string& script) {
      plan::StateLayout state;
      compile::Compiled made =
          compile::compile(graph::parse(script, operators()), {.name = "step", .train = true},
                           {.lanes = lanes}, state);
      plan::verify_step(made.spec.graph, made.spec.schedule, made.spec.plan);
      return made;
    };
    const auto plain = compiled(beside_an_if(false)), with_if = compiled(beside_an_if(true));
    auto expected = ops_of(plain.spec.graph), got = ops_of(with_if.spec.graph);
    EXPECT_GT(plain.cut.shards * plain.cut.lanes, 1);
    EXPECT_EQ(with_if.cut, plain.cut);
    EXPECT_EQ(got.erase("if/@-1"), 1u);
    EXPECT_EQ(got, expected);
    EXPECT_GT(expected.size(), 8u);
    // Its input and its result stand beside the rest; the arena has no more than one of these more.
    const std::int64_t own = 64 * 5 * sizeof(float);
    EXPECT_GE(with_if.spec.plan.transient_bytes(), plain.spec.plan.transient_bytes());
    EXPECT_LE(with_if.spec.plan.transient_bytes(), plain.spec.plan.transient_bytes() + own);
  }
}

/// By name, of all that a model keeps after some steps.
std::map<std::string, std::vector<float>> trained(const std::string& script) {
  runtime::Session session({.workers = 2});
  Model model(session, graph::parse(script, operators()), {});
  const auto draw = [](const std::string& name, std::span<float> values) {
    const Philox random(1, Purpose::initialise, static_cast<std::uint32_t>(name.front()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.uniform(i, -0.1f, 0.1f);
  };
  const auto floats = [&](const StatePort& state) {
    const std::span<std::byte> bytes = model.state(state.name);
    return std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
  };
  for (const StatePort& state : model.states())
    if (state.cls == graph::StorageClass::parameter) draw(state.name, floats(state));
  std::vector<std::vector<float>> values;
  std::vector<std::int32_t> labels(64);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  const std::int64_t flag = 1;
  std::vector<NamedBytes> inputs;
  for (const Port& input : model.inputs()) {
    const void* data = input.type == DType::int32 ? static_cast<const void*>(labels.data()) : &flag;
    if (input.type == DType::float32) {
      values.emplace_back(static_cast<std::size_t>(input.shape.elements()));
      draw(input.name, values.back());
      data = values.back().data();
    }
    inputs.push_back({.name = input.name, .data = data});
  }
  for (int step = 0; step < 3; ++step) model.train_step(inputs, {});
  std::map<std::string, std::vector<float>> kept;
  for (const StatePort& state : model.states())
    kept[state.name].assign(floats(state).begin(), floats(state).end());
  return kept;
}

TEST(OneCompiler, TrainsToTheSameBitsBesideAnIf) {
  const auto alone = trained(beside_an_if(false));
  EXPECT_GE(alone.size(), 8u);
  EXPECT_EQ(trained(beside_an_if(true)), alone);
}

}  // namespace
}  // namespace arenite
