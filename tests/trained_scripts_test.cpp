// Networks that scripts say, trained, saved and asked like those of C++.
#include <arenite/arenite.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/testing.hpp"

#include <array>
#include <cmath>
#include <filesystem>
#include <string>

namespace arenite {
namespace {

// The size of a batch has a name of its own; one metric is by samples, the other by a second sum.
const std::string small = R"(
  $1 = InputTensor(pixels, float32, [images<=40, 784]);
  $2 = InputTensor(class, int32, [images]);
  $3 = ParameterTensor(weight, float32, [784, 10], uniform(-0.05, 0.05));
  $4 = ParameterTensor(bias, float32, [10]);
  $5 = ParameterTensor(scale, float32, [10], constant(1), frozen);
  $6 = dense($1, $3, $4);
  $7 = mul($6, $5);
  $8, $9, $10 = softmax_cross_entropy($7, $2, divisor=images);
  $11 = slice($9, 1, 2);
  $12 = reduce($7, axes=[0, 1]) { yield sum(float64($1)) }
  $13 = reshape($12, [1]);
  $14 = reduce($7, axes=[0, 1]) { yield sum(float64(1)) + sum(float64($1 * 0)) }
  $15 = reshape($14, [1]);
  train($8, optimizer=adam, learning_rate=0.002, parameters=[$3, $4]);
  entry predict = $7;
  entry accuracy = $11;
  entry score = $13, $15;
  entry logits(mode=train) = $7, $6;
  result = $7;)";

const data::ImageData& images() {
  static const data::ImageData data = data::synthetic({.seed = 5, .train = 470, .test = 110});
  return data;
}

Samples numbers_of(const data::Split& split) {
  Samples samples = data::samples_of(split);
  samples.columns[0].input = "pixels";
  samples.columns[0].shape = {split.count, split.image_bytes()};
  samples.columns[1].input = "class";
  return samples;
}

TEST(TrainedScripts, LearnAndSayTheirMetrics) {
  const train::Script script = train::read_script(small);
  EXPECT_EQ(script.most, 40);
  EXPECT_EQ(script.optimizer.optimizer->name, "adam");
  runtime::Session session({.workers = 2});
  train::Trainer trainer(session, script.build, {.batch = 32, .optimizer = script.optimizer});
  const Samples train = numbers_of(images().train), test = numbers_of(images().test);
  const train::Metrics last = trainer.fit(train, {.epochs = 15}).train;
  EXPECT_GT(last.accuracy, 0.6);
  const train::Metrics found = trainer.evaluate(test);
  EXPECT_EQ(*found.names, (std::vector<std::string>{"loss", "accuracy", "score"}));

  // By hand, from what it predicts.
  const train::Predictions scores = trainer.predict(test);
  const train::Confusion confusion = train::confusion(scores, test.columns[1]);
  EXPECT_NEAR(found.accuracy, confusion.accuracy(), 1e-12);
  double sum = 0;
  for (const float score : scores.values<float>()) sum += score;
  EXPECT_NEAR(found["score"], sum / static_cast<double>(scores.shape.elements()), 1e-6);
  for (const auto& parameter : trainer.parameters()) {
    if (parameter.name == "scale") {
      EXPECT_EQ(parameter.values[3], 1);
    }
  }
}

// With what is another thing in training, and an operator of one's own.
TEST(TrainedScripts, GoOnFromTheirFilesToTheBit) {
  const train::Script script = train::read_script(R"(
    formula swish(x, beta=1) { x * sigmoid(beta * x) }
    $1 = InputTensor(pixels, float32, [N<=32, 784]);
    $2 = InputTensor(class, int32, [N]);
    $3 = ParameterTensor(weight, float32, [784, 16], uniform(-0.05, 0.05));
    $4 = matmul($1, $3);
    $5 = BufferTensor(running_mean, float32, [16]);
    $6 = BufferTensor(running_variance, float32, [16], constant(1));
    $7, $8, $9 = batch_norm($4, $5, $6);
    $10 = swish($7, beta=1.5);
    $11 = dropout($10, 0.2, seed=4);
    $12 = ParameterTensor(out, float32, [16, 10], normal(0, 0.1));
    $13 = matmul($11, $12);
    $14, $15, $16 = softmax_cross_entropy($13, $2, divisor=N);
    train($14, optimizer=sgd, learning_rate=0.1, momentum=0.9, schedule=cosine(steps=60), clip_norm=1, group("out", weight_decay=0.01), average(decay=0.9));
    entry predict = $13;
    result = _;)");
  const auto file = std::filesystem::temp_directory_path() /
                    ("trained_script." + std::to_string(getpid()) + ".st");
  runtime::Session session({.workers = 2});
  const Samples train = numbers_of(images().train), test = numbers_of(images().test);
  train::Trainer trainer(session, script.build, {.batch = 32, .optimizer = script.optimizer});
  trainer.fit(train, {.epochs = 2});
  trainer.save(file);
  trainer.fit(train, {.epochs = 1});

  const train::SavedRun run = train::saved_run(file);
  train::Trainer resumed(session, run.build, run.options);
  EXPECT_EQ(resumed.resume(file), "");
  resumed.fit(train, {.epochs = 1});
  EXPECT_EQ(resumed.weights_sha256(), trainer.weights_sha256());
  EXPECT_EQ(resumed.evaluate(test).values, trainer.evaluate(test).values);
  EXPECT_EQ(resumed.predict(test).bytes, trainer.predict(test).bytes);
  std::filesystem::remove(file);
}

/// The script with one line in place of another.
std::string with(const std::string& line, const std::string& other) {
  std::string text = small;
  return text.replace(text.find(line), line.size(), other);
}

TEST(TrainedScripts, AreRefusedWhereTheyAreNone) {
  const auto refused = [](const std::string& text) {
    return testing::error_of([&] { static_cast<void>(train::read_script(text, "net")); });
  };
  EXPECT_EQ(refused(with("train($8", "# train($8")),
            "net: a script that does not train; expected a train statement");
  EXPECT_EQ(refused(with("adam, ", "adam, accumulate=2, ")),
            "net: accumulate=2 of a train statement; expected 1: whoever trains says how many "
            "batches make a step");
  EXPECT_EQ(refused(with("entry predict = $7", "entry predict = $7, $6")),
            "net: an entry predict of 2 values; expected one");
  EXPECT_EQ(refused(with("entry predict", "entry predict(mode=train)")),
            "net: entry 'predict' with a mode, means or values that it keeps; expected predictions "
            "and metrics of an evaluation");
  EXPECT_EQ(refused(with("ParameterTensor(scale, float32, [10], constant(1), frozen)",
                         "ConstantTensor(scale, float32, [10])")),
            "net: constant 'scale', whose bytes nobody has; expected none (hint: a parameter that "
            "is frozen has a first value, and keeps it)");
  const std::string open = "expected inputs of a batch, as InputTensor(x, float32, [N<=64, 784])";
  EXPECT_EQ(refused(with("class, int32, [images]", "class, int32, [40]")),
            "net: input 'class' [40] beside an open batch 'images'; " + open);
  EXPECT_EQ(refused("$1 = ParameterTensor(w, float32, [1]);\n"
                    "$2 = mul($1, $1);\ntrain($2, optimizer=sgd, learning_rate=1);\nresult = _;"),
            "net: a script without inputs; " + open);
  EXPECT_EQ(refused("$1 = InputTensor(x, float32, [N<=4, wide<=3]);\n"
                    "$2 = reduce($1, axes=[0, 1]) { mean($1) }\n$3 = reshape($2, [1]);\n"
                    "$4 = ParameterTensor(w, float32, [1]);\n$5 = mul($3, $4);\n"
                    "train($5, optimizer=sgd, learning_rate=1);\nresult = _;"),
            "net: sizes 'N' and 'wide' left open; expected one, of the batch");
  EXPECT_EQ(refused("$1 = rellu($2);").substr(0, 8), "net:1:6:");

  runtime::Session session({.workers = 1});
  const train::Script script = train::read_script(small, "net");
  EXPECT_EQ(
      testing::error_of([&] {
        train::Trainer(session, script.build, {.batch = 41, .optimizer = script.optimizer});
      }),
      "net: a step on 41 samples; expected at most 40 (hint: inputs [N<=41, …] take any number "
      "up to that)");

  // Of a known batch, of which there are to be whole ones.
  const auto known = [](std::string text) {
    for (const std::string name : {"images<=40", "images"}) {
      for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;)
        text.replace(at, name.size(), "40");
    }
    return text;
  };
  const train::Script whole = train::read_script(known(small), "net");
  const Samples train = numbers_of(images().train);
  std::string bits;
  for (const train::Script* const one : {&script, &whole}) {
    train::Trainer trainer(session, one->build, {.batch = 40, .optimizer = one->optimizer});
    Samples some = train;
    for (Column& column : some.columns) column.shape = column.shape.with(0, 120);
    trainer.fit(some, {.epochs = 1});
    if (one == &whole) {
      EXPECT_EQ(trainer.weights_sha256(), bits);
      EXPECT_EQ(testing::error_of([&] { trainer.fit(train); }),
                "net: a step on " + std::to_string(train.count() % 40) +
                    " samples; expected 40 (hint: inputs [N<=40, …] take any number up to that)");
    }
    bits = trainer.weights_sha256();
  }
}

// One whose batches are built differently is of the program that builds them.
TEST(SavedRuns, LackNetworksThatAreBuiltByTheirBatch) {
  const auto file =
      std::filesystem::temp_directory_path() / ("by_batch." + std::to_string(getpid()) + ".st");
  const train::Build build = [](nn::ModelBuilder& model, std::int64_t batch) {
    const auto x = model.input("pixels", {batch, 784});
    const auto label = model.input("class", {batch}, DType::int32);
    // A number that is the batch's by chance, for all that the graph can know.
    const auto scaled =
        model.graph().add1("map", {x}, {{"expression", "yield $1 / " + std::to_string(batch)}});
    const auto loss = nn::cross_entropy()(model, nn::dense(10)(model, scaled), label, batch);
    return train::Objective{.loss = loss.value};
  };
  runtime::Session session({.workers = 1});
  train::Trainer trainer(session, build, {.batch = 32});
  trainer.fit(numbers_of(images().train), {.epochs = 1});
  trainer.save(file);
  EXPECT_EQ(testing::error_of([&] { static_cast<void>(train::saved_run(file)); }),
            file.string() +
                ": a run without its network; expected one whose batches are all built alike "
                "(hint: the program that trained it can go on with it)");
  train::Trainer resumed(session, build, {.batch = 32});
  EXPECT_EQ(resumed.resume(file), "");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace arenite
