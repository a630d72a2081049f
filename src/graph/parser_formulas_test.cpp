// Operators that scripts have of their own.
#include <arenite/error.hpp>
#include <arenite/graph/formula.hpp>
#include <arenite/graph/operator.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"
#include "src/graph/equal.hpp"

#include <string>

namespace arenite::graph {
namespace {

using arenite::testing::error_of;

const std::string heavy_ball =
    R"(formula heavy_ball(weight, gradient, learning_rate, velocity, momentum=0.9) {
  v = momentum * velocity + gradient;  # as it rolls
  yield weight - learning_rate * v, v
})";
const std::string swish = "formula swish(x, beta=1) { x * sigmoid(beta * x) }\n";
const std::string forward = R"(
$1 = InputTensor(x, float32, [4, 3]);
$2 = ParameterTensor(weight, float32, [3, 2]);
$3 = matmul($1, $2);
)";

Graph read(const std::string& formulas, const std::string& statements) {
  return parse(formulas + forward + statements, operators(), "f");
}

std::string error(const std::string& formulas, const std::string& statements = "result = $3;") {
  return error_of([&] { read(formulas, statements); });
}

const std::string trains = R"($4 = reduce($3, axes=[0, 1]) { mean($1 * $1) }
train($4, optimizer=heavy_ball, learning_rate=0.1, group("weight", momentum=0.5));
result = $4;)";

TEST(ScriptFormulas, AreOperators) {
  const Graph graph = read(swish, "$4 = swish($3, beta=2);\nresult = $4;");
  const Op& op = graph[graph[Graph::body].ops.back()];
  EXPECT_EQ(op.name(), "swish");
  EXPECT_EQ(op.attributes.real("beta"), 2);
  EXPECT_EQ(graph[op.results[0]].shape, Shape({4, 2}));
  EXPECT_TRUE(op.definition->gradient);
}

TEST(ScriptFormulas, AreOptimizers) {
  const Graph graph = read(heavy_ball, trains);
  ASSERT_TRUE(graph.training);
  EXPECT_EQ(graph.training->optimizer->name, "heavy_ball");
  EXPECT_TRUE(graph.training->optimizer->is_optimizer());
}

TEST(ScriptFormulas, AreUpdatesByHand) {
  const Graph graph = read(heavy_ball, R"($4 = StateTensor(v, float32, [3, 2]);
$5 = StateTensor(rate, float32, [1], constant(0.1));
$6 = reduce($3, axes=[0, 1]) { mean($1 * $1) }
$7 = grad($6, wrt=[$2]);
$8, $9 = heavy_ball($2, $7, $5, $4) @update;
result = $6;)");
  EXPECT_EQ(graph[graph[Graph::body].ops.back()].results.size(), 2U);
}

TEST(ScriptFormulas, ArePrintedAndReadBack) {
  for (const auto& [formulas, statements] :
       {std::pair(swish, std::string("$4 = swish($3, beta=2);\nresult = $4;")),
        std::pair(heavy_ball, trains)}) {
    const Graph graph = read(formulas, statements);
    const std::string text = print(graph);
    EXPECT_EQ(text.find("formula "), 0U) << text;
    std::string why;
    EXPECT_TRUE(equal(graph, parse(text, operators()), &why)) << why << "\n" << text;
  }
  const Graph other = read("formula swish(x, beta=2) { x * sigmoid(beta * x) }",
                           "$4 = swish($3, beta=2);\nresult = $4;");
  EXPECT_FALSE(equal(other, read(swish, "$4 = swish($3, beta=2);\nresult = $4;")));
}

TEST(ScriptFormulas, AreReadAlone) {
  const WrittenFormula read = parse_formula("  " + heavy_ball + "\n# done");
  EXPECT_EQ(read.name, "heavy_ball");
  EXPECT_EQ(read.operands.size(), 4U);
  EXPECT_EQ(read.numbers, (std::vector<std::pair<std::string, double>>{{"momentum", 0.9}}));
  EXPECT_EQ(to_string(parse_formula(to_string(read))), to_string(read));
  EXPECT_EQ(error_of([] { parse_formula(swish + swish); }),
            "formula:2:1: 'formula'; expected nothing behind the formula");
  EXPECT_EQ(error_of([] { parse_formula("swish(x) { x }"); }),
            "formula:1:1: 'swish'; expected formula NAME(…) { … }");
}

TEST(ScriptFormulas, OfRowsThatTheyNumberAreOfTheWholeBatch) {
  const Graph graph = read("formula f(x, a=0) { select(a > 0.5, x * float32(index(0)), x) }",
                           "$4 = f($3, a=1);\n$5 = f($3);\nresult = $4;");
  const auto of_rows = [&](OpId id) {
    Share share{.split = {Split::rows}, .begin = 0, .count = 2};
    const Op& op = graph[id];
    return op.definition->of_share(OpView(graph, op), share).has_value();
  };
  const std::vector<OpId>& ops = graph[Graph::body].ops;
  EXPECT_FALSE(of_rows(ops[1]));
  EXPECT_TRUE(of_rows(ops[2]));
}

TEST(ScriptFormulas, SayWhatIsWrong) {
  EXPECT_EQ(error("formula relu(x) { x + 1 }"),
            "f:1:1: a formula named 'relu', as an operator is; expected a name of its own");
  EXPECT_EQ(error(swish + swish), "f:2:1: a second formula 'swish'; expected a name of its own");
  EXPECT_EQ(error("formula f(a=1, x) { a * x }"),
            "f:1:12: '='; expected ',' or ')', as operands stand before numbers");
  EXPECT_EQ(error("formula f(x, a=1, b) { a * x * b }"),
            "f:1:20: ')'; expected '=' after b, as operands stand before numbers");
  EXPECT_EQ(error("formula f(x, a=+nan) { a * x }"),
            "f:1:1: a=nan of formula 'f'; expected a finite number");
  for (const char* name : {"ReLUNode", "train", "entry", "InputTensor", "update_slice"}) {
    EXPECT_EQ(error("formula " + std::string(name) + "(x) { x + 1 }"),
              "f:1:1: a formula named \"" + std::string(name) +
                  "\"; expected letters, digits, '_' and '.', and no word of scripts");
  }
  EXPECT_EQ(
      error(
          "formula f(w, gradient, learning_rate, rate=1) { w - learning_rate * rate * gradient }"),
      "f:1:1: number 'rate' of optimizer 'f'; expected another name: `train` has a setting of "
      "this one");
  EXPECT_EQ(error_of([] {
              define(operators(), {.name = "f", .operands = {"x"}, .numbers = {}, .text = "x # }"});
            }),
            "a brace in formula 'f'; expected none");
  EXPECT_EQ(error("formula f(x) { x + y }"),
            "f:1:20: formula: unknown name 'y'; expected a name defined above");
  EXPECT_EQ(error("formula f(x) {\n  a = x;\n  yield a + y\n}"),
            "f:3:13: formula: unknown name 'y'; expected a name defined above");
  EXPECT_EQ(error(swish, "$4 = map($3) { $1 + $2 };\nresult = $4;"),
            "f:6:21: map: unknown operand '$2'; expected $1, the only one");
  EXPECT_EQ(error("$1 = formula f(x) { x + 1 }"),
            "f:1:1: a result of formula; expected formula NAME(…) { … }, which has none");
  EXPECT_EQ(error(swish, "$4 = swich($3);\nresult = $4;"),
            "f:6:6: unknown operator 'swich'; expected a registered operator (hint: did you mean "
            "'swish'?)");
  EXPECT_EQ(error(swish,
                  "$4 = reduce($3, axes=[0, 1]) { mean($1) }\n"
                  "train($4, optimizer=swish, learning_rate=1);\nresult = $3;"),
            "f:7:21: formula 'swish', which is no optimizer; expected operands (weight, gradient, "
            "learning_rate, …), of which the second and third are called so");
  EXPECT_EQ(error("formula f(x) { x * float32(index(2)) }", "$4 = f($3);\nresult = $4;"),
            "f:5:6: f: index(2); expected an axis of the operands' joint shape [4, 2]");
  const std::string turns = "formula f(x, a=1) { select(sum(x) > 0, x * a, x) }";
  EXPECT_EQ(
      error(turns, "$4 = f($3, a=2);\nresult = $4;"),
      "f:5:6: f: numbers of f with which rows are reduced; expected numbers with which it is as "
      "with those that it has unless said");
  EXPECT_EQ(
      error("formula f(w, gradient, learning_rate, average) { yield w - learning_rate * gradient, "
            "average }"),
      "f:1:1: state 'average' of optimizer 'f'; expected another name: means of parameters are "
      "called so");
  EXPECT_EQ(error("formula f(x) {\n a = x;\n a = 2 * x; yield a }"),
            "f:3:2: formula: a second definition of 'a'; expected a name of its own (hint: the "
            "first is at "
            "line 2, column 2)");
  EXPECT_EQ(error_of([] {
              define(OperatorTable(), {.name = "f", .operands = {"x"}, .numbers = {}, .text = "x"});
            }),
            "a formula as an operator; expected an operator table that takes some, as "
            "arenite::operators()");
}

}  // namespace
}  // namespace arenite::graph
