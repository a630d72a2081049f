#include "tests/reference/kernel_agreement.hpp"

#include "tests/reference/operator_cases.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace arenite::reference {
namespace {

using codelets::testing::OpHarness;

/// Against double; the kernels' own tests ask more.
double tolerance(runtime::Compute compute) {
  switch (compute) {
    case runtime::Compute::float32:
      return 1e-4;
    case runtime::Compute::tfloat32:
      return 2e-3;
    case runtime::Compute::bfloat16:
      return 2e-2;
  }
  return 0;
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

/// A result and the operand in whose place it lies.
using InPlace = std::optional<std::pair<std::size_t, std::size_t>>;

/// Runs one op of a case with every kernel that takes it; compares all that it writes. Returns how
/// many kernels there were.
int compare_op(const graph::Graph& graph, const graph::Op& op, Evaluator& values,
               const std::string& what, const runtime::KernelTable& table, DeviceKind device,
               const codelets::testing::Runner& runner, const InPlace& in_place) {
  OpHarness harness(1, runner);
  harness.updates_in_place = false;  // where they are, `in_place` says so
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
  if (in_place) harness.in_place(in_place->first, in_place->second);
  int compared = 0;
  for (const runtime::Kernel* kernel : harness.supporting(table, device)) {
    const bool exact = kernel->compute == runtime::Compute::float32;
    // On the CPU they run the float32 ones.
    if (!exact && device == DeviceKind::cpu) continue;
    ++compared;
    const std::string where = what + ": " + kernel->name + " of " + std::string(op.name()) +
                              (in_place ? " in place" : "");
    for (std::size_t i = 0; i < operands.size(); ++i) write(harness, operands[i], given[i]);
    EXPECT_EQ(harness.run(*kernel), runtime::StatusWord::ok) << where;
    for (const auto& written : {results, operands}) {
      for (graph::ValueId id : written) {
        if (in_place && id == operands[in_place->second]) continue;
        const bool is_code = harness.graph()[id].type == DType::uint8;
        if (is_code && !exact) continue;  // rounding may make another tap win
        codelets::testing::expect_close(read(harness, id), reference[id].data,
                                        is_code ? 0 : tolerance(kernel->compute), where);
      }
    }
  }
  return compared;
}

/// Where a result may lie in an operand's place, and has its size.
std::vector<InPlace> places(const graph::Graph& graph, const graph::Op& op) {
  std::vector<InPlace> all{std::nullopt};
  for (const auto& [result, operand] : graph::pairs_in_place(graph, op)) {
    const graph::Value &to = graph[op.results[result]], &from = graph[op.operands[operand]];
    if (to.type == from.type && to.shape == from.shape)
      all.emplace_back(std::pair{result, operand});
  }
  return all;
}

}  // namespace

std::map<std::string, int> compare_kernels(const runtime::KernelTable& table, DeviceKind device,
                                           const codelets::testing::Runner& runner,
                                           const std::function<void(const std::string&)>& begins) {
  std::map<std::string, int> compared;
  std::mt19937 random(3);
  for (const OperatorCase& what : operator_cases()) {
    if (begins) begins(text(what));
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
      for (const InPlace& in_place : places(op.graph, one)) {
        compared[std::string(one.name())] +=
            compare_op(op.graph, one, before, text(what), table, device, runner, in_place);
      }
    }
  }
  return compared;
}

}  // namespace arenite::reference
