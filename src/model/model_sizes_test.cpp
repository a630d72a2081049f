// Models of graphs that leave sizes to a run.
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include "src/model/plans.hpp"
#include "src/model/testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <streambuf>
#include <string>
#include <thread>
#include <utility>
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

/// Logits and the loss of an evaluation and of three steps, then both parameters. `sizes`: what a
/// model that leaves them open is told.
Floats results(Model& model, int rows, const graph::SizeValues& sizes = {}) {
  const Floats x = numbers(rows * pixels, 0.1f);
  std::vector<std::int32_t> label(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < label.size(); ++i) label[i] = static_cast<std::int32_t>(i) % classes;
  Floats all;
  for (int step = -1; step < 3; ++step) {
    Floats logits(static_cast<std::size_t>(rows * classes)), loss(1);
    const std::vector<NamedBytes> inputs{named("x", x), named("label", label)};
    const std::vector<void*> outputs{logits.data(), loss.data()};
    step < 0 ? model.evaluate(inputs, outputs, sizes) : model.train_step(inputs, outputs, sizes);
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

struct Hoard {
  std::int64_t count = 0, scratch = 0;  // floats
};

void hoard(const runtime::KernelCall& call, const Hoard& state) {
  std::fill_n(static_cast<float*>(call.workspace), state.scratch, 7.0f);
  std::copy_n(call.in<float>(0), state.count, call.out<float>(0));
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

TEST_F(ModelSizes, MustBeThoseOfTheGraph) {
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

/// What is written for so many rows goes on from where the model with open sizes is.
TEST_F(ModelSizes, AreSaidWithEachRun) {
  for (const ModelOptions& options : {ModelOptions{}, testing::four_shards()}) {
    Model open = compile(network, options);
    EXPECT_EQ(open.open_sizes(), (std::vector<graph::RunTimeSize>{{"rows", bound}}));
    EXPECT_EQ(open.inputs()[0].shape, Shape({bound, pixels}));
    const std::int64_t most = open.plan().transient_bytes();
    for (const int rows : {4, 9, 1, 7, 4, 2, 8, 9, 5, 3, 6, 1}) {
      Model written = compile(of_rows(rows), options);
      for (const StatePort& state : open.states())
        written.set_state(state.name, open.state(state.name));
      EXPECT_EQ(results(open, rows, {{"rows", rows}}), results(written, rows)) << rows << " rows";
      for (const StatePort& state : open.states())
        EXPECT_TRUE(std::ranges::equal(open.state(state.name), written.state(state.name)));
    }
    EXPECT_EQ(open.train_steps(), 36);
    for (const ModelProgram& program : open.programs())
      EXPECT_LE(program.arena_bytes, most) << program.sizes.at("rows");
  }
}

TEST_F(ModelSizes, KeepProgramsOfThoseUsedLast) {
  Model model = compile(network, {.sizes_kept = 2});
  Floats first;
  const auto rows_of = [&] {
    std::string rows;
    for (const ModelProgram& program : model.programs())
      rows += program.entry + std::to_string(program.sizes.at("rows")) + " ";
    return rows;
  };
  EXPECT_EQ(rows_of(), "train9 evaluate9 ");
  model.prepare({{"rows", 3}});
  EXPECT_EQ(rows_of(), "train9 evaluate9 train3 evaluate3 ");
  EXPECT_EQ(model.train_steps(), 0);
  const auto evaluate = [&](int rows) {
    const Floats x(static_cast<std::size_t>(rows * pixels));
    const std::vector<std::int32_t> label(static_cast<std::size_t>(rows));
    Floats logits(static_cast<std::size_t>(rows * classes)), loss(1);
    model.evaluate(std::vector{named("x", x), named("label", label)},
                   std::vector<void*>{logits.data(), loss.data()}, {{"rows", rows}});
  };
  evaluate(5);
  evaluate(3);
  EXPECT_EQ(rows_of(), "train9 evaluate9 train3 evaluate3 evaluate5 ");
  evaluate(2);
  EXPECT_EQ(rows_of(), "train9 evaluate9 train3 evaluate3 evaluate2 ");
  evaluate(9);
  EXPECT_EQ(rows_of(), "train9 evaluate9 train3 evaluate3 evaluate2 ");
  EXPECT_EQ(error_of([&] { evaluate(10); }), "size rows=10; expected 1 to 9, its upper bound");
  EXPECT_EQ(rows_of(), "train9 evaluate9 train3 evaluate3 evaluate2 ");
  EXPECT_EQ(error_of([&] { compile(network, {.sizes_kept = 0}); }),
            "0 sizes to keep programs of; expected at least 1");
}

/// One worker has one of the largest's four shards under way at a time; a smaller batch in one
/// piece would take more.
TEST_F(ModelSizes, AreCutAsTheLargestWhereTheyWouldNotFit) {
  const graph::Graph graph = graph::parse(R"(
    $1 = InputTensor(x, float32, [rows<=64, 16, 16, 1]);
    $2 = InputTensor(label, int32, [rows]);
    $3 = ParameterTensor(filter, float32, [3, 3, 1, 8]);
    $4 = ParameterTensor(weight, float32, [2048, 3]);
    $5 = conv2d($1, $3, padding=[1, 1]);
    $6 = relu($5);
    $7 = reshape($6, [rows, -1]);
    $8 = dense($7, $4);
    $9, $10, $11 = softmax_cross_entropy($8, $2, divisor=rows);
    train($9, optimizer=sgd, learning_rate=0.1);
    result = $9;)",
                                          operators());
  compile::Options how{.workers = 1};
  const auto work = [&](int rows) {
    return graph::estimate(
        compile::lower(graph::at_sizes(graph, {{"rows", rows}}), {.train = true}, how).spec.graph,
        how.target);
  };
  how.target.two_lanes_microseconds = how.target.four_shards_microseconds =
      (work(48) + work(64)) / 2;
  ModelPlans plans(graph, "model", how);
  const compile::Compiled largest = plans.largest(plans.ways()[0]);
  EXPECT_EQ(largest.cut.shards, 4);
  const auto at = [&](int rows) { return plans.smaller(plans.ways()[0], {{"rows", rows}}); };
  EXPECT_EQ(at(48).fit, Fit::cut_of_largest);
  EXPECT_EQ(at(48).program.cut.shards, 4);
  EXPECT_EQ(at(1).fit, Fit::own_plan);
  EXPECT_LE(at(48).program.spec.plan.transient_bytes(), largest.spec.plan.transient_bytes());
}

/// A copy that takes more workspace the fewer rows it has.
void register_hoarder() {
  static const bool once = [] {
    register_operator(
        {.name = "hoarder",
         .operands = {{"x"}},
         .results = {"y"},
         .infer =
             [](const graph::OpView& op) {
               return std::vector<graph::ResultType>{{op.operand(0).type, op.operand(0).shape}};
             }},
        {{.name = "plain",
          .workspace = [](const graph::OpView& op) { return 4096 * (9 - op.operand(0).shape[0]); },
          .prepare =
              [](const graph::OpView& op) {
                return runtime::prepared<hoard>(
                    Hoard{op.operand(0).shape.elements(), 1024 * (9 - op.operand(0).shape[0])});
              }}});
    return true;
  }();
  static_cast<void>(once);
}

TEST_F(ModelSizes, LetBlocksGrowWhereTheyDoNotFit) {
  register_hoarder();
  Model model(session,
              graph::parse(R"(
                $1 = InputTensor(x, float32, [rows<=9, 2]);
                $2 = BufferTensor(last, float32, [1, 2]);
                $3 = hoarder($1);
                $4 = slice($3, begin=0, end=1);
                $5 = add($2, $4);
                assign($2, $5);
                $6 = relu($3);
                result = $6;)",
                           operators()),
              {}, {.sizes_kept = 2});
  Floats last{0, 0};
  const auto run = [&](int rows) {
    Floats x = numbers(2 * rows, 1), y(x.size());
    model.evaluate(std::vector{named("x", x)}, std::vector<void*>{y.data()}, {{"rows", rows}});
    last[0] += x[0];
    last[1] += x[1];
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], std::max(x[i], 0.0f));
    const auto bytes = model.state("last");
    EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(last)))) << rows << " rows";
    std::string fits;
    for (const ModelProgram& one : model.programs())
      fits += std::to_string(one.sizes.at("rows")) + ": " + one.fit + ", ";
    return fits;
  };
  EXPECT_EQ(run(9), "9: own plan, ");
  EXPECT_EQ(run(6), "9: own plan, 6: grown blocks, ");
  EXPECT_EQ(run(8), "9: own plan, 6: grown blocks, 8: own plan, ");
  EXPECT_EQ(run(1), "9: own plan, 1: grown blocks, ");
  EXPECT_EQ(run(8), "9: own plan, 8: own plan, 1: grown blocks, ");
  EXPECT_EQ(run(9), "9: own plan, 8: own plan, 1: grown blocks, ");
  EXPECT_EQ(run(6), "9: own plan, 8: own plan, 6: own plan, ");
  EXPECT_EQ(model.evaluations(), 7);
  EXPECT_EQ(model.programs()[0].runs, 2);  // through all that
}

/// What grows for one of them leaves none of the others behind.
TEST_F(ModelSizes, ArePreparedForAllEntries) {
  register_hoarder();
  Model model(session,
              graph::parse(R"(
                $1 = InputTensor(x, float32, [rows<=9, 2]);
                $2 = relu($1);
                $3 = hoarder($1);
                $4 = add($3, $3);
                entry hoard = $4;
                result = $2;)",
                           operators()),
              {});
  model.prepare({{"rows", 2}});
  std::string made;
  for (const ModelProgram& one : model.programs())
    made += one.entry + std::to_string(one.sizes.at("rows")) + " " + one.fit + ", ";
  EXPECT_EQ(made, "evaluate9 own plan, hoard9 own plan, evaluate2 own plan, hoard2 grown blocks, ");
  EXPECT_EQ(error_of([&] {
              model.prepare({{"rows", 10}});
            }),
            "size rows=10; expected 1 to 9, its upper bound");
  EXPECT_EQ(model.programs().size(), 4U);
}

/// Does something when it is first written to.
class Meanwhile : public std::streambuf {
 public:
  explicit Meanwhile(std::function<void()> what) : what_(std::move(what)) {}

 private:
  int_type overflow(int_type c) override {
    if (what_) std::exchange(what_, nullptr)();
    return c;
  }

  std::function<void()> what_;
};

TEST_F(ModelSizes, AreAskedForByOneThreadAtATime) {
  Model model = compile(network);
  std::string found;
  Meanwhile another([&] {
    std::thread([&] { found = error_of([&] { model.prepare({{"rows", 2}}); }); }).join();
  });
  std::ostream out(&another);
  model.print_plan(out);
  EXPECT_EQ(found,
            "a model that another thread uses; expected one thread at a time (hint: give each "
            "thread a model of its own, or take turns)");
  EXPECT_EQ(model.programs().size(), 2U);
  model.prepare({{"rows", 2}});
  EXPECT_EQ(model.programs().size(), 4U);
}

TEST_F(ModelSizes, HaveNothingOnceTheModelIsClosed) {
  Model model = compile(network);
  model.prepare({{"rows", 2}});
  model.close();
  model.close();
  EXPECT_TRUE(model.programs().empty());
  EXPECT_GT(model.plan().transient_bytes(), 0);
  for (const std::function<void()>& use : std::vector<std::function<void()>>{
           [&] {
             results(model, 2, {{"rows", 2}});
           },
           [&] { model.prepare({}); }, [&] { model.state("weight"); },
           [&] { model.set_learning_rate(1); }}) {
    EXPECT_EQ(error_of(use), "a model that was closed; expected one that is open");
  }
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
