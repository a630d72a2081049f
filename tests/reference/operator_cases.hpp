// One or more small uses of every operator: operands, attributes, and what is differentiated.
#pragma once

#include <arenite/graph/builder.hpp>

#include "tests/reference/evaluator.hpp"

#include <random>
#include <string>
#include <vector>

namespace arenite::reference {

struct CaseOperand {
  Shape shape;
  bool wanted = true;  ///< its gradient is asked for, where the operator has one
  DType type = DType::float32;
  double low = -1, high = 1;  ///< integers include both
  bool rectified = false;     ///< what a ReLU has made of that
};

struct OperatorCase {
  std::string op;
  std::vector<CaseOperand> operands;
  graph::Attributes attributes;
  bool is_loss = false;  ///< result 0 is what is differentiated; else a random sum of its elements
};

std::vector<OperatorCase> attention_cases();

/// A new operator needs a case here.
const std::vector<OperatorCase>& operator_cases();
/// Those among them that broadcast, or are smooth functions of each element.
std::vector<OperatorCase> elementwise_cases();

/// Those of formulas by name, of floats of one type.
std::vector<OperatorCase> formula_cases(DType type);

/// Those of the table's optimizers, but for sgd.
std::vector<OperatorCase> optimizer_cases(const graph::OperatorTable& table);

/// Some of them: products of matrices, and axes in another order.
std::vector<OperatorCase> product_cases();
std::vector<OperatorCase> axis_cases();

/// Operators of the table without a case.
std::vector<std::string> uncovered(const graph::OperatorTable& table,
                                   const std::vector<OperatorCase>& cases);

/// Operator, shapes and attributes, for messages.
std::string text(const OperatorCase& what);

/// A case as a graph: the op, and what its gradient rule appends.
struct OperatorGraph {
  graph::Graph graph;
  std::vector<graph::ValueId> operands;
  graph::ValueId result;                  ///< result 0; none for an op without results
  graph::ValueId weights;                 ///< its gradient, declared; none where it is the loss
  std::vector<graph::ValueId> gradients;  ///< of the operands; none for those not wanted

  OperatorGraph(const OperatorCase& what, const graph::OperatorTable& table);
};

/// Random operands, rounded as their type is, so that kernels can be given the same numbers.
void fill(const OperatorCase& what, const OperatorGraph& op, Evaluator& evaluator,
          std::mt19937& random);

struct OperatorAgreement {
  double worst = 0;  ///< `disagreement` over all elements of all wanted operands
  int compared = 0, kinks = 0;
};

/// The gradient rule of the case's operator in the table, its ops computed in double, against
/// central differences of the operator itself.
OperatorAgreement check_gradient(const OperatorCase& what, const graph::OperatorTable& table,
                                 std::mt19937& random);

}  // namespace arenite::reference
