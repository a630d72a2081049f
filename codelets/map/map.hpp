// Maps: operators of which each element of the results is computed of the operands' elements at the
// same place. Operands are repeated along axes where their size is 1, and along axes in front that
// they lack.
#pragma once

#include <arenite/expr/expression.hpp>

#include <string>

#include "codelets/map/walk.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets {

/// The attribute that says what is computed, as text (see arenite/expr/text.hpp).
inline constexpr const char* map_expression = "expression";
inline constexpr const char* reduce_name = "reduce";

expr::Type type_of(DType type) noexcept;

/// The shape to which all operands can be repeated. Throws Error where there is none.
Shape shape_of_all(const OpView& op);

/// What an op computes, as it is written.
expr::Expression written_formula_of(const OpView& op);
/// The same; of a reduction, with its groups' elements for `count()`. Throws Error.
expr::Expression formula_of(const OpView& op);

/// What an op goes through: of a reduction, the shape to which its operands can be repeated.
Space space_of(const OpView& op);
/// Its operands, then its results; `formula` is its own.
std::vector<Seen> seen_by(const OpView& op, const expr::Expression& formula);

/// Of maps and reductions.
void map_gradient(graph::GradientContext& context);
graph::Cost map_cost(const OpView& op);

/// Of what an expression computes, which is no boolean.
DType dtype_of(expr::Type type) noexcept;
/// Throws Error where a formula asks for indices along others than a shape's axes.
void expect_axes_of(const expr::Expression& formula, const Shape& shape);

/// For CPUs: of `map`, and of all operators that have a formula.
std::vector<Kernel> map_kernels();

/// The CUDA C++ of a kernel that computes an op, whose values have no halo (see
/// codelets/cuda/generated.hpp): its parameters are the operands and the results.
std::string map_source(const OpView& op);

}  // namespace arenite::codelets
