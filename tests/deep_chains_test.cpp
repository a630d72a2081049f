// Scripts of many thousand statements compile: nothing recurses from value to value.
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include "src/base/stack_testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace arenite {
namespace {

// Checked builds compare every op with those before it.
constexpr int depth = ARENITE_CHECKED ? 1000 : 10000, great_depth = ARENITE_CHECKED ? 1500 : 30000;

using Floats = std::vector<float>;

/// `statement` with $NEXT and $LAST, so many times.
std::string chain(const std::string& declarations, int first, const std::string& statement,
                  int count = depth) {
  std::string script = declarations;
  for (int i = 0; i < count; ++i) {
    std::string next = statement;
    const auto put = [&](const char* name, int number) {
      for (std::size_t at; (at = next.find(name)) != std::string::npos;)
        next.replace(at, 5, "$" + std::to_string(number));
    };
    put("$NEXT", first + 1 + i);
    put("$LAST", first + i);
    script += next + "\n";
  }
  return script + "result = $" + std::to_string(first + count) + ";";
}

struct DeepChains : ::testing::Test {
  runtime::Session session{{.workers = 1}};

  Model compile(const std::string& script) {
    return {session, graph::parse(script, operators()), {}};
  }

  Floats evaluate(Model& model, const Floats& x, std::int64_t begin = 0) {
    Floats result(static_cast<std::size_t>(model.outputs()[0].shape.elements()));
    void* out = result.data();
    std::vector<NamedBytes> inputs{{"x", x.data(), static_cast<std::int64_t>(x.size() * 4)}};
    if (model.inputs().size() > 1) inputs.push_back({"begin", &begin, 8});
    model.evaluate(inputs, {&out, 1});
    return result;
  }
};

const std::string input = "$1 = InputTensor(x, float32, [4]);\n";
const std::string state =
    "$1 = InputTensor(x, float32, [1, 4]);\n$2 = InputTensor(begin, int64, [1]);\n"
    "$3 = BufferTensor(state, float32, [3, 4]);\n";

TEST_F(DeepChains, OfElementwiseOps) {
  Model model = compile(chain(input, 1, "$NEXT = relu($LAST);"));
  EXPECT_EQ(evaluate(model, {1, -1, 2, -2}), (Floats{1, 0, 2, 0}));
  Model sums = compile(chain(input, 1, "$NEXT = add($LAST, $1);"));
  EXPECT_EQ(evaluate(sums, {1, -1, 0, 2}),
            (Floats{1.0f + depth, -1.0f - depth, 0, 2 + 2.0f * depth}));
  // One value's place is enough, and that of the sum so far.
  EXPECT_LE(sums.plan().transient_bytes(), 1024);
}

// LIBXSMM's generator alone takes 128 KiB.
TEST_F(DeepChains, OnALittleStack) {
  const std::string script = chain(
      "$1 = InputTensor(x, float32, [4, 4]);\n$2 = ConstantTensor(w, float32, [4, 4]);\n"
      "$3 = matmul($1, $2);\n",
      3, "$NEXT = mul($LAST, $2);", great_depth);
  const Floats weight(16, 1);
  testing::on_thread(128 << 10, [&] {
    const graph::Graph graph = graph::parse(script, operators());
    EXPECT_TRUE(graph::equal(graph::parse(graph::print(graph), operators()), graph));
    Model model(session, graph, {{{"w", weight.data(), 64}}});
    EXPECT_EQ(evaluate(model, Floats(16, 0.5f)), Floats(16, 2));
  });
}

TEST_F(DeepChains, OfVersions) {
  Model model = compile(chain(state, 3, "$NEXT = replace_slice($LAST, $1, $2);"));
  EXPECT_TRUE(model.copies().empty());
  evaluate(model, {1, 2, 3, 4}, 0);
  EXPECT_EQ(evaluate(model, {5, 6, 7, 8}, 2), (Floats{1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8}));
}

TEST_F(DeepChains, OfVersionsThatAreCopies) {
  std::string script = chain(state, 3, "$NEXT = replace_slice($LAST, $1, $2);");
  script.replace(script.rfind("result"), std::string::npos,
                 "result = $" + std::to_string(3 + depth) + ", $3;");
  Model model = compile(script);
  // Of the buffer; all versions write the caller's place.
  EXPECT_EQ(model.copies().size(), 1U);
  Floats now(12), before(12);
  void* outs[] = {now.data(), before.data()};
  const Floats x{1, 2, 3, 4};
  const std::int64_t begin = 1;
  const std::vector<NamedBytes> inputs{{"x", x.data(), 16}, {"begin", &begin, 8}};
  for (int time = 0; time < 2; ++time) model.evaluate(inputs, outs);
  EXPECT_EQ(now, (Floats{0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0}));
  EXPECT_EQ(before, now);
}

TEST_F(DeepChains, OfViews) {
  Model model = compile(chain(state, 3, "$NEXT = reshape($LAST, [3, 4]);"));
  EXPECT_EQ(evaluate(model, {1, 2, 3, 4}), Floats(12));
}

// A version of a view of the version before, again and again.
TEST_F(DeepChains, OfVersionsOfViews) {
  std::string script = state;
  int number = 3;
  for (int i = 0; i < depth / 2; ++i, number += 2) {
    const std::string last = "$" + std::to_string(number), view = "$" + std::to_string(number + 1),
                      next = "$" + std::to_string(number + 2);
    script += view + " = slice(" + last + ", 0, 3);\n";
    script += next + " = replace_slice(" + view + ", $1, $2);\n";
  }
  Model model = compile(script + "result = $" + std::to_string(number) + ";");
  EXPECT_TRUE(model.copies().empty());
  EXPECT_EQ(evaluate(model, {1, 2, 3, 4}, 1), (Floats{0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace arenite
