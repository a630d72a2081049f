// Models of graphs that leave sizes to a run.
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include "src/model/testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace arenite {
namespace {

using testing::error_of;
using testing::Floats;
using testing::named;

constexpr int bound = 9, pixels = 36, classes = 3;

const std::string network = R"(
  $1 = InputTensor(x, float32, [rows<=9, 36]);
  $2 = InputTensor(label, int32, [rows]);
  $3 = ParameterTensor(filter, float32, [3, 3, 1, 2]);
  $4 = ParameterTensor(weight, float32, [72, 3]);
  $5 = reshape($1, [rows, 6, 6, 1]);
  $6 = conv2d($5, $3, padding=[1, 1]);
  $7 = relu($6);
  $8 = ReshapeNode($7, [rows, -1]);
  $9 = dense($8, $4);
  $10, $11, $12 = softmax_cross_entropy($9, $2, divisor=rows);
  train($10, optimizer=sgd, learning_rate=0.1, momentum=0.9, parameters=[$3, $4]);
  result = $9, $10;)";

/// The script that one would have written for so many rows.
std::string of_rows(int rows) {
  std::string text = network;
  for (const std::string& name : {std::string("rows<=9"), std::string("rows")}) {
    for (std::size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), std::to_string(rows));
  }
  return text;
}

Floats numbers(int count, float scale) {
  Floats all(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    all[static_cast<std::size_t>(i)] = scale * static_cast<float>((i * 37) % 19 - 9);
  return all;
}

/// Logits and the loss of an evaluation and of three steps, then both parameters.
Floats results(Model& model, int rows) {
  const Floats x = numbers(rows * pixels, 0.1f);
  std::vector<std::int32_t> label(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < label.size(); ++i) label[i] = static_cast<std::int32_t>(i) % classes;
  Floats all;
  for (int step = -1; step < 3; ++step) {
    Floats logits(static_cast<std::size_t>(rows * classes)), loss(1);
    const std::vector<NamedBytes> inputs{named("x", x), named("label", label)};
    const std::vector<void*> outputs{logits.data(), loss.data()};
    step < 0 ? model.evaluate(inputs, outputs) : model.train_step(inputs, outputs);
    all.insert(all.end(), logits.begin(), logits.end());
    all.push_back(loss[0]);
  }
  for (const char* name : {"filter", "weight"}) {
    const auto bytes = model.state(name);
    const auto* first = reinterpret_cast<const float*>(bytes.data());
    all.insert(all.end(), first, first + bytes.size() / sizeof(float));
  }
  return all;
}

class ModelSizes : public ::testing::Test {
 protected:
  Model compile(const std::string& text, ModelOptions options = {}) {
    const Floats filter = numbers(18, 0.05f), weight = numbers(216, 0.02f);
    return Model(session, graph::parse(text, operators()),
                 std::vector{named("filter", filter), named("weight", weight)}, options);
  }

  runtime::Session session{{.workers = 2}};
};

TEST_F(ModelSizes, GiveTheModelThatOneWouldHaveWritten) {
  for (int rows = 1; rows <= bound; ++rows) {
    for (ModelOptions options : {ModelOptions{}, testing::four_shards()}) {
      Model written = compile(of_rows(rows), options);
      options.sizes = {{"rows", rows}};
      Model given = compile(network, options);
      EXPECT_EQ(given.inputs()[0].shape, Shape({rows, pixels}));
      EXPECT_EQ(results(given, rows), results(written, rows)) << rows << " rows";
    }
  }
}

TEST_F(ModelSizes, MustAllBeGiven) {
  EXPECT_EQ(error_of([&] { compile(network); }),
            "the size 'rows', which only a run knows; expected a graph of known sizes (hint: "
            "the model's options give them, as rows=9)");
  EXPECT_EQ(error_of([&] {
              compile(network, {.sizes = {{"rows", 10}}});
            }),
            "size rows=10; expected 1 to 9, its upper bound");
  EXPECT_EQ(error_of([&] {
              compile(network, {.sizes = {{"row", 4}}});
            }),
            "unknown size 'row'; expected one of rows (hint: did you mean 'rows'?)");
  EXPECT_EQ(error_of([&] {
              compile(of_rows(4), {.sizes = {{"rows", 4}}});
            }),
            "unknown size 'rows'; expected none: all sizes of the graph are known");
}

TEST_F(ModelSizes, OfAnOptimizersAttributesAreGivenToo) {
  std::string text = network;
  text.replace(text.find("momentum=0.9"), 12, "weight_decay=rows");
  const graph::Graph graph = graph::parse(text, operators());
  EXPECT_TRUE(graph::equal(graph::parse(graph::print(graph), operators()), graph));
  const graph::Graph made = graph::at_sizes(graph, {{"rows", 2}});
  EXPECT_EQ(made.training->attributes.real("weight_decay"), 2);
  EXPECT_TRUE(made.training->attributes.size_names().empty());
}

}  // namespace
}  // namespace arenite
