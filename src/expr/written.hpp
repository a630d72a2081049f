// Formulas that are no line of formulas.def: of a text that names operands and numbers.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/expr/formulas.hpp"

namespace arenite::expr {

/// An optimizer where the operands say so (see arenite/graph/formula.hpp), else an operator. What
/// makes the next weight and states of an optimizer has its results that are new in each step as
/// operands at the end: so many at most, fewer where numbers make some of them the same. Throws
/// Error on a text that is no formula of these, with the numbers as they are unless said.
std::shared_ptr<const Formula> written(std::string name, std::vector<std::string> operands,
                                       std::vector<std::pair<std::string, double>> numbers,
                                       std::string text);

}  // namespace arenite::expr
