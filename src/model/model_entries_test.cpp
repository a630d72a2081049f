// Models of graphs with entries of their own.
#include <arenite/graph/entries.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/graph/verify.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include "src/model/testing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace arenite {
namespace {

using testing::error_of;
using testing::Floats;
using testing::named;

const std::string network = R"(
  $1 = InputTensor(x, float32, [rows<=9, 4]);
  $2 = InputTensor(label, int32, [rows]);
  $3 = ParameterTensor(w, float32, [4, 3], uniform(-1, 1, seed=7));
  $4 = BufferTensor(calls, float32, [1]);
  $5 = dense($1, $3);
  $6, $7, $8 = softmax_cross_entropy($5, $2, divisor=rows);
  $9 = full(shape=[1], value=1);
  $10 = add($4, $9);
  $11 = assign($4, $10);
  $12 = softmax($5);
  train($6, optimizer=sgd, learning_rate=0.1, average(decay=0.5), parameters=[$3]);
  entry predict = $12;
  entry "count it"(keeps=[$11]) = $5, $11;
  result = $6;)";

class ModelEntries : public ::testing::Test {
 protected:
  Floats state(const char* name) {
    const auto bytes = model.state(name);
    const auto* first = reinterpret_cast<const float*>(bytes.data());
    return {first, first + bytes.size() / sizeof(float)};
  }
  Floats predicted(const Floats& x) {
    const auto rows = static_cast<std::int64_t>(x.size() / 4);
    Floats y(static_cast<std::size_t>(3 * rows));
    model.run("predict", std::vector{named("x", x)}, std::vector<void*>{y.data()},
              {{"rows", rows}});
    return y;
  }

  runtime::Session session{{.workers = 2}};
  Model model{session, graph::parse(network, operators()), {}, {.sizes_kept = 2}};
};

TEST_F(ModelEntries, TakeWhatTheirOutputsNeed) {
  EXPECT_EQ(model.entries(),
            (std::vector<std::string>{"train", "evaluate", "averaged", "predict", "count it"}));
  ASSERT_EQ(model.inputs_of("predict").size(), 1U);
  EXPECT_EQ(model.inputs_of("predict", {{"rows", 2}})[0].shape, Shape({2, 4}));
  EXPECT_EQ(model.inputs_of("train").size(), 2U);
  EXPECT_EQ(model.outputs_of("count it").size(), 2U);
  const Floats x{1, 2, 3, 4, 0, -1, 0.5f, 2};
  const Floats y = predicted(x), w = state("w");
  for (std::size_t row = 0; row < 2; ++row) {
    double logits[3], sum = 0;
    for (std::size_t o = 0; o < 3; ++o) {
      logits[o] = 0;
      for (std::size_t i = 0; i < 4; ++i) logits[o] += x[4 * row + i] * w[3 * i + o];
      sum += std::exp(logits[o]);
    }
    for (std::size_t o = 0; o < 3; ++o)
      EXPECT_NEAR(y[3 * row + o], std::exp(logits[o]) / sum, 1e-6);
  }
  EXPECT_EQ(error_of([&] {
              const std::vector<std::int32_t> label{0, 1};
              Floats out(6);
              model.run("predict", std::vector{named("x", x), named("label", label)},
                        std::vector<void*>{out.data()}, {{"rows", 2}});
            }),
            "an unknown input 'label'; expected x");
  EXPECT_EQ(
      error_of([&] { model.run("predicts", {}, {}); }),
      "no entry 'predicts'; expected one of train, evaluate, averaged, predict, count it (hint: "
      "did you mean 'predict'?)");
}

TEST_F(ModelEntries, SeeWhatTrainingChangesAndKeepWhatTheySay) {
  const Floats x(36, 0.5f);
  const std::vector<std::int32_t> label(9, 1);
  Floats before = predicted(x);
  EXPECT_EQ(state("calls"), Floats{0});  // predicting keeps nothing
  for (int step = 0; step < 5; ++step)
    model.train_step(std::vector{named("x", x), named("label", label)}, {});
  EXPECT_EQ(state("calls"), Floats{5});
  const Floats after = predicted(x);
  EXPECT_GT(after[1], before[1]);
  Floats logits(27), calls(1);
  for (int i = 0; i < 3; ++i) {
    model.run("count it", std::vector{named("x", x)},
              std::vector<void*>{logits.data(), calls.data()});
    EXPECT_EQ(calls[0], static_cast<float>(6 + i));
  }
  EXPECT_EQ(state("calls"), Floats{8});
  EXPECT_EQ(predicted(x), after);
  EXPECT_EQ(model.runs("predict"), 3);
  EXPECT_EQ(model.runs("count it"), 3);
  EXPECT_EQ(model.evaluations(), 0);
}

TEST(Entries, AreKeptByScripts) {
  const graph::Graph graph = graph::parse(network, operators());
  ASSERT_EQ(graph.entries.size(), 2U);
  const std::string text = graph::print(graph);
  EXPECT_NE(text.find("entry predict = $"), std::string::npos);
  EXPECT_TRUE(graph::equal(graph::parse(text, operators()), graph));
  graph::Graph other = graph;
  other.entries[0].name = "predicts";
  std::string why;
  EXPECT_FALSE(graph::equal(graph, other, &why));
  EXPECT_EQ(why, "an entry: 'predict' against 'predicts'");
  other = graph;
  other.entries[1].keeps.clear();
  EXPECT_FALSE(graph::equal(graph, other, &why));
  EXPECT_EQ(graph::at_entry(graph, operators(), "predict").op_count(), 2U);
}

/// Whoever builds graphs in C++ hears it too.
TEST(Entries, HaveNamesOfTheirOwn) {
  graph::Graph graph = graph::parse(network, operators());
  graph.entries[0].name = "evaluate";
  EXPECT_NE(error_of([&] { graph::verify(graph); }), "(no error)");
  graph.entries[0].name = "count it";
  EXPECT_NE(error_of([&] { graph::verify(graph); }), "(no error)");
  graph.entries[0].name = "other";
  EXPECT_EQ(error_of([&] { graph::verify(graph); }), "(no error)");
}

/// A buffer that is seen whole through another shape.
TEST(Entries, KeepWhatAViewOfABufferStandsFor) {
  runtime::Session session({.workers = 2});
  Model model(session,
              graph::parse(R"(
    $1 = InputTensor(x, float32, [2]);
    $2 = BufferTensor(total, float32, [3, 2]);
    $3 = slice($2, begin=1, end=2);
    $4 = reshape($3, [2]);
    accumulate($4, $1);
    $5 = add($1, $1);
    entry fill(keeps=[$2]) = $5;
    entry double = $5;
    result = $5;)",
                           operators()),
              {}, {});
  const Floats x{1, 2};
  Floats y(2);
  const auto run = [&](const char* entry) {
    model.run(entry, std::vector{named("x", x)}, std::vector<void*>{y.data()});
    EXPECT_EQ(y, (Floats{2, 4}));
    const auto bytes = model.state("total");
    return reinterpret_cast<const float*>(bytes.data())[3];
  };
  EXPECT_EQ(run("double"), 0);
  EXPECT_EQ(run("fill"), 2);
  EXPECT_EQ(run("fill"), 4);
  EXPECT_EQ(run("double"), 4);
}

/// Each run draws others, as training does from where it is.
TEST(Entries, MayBeAsInTraining) {
  runtime::Session session{{.workers = 2}};
  const std::string script = R"(
    $1 = InputTensor(x, float32, [4, 6]);
    $2 = ParameterTensor(w, float32, [6, 6], constant(1));
    $3 = dropout($1, rate=0.5, seed=3);
    $4 = matmul($3, $2);
    $5 = reduce($4, axes=[0, 1]) { mean($1) }
    train($5, optimizer=sgd, learning_rate=0);
    entry sample(mode=train) = $3;
    entry predict = $3;
    result = $5, $3;)";
  const Floats x(24, 1);
  Model model(session, graph::parse(script, operators()), {}, {});
  Model other(session, graph::parse(script, operators()), {}, {});
  const auto run = [&](Model& of, const char* entry) {
    Floats y(24);
    of.run(entry, std::vector{named("x", x)}, std::vector<void*>{y.data()});
    return y;
  };
  const auto train = [&](Model& of) {
    float loss = 0;
    Floats y(24);
    of.train_step(std::vector{named("x", x)}, std::vector<void*>{&loss, y.data()});
    return y;
  };
  const Floats first = run(model, "sample"), second = run(model, "sample");
  EXPECT_EQ(run(model, "predict"), x);
  EXPECT_EQ(std::ranges::count(first, 0.0f) + std::ranges::count(first, 2.0f), 24);
  EXPECT_NE(first, second);
  // Of their own count: training draws what it does without them.
  EXPECT_EQ(train(model), train(other));
  EXPECT_EQ(run(other, "sample"), first);
  EXPECT_EQ(train(model), train(other));
}

/// Running statistics of weights that are means, say, made anew.
TEST(Entries, InTrainingKeepNoStatisticsUnlessTheySay) {
  runtime::Session session{{.workers = 1}};
  Model model(session,
              graph::parse(R"(
    $1 = InputTensor(x, float32, [4, 2]);
    $2 = BufferTensor(mean, float32, [2]);
    $3 = BufferTensor(variance, float32, [2], constant(1));
    $4, $5, $6 = batch_norm($1, $2, $3, momentum=1);
    entry look(mode=train) = $4;
    entry measure(mode=train, keeps=[$5, $6]) = _;
    entry center(mode=train, keeps=[$5]) = _;
    result = $4;)",
                           operators()),
              {}, {});
  const Floats x{0, 1, 2, 3, 4, 5, 6, 7};
  const auto run = [&](const char* entry) {
    Floats y(8);
    std::vector<void*> places;
    if (entry == std::string("look") || entry == std::string("evaluate"))
      places.push_back(y.data());
    model.run(entry, std::vector{named("x", x)}, places);
    return y;
  };
  const auto mean = [&] {
    const auto bytes = model.state("mean");
    const auto* values = reinterpret_cast<const float*>(bytes.data());
    return Floats{values[0], values[1]};
  };
  run("center");
  EXPECT_EQ(mean(), (Floats{3, 4}));
  EXPECT_NEAR(run("evaluate")[0], -3, 1e-4);
  const Floats zeros(2);
  model.set_state("mean", std::as_bytes(std::span(zeros)));
  const Floats looked = run("look");
  EXPECT_EQ(mean(), (Floats{0, 0}));
  EXPECT_NEAR(looked[0], -3 / std::sqrt(5.0), 1e-4);
  run("measure");
  EXPECT_EQ(mean(), (Floats{3, 4}));
  EXPECT_NEAR(run("evaluate")[0], -3 / std::sqrt(20 / 3.0), 1e-4);
  EXPECT_EQ(mean(), (Floats{3, 4}));
}

/// The second reads what the first makes of the statistics.
TEST(Entries, InTrainingKeepNothingOfLayersThatShareStatistics) {
  runtime::Session session{{.workers = 1}};
  Model model(session,
              graph::parse(R"(
    $1 = InputTensor(x, float32, [4, 2]);
    $2 = BufferTensor(mean, float32, [2]);
    $3 = BufferTensor(variance, float32, [2], constant(1));
    $4, $5, $6 = batch_norm($1, $2, $3);
    $7, $8, $9 = batch_norm($4, $5, $6);
    entry look(mode=train) = $7;
    result = $7;)",
                           operators()),
              {}, {});
  const Floats x{0, 1, 2, 3, 4, 5, 6, 7};
  Floats y(8);
  model.run("look", std::vector{named("x", x)}, std::vector<void*>{y.data()});
  const auto bytes = model.state("mean");
  EXPECT_EQ(reinterpret_cast<const float*>(bytes.data())[0], 0);
}

TEST(Entries, MayComputeWithMeans) {
  runtime::Session session{{.workers = 1}};
  Model model(session,
              graph::parse(R"(
    $1 = InputTensor(x, float32, [1]);
    $2 = ParameterTensor(w, float32, [1], constant(1));
    $3 = mul($1, $2);
    train($3, optimizer=sgd, learning_rate=1, average());
    entry best(averaged) = $3;
    entry last = $3;
    result = $3;)",
                           operators()),
              {}, {});
  const Floats x{1};
  const auto run = [&](const char* entry) {
    float y = 0;
    model.run(entry, std::vector{named("x", x)}, std::vector<void*>{&y});
    return y;
  };
  EXPECT_EQ(run("best"), 1);
  model.train_step(std::vector{named("x", x)}, {});
  model.train_step(std::vector{named("x", x)}, {});
  EXPECT_EQ(run("last"), -1);
  EXPECT_EQ(run("best"), -0.5f);
}

TEST(Entries, SayWhatIsWrong) {
  const auto error = [](const std::string& entries) {
    std::string text = network;
    const std::size_t at = text.find("  entry predict");
    text.replace(at, text.find("  result") - at, "  " + entries + "\n");
    return error_of([&] { graph::parse(text, operators(), "f"); });
  };
  EXPECT_EQ(error("entry predict = $12; entry p = _;"), "(no error)");
  EXPECT_EQ(error("entry p = $11;"), "(no error)");
  EXPECT_EQ(
      error("entry train = $12;"),
      "f:13:9: an entry named 'train'; expected another name than train, accumulate, evaluate "
      "and averaged, which models have already");
  EXPECT_EQ(error("entry \"\" = $12;"),
            "f:13:9: an entry named ''; expected another name than train, accumulate, "
            "evaluate and averaged, which models have already");
  EXPECT_EQ(error("entry p = $12; entry p = $5;"),
            "f:13:24: a second entry named 'p'; expected a name of its own for each");
  EXPECT_EQ(
      error("entry p(keeps=[$10]) = $5;"),
      "f:13:3: entry 'p' that keeps 'add'; expected a new version of what persists, such as a "
      "result of assign");
  EXPECT_EQ(error("entry p(keep=[$11]) = $5;"),
            "f:13:11: 'keep'; expected mode=…, averaged or keeps=[$…]");
  EXPECT_EQ(error("entry p(mode=test) = $5;"), "f:13:16: 'test'; expected train or evaluate");
  EXPECT_EQ(error("entry p(averaged, averaged) = $5;"),
            "f:13:21: a second 'averaged'; expected one");
  EXPECT_EQ(error("entry = $5;"), "f:13:9: '='; expected a name");
  EXPECT_EQ(error("entry p;"), "f:13:10: ';'; expected '=' after entry p");
  EXPECT_EQ(error("entry p = $15;"),
            "f:13:13: unknown reference '$15'; expected a value defined above");
  EXPECT_EQ(error("$13 = entry p = $5;"),
            "f:13:3: a result of entry; expected entry NAME = …, which has none");
}

}  // namespace
}  // namespace arenite
