#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include "src/model/testing.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace arenite {
namespace {

using testing::error_of;
using testing::Floats;
using testing::named;

constexpr int batch = 4, features = 3, classes = 2;

const std::string forward = R"(
  $1 = InputTensor(x, float32, [4, 3]);
  $2 = InputTensor(label, int32, [4]);
  $3 = ParameterTensor(weight, float32, [3, 2]);
  $4 = ParameterTensor(bias, float32, [2]);
  $5 = dense($1, $3, $4);
  $6, $7, $8 = softmax_cross_entropy($5, $2, divisor=4);)";
const std::string trained = forward + R"(
  train($6, optimizer=sgd, learning_rate=0.5, momentum=0.9, parameters=[$3, $4]);
  result = $6, $3;)";

const Floats x{1, 0, -1, 0.5, 2, 0, -1, 1, 1, 0, 0, 3};
const std::vector<std::int32_t> label{0, 1, 1, 0};
const Floats first_weight{0.1f, -0.2f, 0.3f, 0.1f, -0.1f, 0.2f}, first_bias{0, 0.1f};

const std::vector<NamedBytes> inputs{named("x", x), named("label", label)};

Floats floats(std::span<const std::byte> bytes) {
  Floats values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// The same by hand, in float64: softmax regression by SGD with momentum.
struct ByHand {
  std::array<double, features * classes> weight{}, weight_velocity{};
  std::array<double, classes> bias{}, bias_velocity{};

  ByHand() {
    std::copy(first_weight.begin(), first_weight.end(), weight.begin());
    std::copy(first_bias.begin(), first_bias.end(), bias.begin());
  }

  double step(double rate, double momentum) {
    std::array<double, features * classes> dw{};
    std::array<double, classes> db{};
    double loss = 0;
    for (int n = 0; n < batch; ++n) {
      std::array<double, classes> e{};
      double sum = 0;
      for (int k = 0; k < classes; ++k) {
        double logit = bias[k];
        for (int i = 0; i < features; ++i) logit += x[n * features + i] * weight[i * classes + k];
        sum += e[k] = std::exp(logit);
      }
      loss -= std::log(e[label[n]] / sum) / batch;
      for (int k = 0; k < classes; ++k) {
        const double d = (e[k] / sum - (label[n] == k ? 1 : 0)) / batch;
        db[k] += d;
        for (int i = 0; i < features; ++i) dw[i * classes + k] += d * x[n * features + i];
      }
    }
    const auto update = [&](auto& w, auto& v, const auto& d) {
      for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * (v[i] = momentum * v[i] + d[i]);
    };
    update(weight, weight_velocity, dw);
    update(bias, bias_velocity, db);
    return loss;
  }
};

struct ModelTrainingTest : ::testing::Test {
  runtime::Session session{{.workers = 1}};
  float loss = 0;
  Floats weight_before = Floats(6);

  Model compile(const std::string& script) {
    const std::vector<NamedBytes> first{named("weight", first_weight), named("bias", first_bias)};
    return {session, graph::parse(script, operators()), first};
  }
  void step(Model& model) {
    void* places[] = {&loss, weight_before.data()};
    model.train_step(inputs, places);
  }
  float evaluate(Model& model) {
    void* places[] = {&loss, weight_before.data()};
    model.evaluate(inputs, places);
    return loss;
  }
};

TEST_F(ModelTrainingTest, StepsAsByHand) {
  Model model = compile(trained);
  ByHand by_hand;
  Floats expected_weight = first_weight;
  for (int i = 0; i < 20; ++i) {
    const double rate = i < 10 ? 0.5 : 0.25;
    if (i == 10) {
      const auto value = static_cast<float>(rate);
      std::memcpy(model.state("learning_rate").data(), &value, sizeof value);
    }
    // Outputs are those from before the update.
    step(model);
    for (std::size_t w = 0; w < expected_weight.size(); ++w)
      EXPECT_NEAR(weight_before[w], by_hand.weight[w], 1e-5);
    EXPECT_NEAR(loss, by_hand.step(rate, 0.9), 1e-5) << i;
  }
  const Floats bias = floats(model.state("bias")), velocity = floats(model.state("bias.velocity"));
  for (std::size_t k = 0; k < bias.size(); ++k) {
    EXPECT_NEAR(bias[k], by_hand.bias[k], 1e-5);
    EXPECT_NEAR(velocity[k], by_hand.bias_velocity[k], 1e-5);
  }
  EXPECT_EQ(model.train_steps(), 20);
  EXPECT_EQ(model.evaluations(), 0);
}

TEST(ModelTrainingLanes, GiveTheSameBitsWithAnyNumberOfWorkers) {
  std::vector<Floats> weights;
  for (const int workers : {1, 2}) {
    runtime::Session session{{.workers = workers}};
    const std::vector<NamedBytes> first{named("weight", first_weight), named("bias", first_bias)};
    Model model(session, graph::parse(trained, operators()), first, testing::four_shards());
    for (int i = 0; i < 20; ++i) model.train_step(inputs, {});
    weights.push_back(floats(model.state("weight")));
  }
  EXPECT_EQ(weights[0], weights[1]);
  ByHand by_hand;
  for (int i = 0; i < 20; ++i) by_hand.step(0.5, 0.9);
  for (std::size_t w = 0; w < weights[0].size(); ++w)
    EXPECT_NEAR(weights[0][w], by_hand.weight[w], 1e-5);
}

TEST(ModelTrainingShards, GiveTheSameBitsHoweverManyAreUnderWay) {
  runtime::Session session{{.workers = 2}};
  const std::vector<NamedBytes> first{named("weight", first_weight), named("bias", first_bias)};
  std::vector<Floats> weights;
  for (const int at_once : {0, 1, 2, 3}) {
    Model model(session, graph::parse(trained, operators()), first,
                {.shards = 3, .shards_at_once = at_once});
    for (int i = 0; i < 5; ++i) model.train_step(inputs, {});
    weights.push_back(floats(model.state("weight")));
    EXPECT_EQ(weights.back(), weights.front()) << at_once;
  }
}

/// Whose loss is scaled, and has a part of another sum.
TEST(ModelTrainingShards, HaveTheirPartsOfALossThatIsLinearInSums) {
  runtime::Session session{{.workers = 2}};
  const std::string mean = R"(
  $1 = InputTensor(x, float32, [4, 3]);
  $2 = InputTensor(label, int32, [4]);
  $3 = ParameterTensor(weight, float32, [3, 2], uniform(-1, 1, seed=5));
  $4 = dense($1, $3);
  $5 = mul($4, $4);
  $6 = sum_to($5, shape=[1, 1]);
  $7 = full(shape=[], value=0.3);
  $8 = mul($6, $7);
  $9 = reshape($8, [1]);
  $10, $11, $12 = softmax_cross_entropy($4, $2, divisor=4);
  $13 = add($9, $10);
  train($13, optimizer=sgd, learning_rate=0.1);
  result = $13;)";
  Model one(session, graph::parse(mean, operators()), {}, {.shards = 1, .lanes = 1});
  float expected = 0;
  one.train_step(inputs, std::vector<void*>{&expected});
  for (const int shards : {2, 4}) {
    Model model(session, graph::parse(mean, operators()), {}, {.shards = shards});
    float loss = 0;
    model.train_step(inputs, std::vector<void*>{&loss});
    EXPECT_NEAR(loss, expected, 1e-6);
    const Floats found = floats(model.state("weight")), wanted = floats(one.state("weight"));
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6);
  }
}

TEST_F(ModelTrainingTest, EvaluationChangesNothing) {
  Model model = compile(trained);
  const float before = evaluate(model);
  EXPECT_EQ(evaluate(model), before);
  EXPECT_EQ(floats(model.state("weight")), first_weight);
  step(model);
  EXPECT_EQ(loss, before);
  EXPECT_LT(evaluate(model), before);
}

TEST_F(ModelTrainingTest, StepsThatNobodyLooksAtAreTheSame) {
  Model looked = compile(trained), blind = compile(trained);
  for (int i = 0; i < 7; ++i) {
    step(looked);
    blind.train_step(inputs, {});
  }
  EXPECT_EQ(floats(looked.state("weight")), floats(blind.state("weight")));
  EXPECT_EQ(evaluate(looked), evaluate(blind));
}

TEST_F(ModelTrainingTest, TellsWhatItKeeps) {
  Model model = compile(trained);
  std::vector<std::string> names;
  for (const StatePort& port : model.states()) {
    names.push_back(port.name + ": " + std::string(to_string(port.cls)) + " " +
                    to_string(port.shape));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"weight: parameter [3, 2]", "bias: parameter [2]",
                                             "weight.velocity: optimizer_state [3, 2]",
                                             "bias.velocity: optimizer_state [2]",
                                             "learning_rate: buffer [1]"}));
  EXPECT_EQ(floats(model.state("learning_rate")), Floats{0.5f});
  EXPECT_EQ(floats(model.state("weight.velocity")), Floats(6, 0));
  EXPECT_EQ(error_of([&] { compile(forward + "result = $6;").train_step(inputs, {}); }),
            "a model whose script has no training; expected one with a train statement");
}

struct SavedModelTest : ModelTrainingTest {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("saved_model_test." + std::to_string(::getpid()));
  std::filesystem::path file = folder / "model.safetensors";
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
};

TEST_F(SavedModelTest, GoesOnWithTheSameBits) {
  Model first = compile(trained), second = compile(trained);
  for (int i = 0; i < 5; ++i) first.train_step(inputs, {});
  first.save(file);
  second.load(file);
  for (int i = 0; i < 5; ++i) {
    step(first);
    const float expected = loss;
    step(second);
    EXPECT_EQ(loss, expected);
  }
  EXPECT_EQ(floats(first.state("weight")), floats(second.state("weight")));
}

TEST_F(SavedModelTest, RefusesTheFilesOfOthersAndKeepsWhatItHas) {
  const auto error = [&](const std::string& script) {
    compile(script).save(file);
    Model model = compile(trained);
    step(model);
    const Floats before = floats(model.state("weight"));
    std::string text = error_of([&] { model.load(file); });
    EXPECT_EQ(floats(model.state("weight")), before);
    return text.erase(0, std::min(text.size(), file.string().size()));
  };
  const std::string without_momentum = R"(
    train($6, optimizer=sgd, learning_rate=1, parameters=[$3, $4]);
    result = $6, $3;)";
  EXPECT_EQ(error(forward + without_momentum),
            ": no 'weight.velocity'; expected float32 [3, 2] of that name, which this model keeps");
  EXPECT_EQ(error(forward + "$9 = BufferTensor(cache, int32, [2]); result = $6;"),
            ": 'cache'; expected only what this model keeps");
}

TEST_F(ModelTrainingTest, GoesDownAParameterThatIsTheLoss) {
  const char* script = R"(
    $1 = ParameterTensor(weight, float32, [1]);
    $2 = reshape($1, shape=[1]);
    train($2, optimizer=sgd, learning_rate=0.5, parameters=[$1]);
    result = $2;)";
  const Floats first{2};
  Model model(session, graph::parse(script, operators()), std::vector{named("weight", first)});
  model.train_step({}, {});
  EXPECT_EQ(floats(model.state("weight")), Floats{1.5f});
}

TEST_F(ModelTrainingTest, GradIsTheSlope) {
  const std::string script = forward + R"(
    $9, $10 = grad($6, wrt=[$3, $1]);
    $11 = relu($9);
    result = $6, $9, $10, $11;)";
  Model model = compile(script);
  Floats by_weight(6), by_x(12), positive(6);
  void* places[] = {&loss, by_weight.data(), by_x.data(), positive.data()};
  model.evaluate(inputs, places);
  // Its first step without momentum goes down this slope.
  Model stepped = compile(forward + R"(
    train($6, optimizer=sgd, learning_rate=1, parameters=[$3]);
    result = $6;)");
  stepped.train_step(inputs, {});
  const Floats after = floats(stepped.state("weight"));
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_NEAR(first_weight[i] - after[i], by_weight[i], 1e-6);
    EXPECT_EQ(positive[i], std::max(by_weight[i], 0.0f));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto loss_at = [&](float step) {
      Floats moved = x;
      moved[i] += step;
      Floats ignored(12);
      float moved_loss = 0;
      void* outs[] = {&moved_loss, by_weight.data(), ignored.data(), positive.data()};
      model.evaluate(std::vector<NamedBytes>{named("x", moved), named("label", label)}, outs);
      return static_cast<double>(moved_loss);
    };
    constexpr float h = 1e-2f;
    EXPECT_NEAR((loss_at(h) - loss_at(-h)) / (2 * h), by_x[i], 1e-3) << i;
  }
}

/// Weights after some steps of a script with these statements.
std::vector<Floats> after_steps(const std::string& before, const std::string& optimizer) {
  const std::string script =
      before + forward + "\n  train($6, learning_rate=0.1, " + optimizer + ");\n  result = $6;";
  runtime::Session session{{.workers = 2}};
  const std::vector<NamedBytes> first{named("weight", first_weight), named("bias", first_bias)};
  Model model(session, graph::parse(script, operators()), first);
  for (int i = 0; i < 5; ++i) model.train_step(inputs, {});
  return {floats(model.state("weight")), floats(model.state("bias"))};
}

TEST(ModelTraining, TakesOptimizersThatAScriptWrites) {
  const std::string adam = R"(
  formula mine(weight, gradient, learning_rate, exp_avg, exp_avg_sq, step,
               weight_decay=0.5, beta1=0.9, beta2=0.999, eps=1e-8) {
    g = fma(weight_decay, weight, gradient);
    m = beta1 * exp_avg + (1 - beta1) * g;
    s = beta2 * exp_avg_sq + (1 - beta2) * g * g;
    rate = -learning_rate * (1 / (1 - pow(beta1, step)));
    yield fma(rate, m / fma(sqrt(s), 1 / sqrt(1 - pow(beta2, step)), eps), weight), m, s
  })";
  EXPECT_EQ(after_steps(adam, "optimizer=mine"),
            after_steps("", "optimizer=adam, weight_decay=0.5"));
  // Both means are corrected alike.
  EXPECT_EQ(after_steps(adam, "optimizer=mine, beta1=0.75, beta2=0.75, group(\"bias\", beta2=0.5)"),
            after_steps("",
                        "optimizer=adam, weight_decay=0.5, beta1=0.75, beta2=0.75, "
                        "group(\"bias\", beta2=0.5)"));
}

TEST(ModelTraining, GoesThroughFormulasThatAScriptWrites) {
  const auto gated = [](const std::string& formula, const std::string& op) {
    std::string script = formula + forward + trained.substr(forward.size());
    const std::size_t at = script.find("  $6,");
    script.insert(at, "  $9 = " + op + ";\n");
    script.replace(script.find("cross_entropy($5"), 16, "cross_entropy($9");
    runtime::Session session{{.workers = 1}};
    const std::vector<NamedBytes> first{named("weight", first_weight), named("bias", first_bias)};
    Model model(session, graph::parse(script, operators()), first);
    for (int i = 0; i < 3; ++i) model.train_step(inputs, {});
    return floats(model.state("weight"));
  };
  EXPECT_EQ(gated("formula gate(x, beta=3) { x * sigmoid(beta * x) }", "gate($5, beta=1)"),
            gated("", "silu($5)"));
  const Floats rows = gated("formula norm(x) { e = exp(x - max(x)); yield e * (1 / sum(e)) }",
                            "norm($5)"),
               softmax = gated("", "softmax($5)");
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(rows[i], softmax[i], 1e-6);
}

}  // namespace
}  // namespace arenite
