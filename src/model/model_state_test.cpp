// What models keep: how it begins, what it is called, and what of it is trained.
#include <arenite/graph/first_value.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include "src/model/testing.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace arenite {
namespace {

using testing::error_of;
using testing::Floats;
using testing::named;

struct ModelStateTest : ::testing::Test {
  runtime::Session session{{.workers = 2}};

  Model compile(const std::string& script, const std::vector<NamedBytes>& given = {},
                const ModelOptions& options = {}) {
    return {session, graph::parse(script, operators()), given, options};
  }

  static Floats floats(Model& model, std::string_view name) {
    const std::span<std::byte> bytes = model.state(name);
    Floats values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  static std::vector<std::string> names(const Model& model) {
    std::vector<std::string> all;
    for (const StatePort& port : model.states()) all.push_back(port.name);
    return all;
  }
};

const std::string random_state = R"(
  $1 = InputTensor(x, float32, [4, 3]);
  $2 = ParameterTensor(a, float32, [3], uniform(-1, 1));
  $3 = ParameterTensor(b, float32, [3], normal(0, 1));
  $4 = ParameterTensor(c, float32, [3], uniform(-1, 1, seed=9));
  $5 = BufferTensor(d, float32, [3], constant(0.5));
  $6 = BufferTensor(e, float32, [3]);
  $7 = map($1, $2, $3, $4, $5, $6) { $1 * $2 + $3 * $4 + $5 + $6 }
  result = $7;)";

TEST_F(ModelStateTest, BeginsAsTheScriptSays) {
  Model model = compile(random_state), other = compile(random_state, {}, {.seed = 2});
  EXPECT_EQ(floats(model, "d"), Floats(3, 0.5f));
  EXPECT_EQ(floats(model, "e"), Floats(3, 0));
  Floats expected(3);
  graph::fill(std::as_writable_bytes(std::span(expected)), DType::float32, graph::uniform(-1, 1), 1,
              0);
  EXPECT_EQ(floats(model, "a"), expected);
  EXPECT_NE(floats(other, "a"), expected);
  EXPECT_NE(floats(other, "b"), floats(model, "b"));
  EXPECT_EQ(floats(other, "c"), floats(model, "c"));
  EXPECT_NE(floats(model, "c"), floats(model, "a"));
}

TEST_F(ModelStateTest, BeginsWithBytesThatItIsGiven) {
  const Floats one{1, 2, 3}, two{4, 5, 6};
  Model model = compile(random_state, {named("d", one), named("b", two)});
  EXPECT_EQ(floats(model, "d"), one);
  EXPECT_EQ(floats(model, "b"), two);
  EXPECT_EQ(error_of([&] { compile(random_state, {named("q", one)}); }),
            "an unknown constant 'q'; expected a, b, c, d, e");
}

/// Everything is called alike.
const std::string alike = R"(
  $1 = InputTensor(learning_rate, float32, [4, 3]);
  $2 = InputTensor(label, int32, [4]);
  $3 = ParameterTensor(learning_rate, float32, [3, 2], constant(0.25));
  $4 = ParameterTensor(label, float32, [2]);
  $5 = BufferTensor(label, float32, [1]);
  $6 = ParameterTensor(learning_rate.velocity, float32, [2]);
  $7 = dense($1, $3, $4);
  $8 = map($7, $6) { $1 + $2 }
  $9, $10, $11 = softmax_cross_entropy($8, $2, divisor=4);
  $12 = map($5, $9) { $1 + $2 }
  assign($5, $12);
  train($9, optimizer=sgd, learning_rate=0.5, momentum=0.9, parameters=[$3, $4, $6]);
  result = $9;)";

TEST_F(ModelStateTest, NamesAreTheirOwnWithinAClass) {
  Model model = compile(alike);
  EXPECT_EQ(names(model),
            (std::vector<std::string>{"learning_rate", "label", "learning_rate.velocity",
                                      "learning_rate.velocity.velocity",
                                      "optimizer_state/learning_rate.velocity", "label.velocity",
                                      "buffer/label", "buffer/learning_rate"}));
  EXPECT_EQ(floats(model, "learning_rate"), Floats(6, 0.25f));
  EXPECT_EQ(floats(model, "buffer/learning_rate"), Floats{0.5f});
  const Floats x{1, 0, -1, 0.5, 2, 0, -1, 1, 1, 0, 0, 3};
  const std::vector<std::int32_t> label{0, 1, 1, 0};
  const std::vector<NamedBytes> inputs{named("learning_rate", x), named("label", label)};
  model.train_step(inputs, {});
  EXPECT_NE(floats(model, "learning_rate"), Floats(6, 0.25f));
  EXPECT_EQ(floats(model, "buffer/learning_rate"), Floats{0.5f});
  EXPECT_NE(floats(model, "buffer/label"), Floats{0});
  const auto file = std::filesystem::temp_directory_path() /
                    ("model_state_test." + std::to_string(::getpid()) + ".safetensors");
  model.save(file);
  Model again = compile(alike);
  again.load(file);
  std::filesystem::remove(file);
  for (const std::string& name : names(model)) EXPECT_EQ(floats(again, name), floats(model, name));
}

TEST_F(ModelStateTest, ConstantsHaveTheirNamesBeforeAll) {
  const Floats one{1, 2}, two{3, 4};
  Model model = compile(R"(
    $1 = ConstantTensor(w, float32, [2]);
    $2 = ParameterTensor(w, float32, [2]);
    $3 = map($1, $2) { $1 + $2 }
    result = $3;)",
                        {named("w", one), named("parameter/w", two)});
  EXPECT_EQ(floats(model, "parameter/w"), two);
  EXPECT_EQ(error_of([&] { model.state("w"); }),
            "no state named 'w'; expected a parameter, optimizer state or buffer");
}

const std::string two_heads = R"(
  $1 = InputTensor(x, float32, [4, 3]);
  $2 = InputTensor(label, int32, [4]);
  $3 = ParameterTensor(weight, float32, [3, 2], uniform(-1, 1));
  $4 = ParameterTensor(held, float32, [2], uniform(-1, 1), frozen);
  $5 = ParameterTensor(head, float32, [3, 2], uniform(-1, 1));
  $6 = dense($1, $3, $4);
  $7, $8, $9 = softmax_cross_entropy($6, $2, divisor=4);
  train($7, optimizer=adam, learning_rate=0.5);
  result = $7;)";

TEST_F(ModelStateTest, TrainsWhatIsNotFrozenAndWhatTheLossDependsOn) {
  Model model = compile(two_heads);
  EXPECT_EQ(model.untrained(), std::vector<std::string>{"head"});
  const Floats weight = floats(model, "weight"), held = floats(model, "held"),
               head = floats(model, "head");
  const Floats x(12, 0.5f);
  const std::vector<std::int32_t> label{0, 1, 1, 1};
  for (int i = 0; i < 3; ++i)
    model.train_step(std::vector{named("x", x), named("label", label)}, {});
  EXPECT_NE(floats(model, "weight"), weight);
  EXPECT_EQ(floats(model, "held"), held);
  EXPECT_EQ(floats(model, "head"), head);
}

TEST_F(ModelStateTest, TheLearningRateIsCheckedWhereverItComesIn) {
  Model model = compile(two_heads);
  EXPECT_EQ(model.learning_rate(), 0.5f);
  model.set_learning_rate(0.25f);
  EXPECT_EQ(model.learning_rate(), 0.25f);
  for (const float wrong : {-1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_THROW(model.set_learning_rate(wrong), Error);
    EXPECT_THROW(model.set_state("learning_rate", std::as_bytes(std::span(&wrong, 1))), Error);
    EXPECT_EQ(model.learning_rate(), 0.25f);
    // A file that has it changes nothing.
    const auto file = std::filesystem::temp_directory_path() /
                      ("model_rate_test." + std::to_string(::getpid()) + ".safetensors");
    Model other = compile(two_heads, {}, {.seed = 3});
    std::memcpy(other.state("learning_rate").data(), &wrong, sizeof wrong);
    other.save(file);
    const Floats before = floats(model, "weight");
    EXPECT_THROW(model.load(file), Error);
    EXPECT_EQ(floats(model, "weight"), before);
    std::filesystem::remove(file);
  }
  Model untrained = compile(random_state);
  EXPECT_EQ(error_of([&] { untrained.learning_rate(); }),
            "a model whose script has no training; expected one with a train statement");
}

}  // namespace
}  // namespace arenite
