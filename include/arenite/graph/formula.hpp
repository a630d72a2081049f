// Operators that somebody writes as a formula, as scripts say:
//
//   formula swish(x, beta=1) { x * sigmoid(beta * x) }
//
//   formula heavy_ball(weight, gradient, learning_rate, velocity, momentum=0.9) {
//     v = momentum * velocity + gradient;
//     yield weight - learning_rate * v, v
//   }
//
// Operands come first, then numbers with what they are unless said, which are the operator's
// attributes; the text names both (see arenite/expr/text.hpp). All are of one type, float32 or
// float64, and repeated as by `map`; of reductions, groups are rows along the last axis. There are
// gradients, and kernels on all devices.
//
// One whose second and third operands are `gradient` and `learning_rate` is an optimizer: behind
// them stand its states, zeros at first, and last, if it wants it, `step`, the number of the step
// from 1 on. Results are the next weight and states, in their order. What is made of `step` and
// numbers alone is computed once a step, in float64. Reductions are of a whole weight.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arenite::graph {

class OperatorDefinition;
class OperatorTable;

struct WrittenFormula {
  std::string name;
  std::vector<std::string> operands;
  std::vector<std::pair<std::string, double>> numbers;
  std::string text;
};

/// As scripts have it, without white space at its end.
std::string to_string(const WrittenFormula& formula);

/// Reads such a declaration, "formula NAME(…) { … }", and nothing behind it. Throws Error with line
/// and column on whatever is wrong with it.
WrittenFormula parse_formula(std::string_view declaration);

/// The operator that it is. Throws Error where the table has another one of its name, or the
/// formula is none of these operands.
std::shared_ptr<const OperatorDefinition> define(const OperatorTable& table,
                                                 const WrittenFormula& formula);

/// Throws Error on an operator that a formula is, and that is no optimizer.
void check_optimizer(const OperatorDefinition& definition);

}  // namespace arenite::graph
