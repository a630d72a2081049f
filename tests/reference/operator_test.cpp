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

}  // namespace
}  // namespace arenite::reference
