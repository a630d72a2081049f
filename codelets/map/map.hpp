// Maps: operators of which each element of the results is computed of the operands' elements at the
// same place. Operands are repeated along axes where their size is 1, and along axes in front that
// they lack.
#pragma once

#include <arenite/expr/expression.hpp>

#include <memory>
#include <string>

#include "codelets/map/walk.hpp"
#include "codelets/registry.hpp"
#include "src/expr/formulas.hpp"

namespace arenite::codelets {

/// The attribute that says what is computed, as text (see arenite/expr/text.hpp).
inline constexpr const char* map_expression = "expression";
inline constexpr const char* reduce_name = "reduce";

expr::Type type_of(DType type) noexcept;

/// The shape to which all operands can be repeated. Throws Error where there is none.
Shape shape_of_all(const OpView& op);

/// What an op's attribute `expression` says.
expr::Expression parsed(const OpView& op);

/// What an op goes through: of a reduction, the shape to which its operands can be repeated.
Space space_of(const OpView& op, const graph::ElementFormula& formula);

/// An op that has a formula, of all its operands but for optional ones that it lacks behind them.
struct Elementwise {
  expr::Expression formula;
  Space space;
  std::vector<Seen> values;  ///< operands, then results

  explicit Elementwise(const OpView& op);
};

/// The first results may take the bytes of any of the first operands.
inline constexpr std::size_t most_in_place = 16, most_results_in_place = 4;
std::vector<std::pair<std::size_t, std::size_t>> in_place(std::size_t operands,
                                                          std::size_t results = 1);

/// Of maps and reductions.
void map_gradient(graph::GradientContext& context);
/// Of a formula of rows with one operand, whose gradient is another one's of `gradient` and `y`.
void stated_gradient(graph::GradientContext& context, const expr::Formula& formula);
graph::Cost map_cost(const OpView& op);
/// Some rows of the results are made of the same rows of operands that have them; others are whole.
std::optional<graph::OfShare> share_of_elements(const OpView& op, const graph::Share& share);
/// The same, unless it knows in which row it is.
std::optional<graph::OfShare> share_of_numbered(const OpView& op, const graph::Share& share);
/// A formula of formulas.def, of float32.
graph::ElementFormula formula_named(std::string_view name, std::initializer_list<double> numbers);
/// A formula's numbers are attributes. Throws Error where an op's are out of range.
std::vector<graph::AttributeSchema> schema_of(const expr::Formula& formula);
std::vector<double> numbers_of(const graph::Attributes& attributes, const expr::Formula& formula);
void expect_numbers(const OpView& op, const expr::Formula& formula);
/// What the formula is with an op's numbers. Throws Error where these are out of range, or make of
/// it what is to be run otherwise.
expr::Expression made_with_numbers(const OpView& op, const expr::Formula& formula, expr::Type type);
/// The operators that a formula is.
graph::OperatorDefinition formula_operator(std::shared_ptr<const expr::Formula> formula);
graph::OperatorDefinition optimizer(std::shared_ptr<const expr::Formula> formula);
/// Of reductions.
std::optional<graph::OfShare> share_of_groups(const OpView& op, const graph::Share& share);

/// Of what an expression computes, which is no boolean.
DType dtype_of(expr::Type type) noexcept;
/// Throws Error where a formula asks for indices along others than a shape's axes.
void expect_axes_of(const expr::Expression& formula, const Shape& shape);

/// Gives each operator that has a formula the kernels of `map` that it lacks.
void share_kernels_of_map(const graph::OperatorTable& operators, runtime::KernelTable& kernels);

}  // namespace arenite::codelets
