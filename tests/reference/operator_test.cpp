// Every operator by itself: its gradient rule against central differences in double, and each of
// its CPU kernels against its reference rule.
#include "codelets/testing.hpp"
#include "tests/reference/kernel_agreement.hpp"
#include "tests/reference/operator_cases.hpp"

#include <map>

namespace arenite::reference {
namespace {

constexpr double tolerance = 1e-7;  // of central differences: see check_gradient

TEST(Operators, GradientRulesAgreeWithCentralDifferences) {
  std::mt19937 random(1);
  for (const OperatorCase& what : operator_cases()) {
    if (!operators().at(what.op)->gradient) continue;
    const OperatorAgreement agreement = check_gradient(what, operators(), random);
    EXPECT_LE(agreement.worst, tolerance) << text(what);
    EXPECT_GT(agreement.compared, 0) << text(what);
    EXPECT_LE(agreement.kinks, agreement.compared / 20) << text(what);
  }
}

TEST(Operators, NoneIsWithoutACase) {
  for (const std::string& name : uncovered(operators(), operator_cases())) {
    ADD_FAILURE() << "operator '" << name
                  << "' is in the table, but nothing compares it with its formula: add its rule to "
                     "tests/reference/ and a case to tests/reference/operator_cases.cpp";
  }
}

/// The built-in operators, one of them changed.
template <class Change>
graph::OperatorTable changed(const std::string& op, Change change) {
  graph::OperatorTable table;
  for (const std::string& name : operators().names()) {
    graph::OperatorDefinition definition = *operators().at(name);
    if (name == op) change(definition);
    table.add(std::move(definition));
  }
  return table;
}

TEST(Operators, AWrongGradientRuleIsCaught) {
  std::mt19937 random(2);
  const auto worst = [&](const graph::OperatorTable& table, const std::string& op) {
    double all = 0;
    for (const OperatorCase& what : operator_cases()) {
      if (what.op == op) all = std::max(all, check_gradient(what, table, random).worst);
    }
    return all;
  };
  const auto passes_all = changed("relu", [](graph::OperatorDefinition& relu) {
    relu.gradient = [](graph::GradientContext& context) {
      context.set(0, context.result_gradient(0));
    };
  });
  EXPECT_GT(worst(passes_all, "relu"), 0.1);
  EXPECT_LE(worst(passes_all, "dense"), tolerance);
  const auto counts_twice = changed("bias", [](graph::OperatorDefinition& bias) {
    bias.gradient = [rule = bias.gradient](graph::GradientContext& context) {
      rule(context);
      const graph::ValueId once = context.operand_gradient(1);
      context.set(1, context.builder().add1("sum", {once, once}));
    };
  });
  EXPECT_GT(worst(counts_twice, "bias"), 0.1);
}

TEST(Operators, OneWithoutACaseIsNamed) {
  graph::OperatorTable table = changed("", [](graph::OperatorDefinition&) {});
  graph::OperatorDefinition newcomer = *operators().at("relu");
  newcomer.name = "newcomer";
  table.add(newcomer);
  EXPECT_EQ(uncovered(table, operator_cases()), std::vector<std::string>{"newcomer"});
  // To run somewhere in another's case is not enough for an operator with a gradient rule.
  std::vector<OperatorCase> cases = operator_cases();
  std::erase_if(cases, [](const OperatorCase& one) { return one.op == "sum"; });
  EXPECT_EQ(uncovered(operators(), cases), std::vector<std::string>{"sum"});
}

TEST(Operators, EveryKernelAgreesWithTheReference) {
  for (const auto& [op, compared] : compare_kernels(kernels(), DeviceKind::cpu))
    EXPECT_TRUE(compared > 0 || kernels().find(op).empty()) << op;
}

/// A case's op on some rows of the operands that are split, in double.
struct Part {
  graph::Graph graph;
  std::vector<graph::ValueId> operands, results;

  Part(const graph::Graph& whole, const graph::Op& op, const std::vector<bool>& split,
       std::int64_t rows, const graph::Attributes& attributes) {
    graph::Builder builder(graph, operators());
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const graph::Value& value = whole[op.operands[i]];
      operands.push_back(builder.declare("operand" + std::to_string(i), value.type,
                                         split[i] ? value.shape.with(0, rows) : value.shape,
                                         graph::StorageClass::buffer));
    }
    results = builder.add(op.name(), operands, attributes);
  }
};

/// The shares of a case, cut at `cut`, against the whole; false where the operator has no share.
bool compare_shares(const OperatorGraph& op, Evaluator& whole, const std::vector<bool>& split,
                    std::int64_t batch, std::int64_t cut, const std::string& where) {
  using Result = graph::OfShare::Result;
  const graph::Op& one = op.graph[op.graph[graph::Graph::body].ops.front()];
  std::vector<std::vector<double>> got(one.results.size());
  std::vector<Result> kinds;
  for (const auto& [begin, rows] : {std::pair{std::int64_t{0}, cut}, {cut, batch - cut}}) {
    const auto share = one.definition->of_share({op.graph, one}, {split, begin, rows});
    if (!share) return false;
    kinds = share->results;
    EXPECT_EQ(kinds.size(), one.results.size()) << where;
    const Part part(op.graph, one, split, rows, share->attributes);
    Evaluator evaluator(part.graph);
    for (std::size_t i = 0; i < part.operands.size(); ++i) {
      const std::vector<double>& from = whole[one.operands[i]].data;
      std::vector<double>& to = evaluator[part.operands[i]].data;
      const auto skipped =
          split[i] ? from.size() / static_cast<std::size_t>(batch) * static_cast<std::size_t>(begin)
                   : 0;
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(skipped), to.size(), to.begin());
    }
    evaluator.run();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::vector<double>& mine = evaluator[part.results[i]].data;
      if (kinds[i] == Result::rows) {
        got[i].insert(got[i].end(), mine.begin(), mine.end());
      } else {
        got[i].resize(mine.size());
        for (std::size_t k = 0; k < mine.size(); ++k) got[i][k] += mine[k];
      }
    }
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const graph::Value& result = op.graph[one.results[i]];
    const std::string which = where + ", result " + std::to_string(i);
    if (kinds[i] == Result::rows) {
      EXPECT_EQ(result.shape.dims().front(), batch) << which;
    }
    codelets::testing::expect_close(got[i], whole[one.results[i]].data, 1e-12, which);
  }
  return true;
}

// Whatever operands are split, where the operator says what becomes of it, it is right.
TEST(Operators, SharesMakeUpTheWhole) {
  std::mt19937 random(4);
  std::map<std::string, int> compared;
  for (const OperatorCase& what : operator_cases()) {
    if (!operators().at(what.op)->of_share) continue;
    compared[what.op] += 0;
    const OperatorGraph op(what, operators());
    Evaluator whole(op.graph);
    fill(what, op, whole, random);
    whole.run();
    const Shape made = op.result ? op.graph[op.result].shape : Shape{};
    for (unsigned chosen = 0; chosen < 1u << what.operands.size(); ++chosen) {
      std::vector<bool> split;
      // Where no operand has the samples, the op makes them.
      std::int64_t batch = chosen == 0 && made.rank() > 0 ? made[0] : 0;
      bool fits = true;
      for (std::size_t i = 0; i < what.operands.size(); ++i) {
        split.push_back((chosen >> i & 1) != 0);
        if (!split.back()) continue;
        const Shape& shape = what.operands[i].shape;
        fits = fits && shape.rank() > 0 && shape[0] > 1 && (batch == 0 || shape[0] == batch);
        if (fits) batch = shape[0];
      }
      if (!fits) continue;
      const std::string where = text(what) + ", operands " + std::to_string(chosen);
      for (std::int64_t cut = 1; cut < batch; ++cut)
        compared[what.op] += compare_shares(op, whole, split, batch, cut, where) ? 1 : 0;
    }
  }
  EXPECT_GE(compared.size(), 20u);
  for (const auto& [name, count] : compared) EXPECT_GT(count, 0) << name;
}

}  // namespace
}  // namespace arenite::reference
