// Maps: operators of which each element of the results is computed of the operands' elements at the
// same place. Operands are repeated along axes where their size is 1, and along axes in front that
// they lack.
#pragma once

#include <arenite/expr/expression.hpp>

#include <string>

#include "codelets/registry.hpp"

namespace arenite::codelets {

/// The attribute that says what is computed, as text (see arenite/expr/text.hpp).
inline constexpr const char* map_expression = "expression";

expr::Type type_of(DType type) noexcept;

/// What an op computes. Throws Error.
expr::Expression formula_of(const OpView& op);

/// For CPUs: of `map`, and of all operators that have a formula.
std::vector<Kernel> map_kernels();

/// The CUDA C++ of a kernel that computes an op, whose values have no halo (see
/// codelets/cuda/generated.hpp): its parameters are the operands and the results.
std::string map_source(const OpView& op);

}  // namespace arenite::codelets
