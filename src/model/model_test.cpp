#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include "src/model/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace arenite {
namespace {

using testing::error_of;
using testing::Floats;
using testing::four_shards;
using testing::named;

Model compile(runtime::Session& session, const std::string& script,
              const std::vector<NamedBytes>& constants = {}) {
  return {session, graph::parse(script, operators()), constants};
}

Floats evaluate(Model& model, const std::vector<NamedBytes>& inputs) {
  Floats result(static_cast<std::size_t>(model.outputs().at(0).shape.elements()));
  void* out = result.data();
  model.evaluate(inputs, {&out, 1});
  return result;
}

const char* const two_layers = R"(
  $1 = InputTensor(x, float32, [2, 3]);
  $2 = ConstantTensor(weight, float32, [3, 2]);
  $3 = dense($1, $2);
  $4 = ReLUNode($3);
  result = $4;)";

// 1 + 2⁻⁹ has a bit more than bfloat16 has.
TEST(Models, RoundWhatTheyMultiplyWhereThatIsAskedFor) {
  runtime::Session session({.workers = 1});
  const Floats weight{1, 0, 0, 1, 0, 0}, x{1 + 1.0f / 512, 2, 3, 4, 5, 6};
  const auto result = [&](runtime::Compute compute) {
    Model model(session, graph::parse(two_layers, operators()),
                std::vector{named("weight", weight)}, {.compute = compute});
    return evaluate(model, {named("x", x)}).front();
  };
  EXPECT_EQ(result(runtime::Compute::float32), 1 + 1.0f / 512);
  EXPECT_EQ(result(runtime::Compute::bfloat16), 1);
  EXPECT_EQ(
      error_of([&] { result(runtime::Compute::tfloat32); }),
      "dense_relu: products in tfloat32 on the CPU; expected float32 or bfloat16 (hint: TF32 is "
      "what tensor cores of GPUs multiply)");
}

/// Outputs by rows, the sum over a batch's shares, one that all lanes read, what a buffer has added
/// up over evaluations, and rows of the input itself.
std::vector<Floats> evaluate_batch(int workers, std::int64_t batch, const ModelOptions& options) {
  runtime::Session session({.workers = workers});
  const std::string samples = std::to_string(batch);
  const Floats weight{0.1f, -1, 2, -2, 3.3f, -3}, bias{1, -0.7f};
  Model model(session,
              graph::parse("$1 = InputTensor(x, float32, [" + samples + R"(, 3]);
    $2 = ConstantTensor(weight, float32, [3, 2]);
    $3 = ConstantTensor(bias, float32, [1, 2]);
    $4 = MatMulNode($1, $2);
    $5 = SumNode($4, $3);
    $6 = ReLUNode($5);
    $7 = sum_to($6, [1, 2]);
    $8 = relu($3);
    $9 = BufferTensor(total, float32, [1, 2]);
    $10 = add($9, $7);
    $11 = full(shape=[1], value=0, type="int64");
    $12 = ReplaceSliceNode($9, $10, $11);
    $13 = ReshapeNode($1, [)" + samples +
                               R"(, 1, 3]);
    result = $6, $7, $8, $12, $13;)",
                           operators()),
              std::vector{named("weight", weight), named("bias", bias)}, options);
  Floats x(static_cast<std::size_t>(3 * batch));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.3f * static_cast<float>(i % 7) - 1;
  std::vector<Floats> results;
  std::vector<void*> places;
  for (const Port& port : model.outputs())
    results.emplace_back(static_cast<std::size_t>(port.shape.elements()));
  for (Floats& result : results) places.push_back(result.data());
  const NamedBytes input = named("x", x);
  for (int time = 0; time < 3; ++time) model.evaluate({&input, 1}, places);
  return results;
}

TEST(ModelLanes, GiveTheSameBitsWithAnyNumberOfWorkers) {
  for (const std::int64_t batch : {0, 1, 2, 3, 7, 64}) {
    const auto one = evaluate_batch(1, batch, four_shards()),
               two = evaluate_batch(2, batch, four_shards()), whole = evaluate_batch(1, batch, {});
    EXPECT_EQ(one, two) << batch;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (std::size_t k = 0; k < whole[i].size(); ++k)
        EXPECT_NEAR(one[i][k], whole[i][k], 1e-3) << batch << ": output " << i;
    }
    for (std::size_t k = 0; k < 2; ++k) EXPECT_NEAR(one[3][k], 3 * one[1][k], 1e-3) << batch;
  }
}

/// Shards read a new version of a buffer, whose old one they, or what waits for all, read before.
TEST(ModelShards, SeeTheVersionsThatTheyName) {
  runtime::Session session({.workers = 2});
  const std::string head = R"(
    $1 = InputTensor(x, float32, [8, 5]);
    $2 = BufferTensor(b, float32, [1, 5]);
    $3 = ConstantTensor(c, float32, [1, 5]);)";
  for (const char* body : {R"(
    $4 = add($1, $2);
    $5 = mul($4, $3);
    accumulate($2, $3);
    $6 = add($5, $2);
    result = $6;)",
                           R"(
    $4 = sum_to($1, [1, 5]);
    $5 = add($4, $2);
    $6 = assign($2, $3);
    $7 = relu($1);
    $8 = add($7, $6);
    result = $8, $5;)",
                           R"(
    $9 = InputTensor(go, int32, [1]);
    $4 = add($1, $2);
    if ($9) { accumulate($2, $3); yield; } else { yield; }
    $5 = add($4, $2);
    result = $5;)"}) {
    const auto evaluated = [&](int shards, int at_once) {
      const Floats c{1, -2, 3, 0.5f, 7};
      Model model(session, graph::parse(head + body, operators()), std::vector{named("c", c)},
                  {.shards = shards, .shards_at_once = at_once});
      Floats x(40);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.25f * static_cast<float>(i % 11) - 1;
      const std::int32_t go = 1;
      std::vector<NamedBytes> given{named("x", x)};
      if (model.inputs().size() > 1) given.push_back({"go", &go, sizeof go});
      std::vector<Floats> all;
      for (int time = 0; time < 3; ++time) {
        std::vector<void*> places;
        for (const Port& port : model.outputs())
          all.emplace_back(static_cast<std::size_t>(port.shape.elements()));
        for (std::size_t o = all.size() - model.outputs().size(); o < all.size(); ++o)
          places.push_back(all[o].data());
        model.evaluate(given, places);
      }
      return all;
    };
    const auto whole = evaluated(1, 1);
    for (const int at_once : {1, 2, 4}) EXPECT_EQ(evaluated(4, at_once), whole) << body << at_once;
  }
}

TEST(ModelLanes, AreAsManyAsTheWorkAsksFor) {
  runtime::Session session({.workers = 1});
  const auto lanes = [&](std::int64_t batch, const ModelOptions& options) {
    const Floats weight(784 * 64);
    const Model model(session,
                      graph::parse("$1 = InputTensor(x, float32, [" + std::to_string(batch) +
                                       R"(, 784]);
      $2 = ConstantTensor(w, float32, [784, 64]);
      $3 = matmul($1, $2);
      result = $3;)",
                                   operators()),
                      std::vector{named("w", weight)}, options);
    EXPECT_EQ(model.outputs().size(), 1u);
    EXPECT_EQ(model.outputs()[0].shape, (Shape{batch, 64}));
    std::size_t results = 0;
    for (const plan::Placement& place : model.plan().placements)
      results += place.cls == graph::StorageClass::activation ? 1 : 0;
    return results;
  };
  EXPECT_EQ(lanes(2, {}), 1u);
  EXPECT_GT(lanes(512, {}), 1u);  // by the cost of the kernels that there are
  EXPECT_EQ(lanes(512, four_shards()), 4u);
  EXPECT_EQ(lanes(3, four_shards()), 3u);
}

struct ModelTest : ::testing::Test {
  runtime::Session session{{.workers = 1}};
};

TEST_F(ModelTest, EvaluatesWhatAScriptSays) {
  Floats weight{1, -1, 2, -2, 3, -3};
  Model model = compile(session, two_layers, {named("weight", weight)});
  // Borrowed for the call alone.
  weight.assign(6, 100);
  ASSERT_EQ(model.inputs().size(), 1U);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.inputs()[0].bytes(), 24);
  ASSERT_EQ(model.outputs().size(), 1U);
  EXPECT_EQ(model.outputs()[0].name, "output_0");
  EXPECT_EQ(model.outputs()[0].shape, (Shape{2, 2}));
  for (int time = 0; time < 5; ++time) {
    EXPECT_EQ(evaluate(model, {named("x", Floats{1, 1, 1, -1, 0, 0})}), (Floats{6, 0, 0, 1}));
  }
  EXPECT_EQ(model.evaluations(), 5);
}

TEST_F(ModelTest, KeepsWhatIsReplacedInABuffer) {
  Model model = compile(session, R"(
    $1 = BufferTensor(float32, [4]);
    $2 = InputTensor(x, float32, [1]);
    $3 = InputTensor(begin, int64, [1]);
    $4 = InputTensor(end, int64, [1]);
    $5 = ReplaceSliceNode($1, $2, $3, $4);
    result = $5, $1;)");
  Floats now(4), before(4);
  const auto step = [&](float value, std::int64_t row) {
    void* outs[] = {now.data(), before.data()};
    const Floats x{value};
    const std::vector<std::int64_t> begin{row}, end{row + 1};
    const std::vector<NamedBytes> inputs{named("x", x), named("begin", begin), named("end", end)};
    model.evaluate(inputs, outs);
  };
  step(1, 0);
  EXPECT_EQ(now, (Floats{1, 0, 0, 0}));
  EXPECT_EQ(before, (Floats{0, 0, 0, 0}));
  step(2, 3);
  EXPECT_EQ(now, (Floats{1, 0, 0, 2}));
  EXPECT_EQ(before, (Floats{1, 0, 0, 0}));
  // Out of range: nothing is written, and the next evaluation finds what was there.
  EXPECT_NE(error_of([&] { step(9, 4); }).find("rows reach beyond the first axis"),
            std::string::npos);
  step(3, 1);
  EXPECT_EQ(now, (Floats{1, 3, 0, 2}));
}

TEST_F(ModelTest, SaysWhereItCopies) {
  const std::string script = R"(
    $1 = BufferTensor(state, float32, [64, 16]);
    $2 = InputTensor(x, float32, [1, 16]);
    $3 = InputTensor(begin, int64, [1]);
    $4 = replace_slice($1, $2, $3);
    $5 = sum_to(READ, [1, 16]);
    result = $5;)";
  const auto reading = [&](const std::string& value) {
    std::string text = script;
    return compile(session, text.replace(text.find("READ"), 4, value));
  };
  const Model in_place = reading("$4"), copied = reading("$1");
  EXPECT_TRUE(in_place.copies().empty());
  EXPECT_EQ(copied.copies(),
            std::vector<std::string>{"replace_slice #0: sum_to #1 reads the old version later"});
  // All that comes and goes is the sum.
  EXPECT_LT(in_place.plan().transient_bytes(), 64 * 16 * 4);
  EXPECT_GE(copied.plan().transient_bytes(), 64 * 16 * 4);
}

TEST_F(ModelTest, AnErrorStopsWhatComesBehindIt) {
  Model model = compile(session, R"(
    $1 = BufferTensor(a, float32, [4]);
    $2 = BufferTensor(b, float32, [4]);
    $3 = BufferTensor(c, float32, [4]);
    $4 = InputTensor(x, float32, [1]);
    $5 = InputTensor(begin, int64, [1]);
    $6 = InputTensor(other, int64, [1]);
    $7 = replace_slice($1, $4, $5);
    $8 = replace_slice($2, $4, $6);
    $9 = replace_slice($3, $4, $5);
    $10 = sum($7, $8, $9);
    result = $10;)");
  const auto state = [&](const char* name) {
    const std::span<std::byte> bytes = model.state(name);
    const auto* floats = reinterpret_cast<const float*>(bytes.data());
    return Floats(floats, floats + bytes.size() / sizeof(float));
  };
  const auto step = [&](float value, std::int64_t begin, std::int64_t other) {
    const Floats x{value};
    return evaluate(
        model, {named("x", x), {"begin", &begin, sizeof begin}, {"other", &other, sizeof other}});
  };
  EXPECT_EQ(step(1, 0, 1), (Floats{2, 1, 0, 0}));
  EXPECT_EQ(error_of([&] { step(5, 2, 4); }).find("program 'model'"), 0U);
  // What stood before the error is done, what it found writes nothing, nor does what follows.
  EXPECT_EQ(state("a"), (Floats{1, 0, 5, 0}));
  EXPECT_EQ(state("b"), (Floats{0, 1, 0, 0}));
  EXPECT_EQ(state("c"), (Floats{1, 0, 0, 0}));
  EXPECT_EQ(step(7, 2, 3), (Floats{2, 1, 14, 7}));
}

TEST_F(ModelTest, ResultsMayBeInputsConstantsAndBuffers) {
  const Floats three{7, 8, 9};
  Model model = compile(session, R"(
    $1 = InputTensor(x, float32, [2]);
    $2 = ConstantTensor(c, float32, [3]);
    $3 = BufferTensor(state, float32, [1]);
    result = $1, $2, $3, $1;)",
                        {named("c", three)});
  EXPECT_EQ(model.outputs()[1].name, "c");
  for (float first : {1.0f, 5.0f}) {
    const Floats x{first, 2};
    const std::vector<NamedBytes> inputs{named("x", x)};
    Floats a(2), b(3), c(1, 9), d(2);
    void* outs[] = {a.data(), b.data(), c.data(), d.data()};
    model.evaluate(inputs, outs);
    EXPECT_EQ(a, x);
    EXPECT_EQ(b, three);
    EXPECT_EQ(c, Floats{0});
    EXPECT_EQ(d, x);
  }
}

TEST_F(ModelTest, SaysWhatIsWrongWithItsArguments) {
  const Floats weight(6), x(6), wrong(5);
  EXPECT_EQ(error_of([&] { compile(session, two_layers); }),
            "no constant 'weight'; expected all of weight");
  EXPECT_EQ(error_of([&] {
              compile(session, two_layers, {named("weight", weight), named("w", weight)});
            }),
            "an unknown constant 'w'; expected weight");
  EXPECT_EQ(error_of([&] { compile(session, two_layers, {named("weight", wrong)}); }),
            "20 bytes of constant 'weight'; expected 24, as it is float32 [3, 2]");
  EXPECT_EQ(
      error_of([&] { compile(session, "$1 = ConstantTensor(x, float32, [n<=4]); result = $1;"); }),
      "constant 'x' of the size 'n', which only a run knows; expected a constant of known sizes "
      "(hint: the model's options give it, as n=4)");

  Model model = compile(session, two_layers, {named("weight", weight)});
  EXPECT_EQ(error_of([&] { evaluate(model, {}); }), "no input 'x'; expected all of x");
  EXPECT_EQ(error_of([&] {
              evaluate(model, {named("x", x), named("x", x)});
            }),
            "input 'x' twice; expected each input once");
  EXPECT_EQ(error_of([&] {
              evaluate(model, {named("x", x), named("y", x)});
            }),
            "an unknown input 'y'; expected x");
  EXPECT_EQ(error_of([&] {
              evaluate(model, {{"x", nullptr, std::nullopt}});
            }),
            "null for the bytes of input 'x'; expected 24 bytes");
  const std::vector<NamedBytes> inputs{named("x", x)};
  EXPECT_EQ(error_of([&] { model.evaluate(inputs, {}); }),
            "0 places for outputs; expected 1: output_0");
  void* null = nullptr;
  EXPECT_EQ(error_of([&] {
              model.evaluate(inputs, {&null, 1});
            }),
            "null for output 'output_0'; expected a place of 16 bytes");
  EXPECT_EQ(evaluate(model, inputs), Floats(4));
}

TEST_F(ModelTest, TwoModelsRunInTwoThreads) {
  const auto run = [&](float factor) {
    const Floats weight{factor, 0, 0, factor, 0, 0};
    Model model = compile(session, two_layers, {named("weight", weight)});
    for (int i = 1; i <= 200; ++i) {
      const auto x = static_cast<float>(i);
      EXPECT_EQ(evaluate(model, {named("x", Floats{x, 1, 0, 1, x, 0})}),
                (Floats{x * factor, factor, factor, x * factor}));
    }
  };
  std::thread other(run, 2.0f);
  run(3.0f);
  other.join();
}

}  // namespace
}  // namespace arenite
