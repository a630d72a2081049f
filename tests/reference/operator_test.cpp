// Every operator by itself: its gradient rule against central differences in double, and each of
// its CPU kernels against its reference rule.
#include "codelets/testing.hpp"
#include "tests/reference/operator_cases.hpp"

#include <map>

namespace arenite::reference {
namespace {

using codelets::testing::OpHarness;

constexpr double tolerance = 1e-7;  // of central differences: see check_gradient
constexpr double kernel_tolerance =
    1e-4;  // float32 against double; the kernels' own tests ask more

std::string text(const OperatorCase& what) {
  std::string all = what.op;
  for (const CaseOperand& operand : what.operands) all += " " + to_string(operand.shape);
  for (const auto& [name, value] : what.attributes.items())
    all += " " + name + "=" + graph::to_string(value);
  return all + (what.is_loss ? " as the loss" : "");
}

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

/// A float32, float64 or integer value of a harness as doubles, and back.
template <class T>
void copy_in(OpHarness& harness, graph::ValueId id, const std::vector<double>& values) {
  harness.write(id, std::vector<T>(values.begin(), values.end()));
}

void write(OpHarness& harness, graph::ValueId id, const std::vector<double>& values) {
  switch (harness.graph()[id].type) {
    case DType::float32:
      return copy_in<float>(harness, id, values);
    case DType::float64:
      return copy_in<double>(harness, id, values);
    case DType::int32:
      return copy_in<std::int32_t>(harness, id, values);
    case DType::int64:
      return copy_in<std::int64_t>(harness, id, values);
    case DType::uint8:
      return copy_in<std::uint8_t>(harness, id, values);
  }
}

std::vector<double> read(OpHarness& harness, graph::ValueId id) {
  using codelets::testing::as_doubles;
  switch (harness.graph()[id].type) {
    case DType::float32:
      return as_doubles(harness.read<float>(id));
    case DType::float64:
      return as_doubles(harness.read<double>(id));
    case DType::int32:
      return as_doubles(harness.read<std::int32_t>(id));
    case DType::int64:
      return as_doubles(harness.read<std::int64_t>(id));
    case DType::uint8:
      return as_doubles(harness.read<std::uint8_t>(id));
  }
  return {};
}

/// Runs one op of a case with every kernel that takes it; compares all that it writes.
void compare_kernels(const graph::Graph& graph, const graph::Op& op, Evaluator& values,
                     const std::string& what) {
  OpHarness harness;
  std::vector<graph::ValueId> operands;
  for (graph::ValueId operand : op.operands) {
    const graph::Value& value = graph[operand];
    operands.push_back(
        harness.declare("operand" + std::to_string(operands.size()), value.type, value.shape));
    write(harness, operands.back(), values[operand].data);
  }
  const auto results = harness.op(op.name(), operands, op.attributes);
  Evaluator reference(harness.graph());
  // As the kernels see them: rounded.
  std::vector<std::vector<double>> given;
  for (graph::ValueId operand : operands)
    given.push_back(reference[operand].data = read(harness, operand));
  reference.run();
  for (const std::string& kernel : harness.cpu_kernels()) {
    const std::string where = what + ": " + kernel + " of " + std::string(op.name());
    for (std::size_t i = 0; i < operands.size(); ++i) write(harness, operands[i], given[i]);
    EXPECT_EQ(harness.run(kernel), runtime::StatusWord::ok) << where;
    for (const auto& written : {results, operands}) {
      for (graph::ValueId id : written) {
        const bool is_code = harness.graph()[id].type == DType::uint8;
        codelets::testing::expect_close(read(harness, id), reference[id].data,
                                        is_code ? 0 : kernel_tolerance, where);
      }
    }
  }
}

TEST(Operators, EveryKernelAgreesWithTheReference) {
  std::mt19937 random(3);
  for (const OperatorCase& what : operator_cases()) {
    const OperatorGraph op(what, operators());
    Evaluator evaluator(op.graph);
    fill(what, op, evaluator, random);
    // Each op sees its operands before it writes them.
    Evaluator before = evaluator;
    evaluator.run();
    for (graph::OpId id : op.graph[graph::Graph::body].ops) {
      const graph::Op& one = op.graph[id];
      for (graph::ValueId operand : one.operands) {
        if (op.graph[operand].producer) before[operand] = evaluator[operand];
      }
      compare_kernels(op.graph, one, before, text(what));
    }
  }
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
    const auto share = one.definition->of_share({op.graph, one}, split, rows);
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
    if (!operators().at(what.op)->of_share || what.operands.empty()) continue;
    compared[what.op] += 0;
    const OperatorGraph op(what, operators());
    Evaluator whole(op.graph);
    fill(what, op, whole, random);
    whole.run();
    for (unsigned chosen = 1; chosen < 1u << what.operands.size(); ++chosen) {
      std::vector<bool> split;
      std::int64_t batch = 0;
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
