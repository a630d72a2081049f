// Operators that say more of shares than is so.
#include <arenite/graph/passes.hpp>
#include <arenite/graph/rules.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"
#include "src/graph/passes/ask_share.hpp"

#include <functional>
#include <string>
#include <utility>

namespace arenite::graph {
namespace {

using testing::error_of;
using Rule = std::function<std::optional<OfShare>(const OpView&, const Share&)>;
using enum OfShare::Result;

/// The process's operators, one of which has another rule.
OperatorTable with_rule(const std::string& name, Rule rule) {
  OperatorTable table;
  for (const std::string& one : operators().names()) {
    OperatorDefinition definition = *operators().at(one);
    if (one == name) definition.of_share = rule;
    table.add(std::move(definition));
  }
  return table;
}

Rule always(OfShare answer) {
  return [answer](const OpView&, const Share&) { return answer; };
}

class AskShare : public ::testing::Test {
 protected:
  /// What is wrong with the answer of a dense layer with a bias, of some columns of its samples.
  static std::string refusal(OfShare answer) {
    const OperatorTable table = with_rule("dense", always(std::move(answer)));
    Graph graph;
    Builder builder(graph, table);
    const auto declare = [&](const char* name, Shape shape) {
      return builder.declare(name, DType::float32, std::move(shape), StorageClass::buffer);
    };
    builder.context.where = "fc";
    builder.add1("dense", {declare("x", {4, 6}), declare("w", {6, 2}), declare("b", {2})});
    const OpId op = graph[Graph::body].ops.front();
    const Share share{.split = {Split::columns, Split::rows, Split::none}, .begin = 0, .count = 3};
    return error_of([&] { ask_share(graph, op, share); });
  }
};

TEST_F(AskShare, TakesOneAnswerAResult) {
  EXPECT_EQ(refusal({.results = {sum}, .attributes = {}}), "(no error)");
  EXPECT_EQ(refusal({.results = {}, .attributes = {}}),
            "dense 'fc': a share of 0 results; expected 1 (hint: of_share of operator 'dense' says "
            "otherwise)");
  EXPECT_NE(refusal({.results = {sum, sum}, .attributes = {}}), "(no error)");
}

TEST_F(AskShare, LeavesToBeDoneWhatCanBe) {
  using Finish = OfShare::Finish;
  const auto finished = [](OfShare::Result result, std::vector<Finish> finish) {
    return refusal({.results = {result}, .attributes = {}, .name = {}, .finish = finish});
  };
  EXPECT_EQ(finished(sum, {{"bias", {2}}, {"relu", {}}}), "(no error)");
  const std::string expected =
      "dense 'fc': a share with more to be done behind it; expected one sum, and whole operands "
      "that the op has, each once (hint: of_share of operator 'dense' says otherwise)";
  EXPECT_EQ(finished(columns, {{"relu", {}}}), expected);
  EXPECT_EQ(finished(rows, {{"relu", {}}}), expected);
  for (const std::size_t operand : {0, 1, 3, 1000})
    EXPECT_EQ(finished(sum, {{"bias", {operand}}}), expected) << operand;
  EXPECT_EQ(finished(sum, {{"bias", {2}}, {"bias", {2}}}), expected);
}

// What it makes of a share is not what it says.
TEST(Shares, AreOfTheShapesThatOperatorsSay) {
  const OperatorTable table = with_rule("dense_grad_weight", [](const OpView& op, const Share&) {
    return std::optional(all_rows(op, op.attributes()));
  });
  Graph graph;
  Builder builder(graph, table);
  const auto declare = [&](const char* name, Shape shape) {
    return builder.declare(name, DType::float32, std::move(shape), StorageClass::buffer);
  };
  builder.context = {.phase = Phase::backward, .where = "fc"};
  const ValueId g =
      builder.add1("dense_grad_weight", {declare("x", {9, 300}), declare("g", {9, 8})});
  builder.context = {.phase = Phase::update, .where = "fc"};
  builder.add("sgd", {declare("w", {300, 8}), g, declare("rate", {1})});
  TargetProfile target;
  target.task_microseconds = 1e-3;
  EXPECT_EQ(error_of([&] { split_rows(graph, table, target); }),
            "dense_grad_weight 'fc': a share of 64 places of shape [300, 8], for [300, 8]; "
            "expected as many rows as the share has (hint: of_share of operator "
            "'dense_grad_weight' says otherwise)");
}

// Features are no samples of a batch, and what is left to do behind a sum is not done by lanes.
TEST(Shares, OfABatchAreRowsAndSumsAlone) {
  for (const OfShare& answer :
       {OfShare{.results = {columns}, .attributes = {}},
        OfShare{.results = {sum}, .attributes = {}, .name = {}, .finish = {{"relu", {}}}},
        OfShare{.results = {rows}, .attributes = {}, .name = "silu"}}) {
    const OperatorTable table = with_rule("relu", always(answer));
    Graph graph;
    Builder builder(graph, table);
    const ValueId x = builder.declare("x", DType::float32, {4, 4}, StorageClass::input);
    graph.outputs = {builder.add1("relu", {x})};
    Remarks remarks;
    EXPECT_FALSE(split_batch(graph, table, {.lanes = 2}, default_target(), &remarks));
    ASSERT_EQ(remarks.left.size(), 1u);
    EXPECT_NE(remarks.left.front().why.find("cannot work on a share"), std::string::npos);
  }
}

TEST(Operands, AreGivenWithANumberThatThereIs) {
  const auto refusal = [](const OperandSchema& operand, std::vector<AttributeSchema> attributes) {
    return error_of([&] {
      OperatorTable().add({.name = "step",
                           .operands = {{"w"}, operand},
                           .results = {"y"},
                           .attributes = std::move(attributes),
                           .infer = like_first});
    });
  };
  const OperandSchema state{.name = "m", .optional = true, .given_with = "beta"};
  EXPECT_EQ(refusal(state, {{"beta", AttributeType::real, 0.5}}), "(no error)");
  EXPECT_EQ(refusal(state, {{"beta", AttributeType::integer, std::int64_t{0}}}), "(no error)");
  EXPECT_EQ(refusal(state, {{"beta", AttributeType::real, std::int64_t{0}}}), "(no error)");
  const std::string expected =
      "operand 'm' of operator 'step' given with 'beta'; expected an optional operand, and a "
      "number with a default among the attributes";
  EXPECT_EQ(refusal(state, {}), expected);
  EXPECT_EQ(refusal(state, {{"beta", AttributeType::real, {}}}), expected);
  EXPECT_EQ(refusal(state, {{"beta", AttributeType::text, std::string("yes")}}), expected);
  EXPECT_EQ(refusal({.name = "m", .given_with = "beta"}, {{"beta", AttributeType::real, 0.5}}),
            expected);
}

}  // namespace
}  // namespace arenite::graph
