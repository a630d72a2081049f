// map(x, …; expression): each element of the results is what the expression makes of the operands'
// elements at the same place ($1 is the first operand's). Operands are repeated along axes where
// their size is 1, and along axes in front that they lack.
//
//   $3 = map($1, $2) { $1 * sigmoid($2) }
//
// An operator for each formula of src/expr/formulas.def is the same with that for its expression,
// of floats of one type; those of rows are reductions along the last axis. A gradient is a map or a
// reduction again, of the results' gradients, and of operands or
// results as they need less work (see arenite/expr/derive.hpp), summed over the axes along which
// the operand was repeated.
#include "codelets/map/map.hpp"

#include <arenite/expr/builder.hpp>
#include <arenite/expr/text.hpp>
#include <arenite/graph/formula.hpp>

#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/simpler.hpp"
#include "src/expr/formulas.hpp"
#include "src/expr/functions.hpp"
#include "src/expr/scalar.hpp"
#include "src/expr/written.hpp"

#include <cmath>
#include <map>
#include <mutex>
#include <optional>

namespace arenite::codelets {

std::vector<Kernel> map_kernels();

expr::Type type_of(DType type) noexcept {
  switch (type) {
    case DType::float32:
      return expr::Type::float32;
    case DType::float64:
      return expr::Type::float64;
    case DType::int64:
      return expr::Type::int64;
    case DType::int32:
      return expr::Type::int32;
    case DType::uint8:
      break;
  }
  return expr::Type::uint8;
}

DType dtype_of(expr::Type type) noexcept {
  switch (type) {
    case expr::Type::float32:
      return DType::float32;
    case expr::Type::float64:
      return DType::float64;
    case expr::Type::int64:
      return DType::int64;
    case expr::Type::int32:
      return DType::int32;
    default:
      return DType::uint8;
  }
}

void expect_axes_of(const expr::Expression& formula, const Shape& shape) {
  for (const expr::Node& node : formula.nodes()) {
    if (node.function != expr::Function::index ||
        node.payload < static_cast<std::uint64_t>(shape.rank()))
      continue;
    fail({.found = "index(" + std::to_string(node.payload) + ")",
          .expected = "an axis of the operands' joint shape " + to_string(shape)});
  }
}

namespace {

/// The size of an axis of a value that is lined up with others at the last axes.
std::int64_t size_at(const Shape& shape, int axis, int rank) noexcept {
  const int own = axis - (rank - shape.rank());
  return own < 0 ? 1 : shape[own];
}

}  // namespace

Shape shape_of_all(const OpView& op) {
  int rank = 0;
  for (std::size_t i = 0; i < op.operand_count(); ++i)
    rank = std::max(rank, op.operand(i).shape.rank());
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    for (int axis = 0; axis < rank; ++axis) {
      std::int64_t& size = dims[static_cast<std::size_t>(axis)];
      const std::int64_t own = size_at(op.operand(i).shape, axis, rank);
      if (size == 1) size = own;
      if (own == size || own == 1) continue;
      const std::string operand =
          op.op().definition->variadic > 0
              ? "operand $" + std::to_string(i + 1) + " (" + op.operand(i).name + ")"
              : operand_text(op, i);
      fail({.found = operand + " of shape " + to_string(op.operand(i).shape),
            .expected = "a shape that fits " + to_string(Shape(dims)) +
                        " from the last axis on, where a size of 1 is repeated"});
    }
  }
  return Shape(dims);
}

Space space_of(const OpView& op, const graph::ElementFormula& formula) {
  if (!formula.expression.reduces()) return {.whole = op.result(0).shape, .reduced = {}};
  Space space{.whole = shape_of_all(op), .reduced = {}};
  const int rank = space.whole.rank();
  space.reduced.assign(static_cast<std::size_t>(rank), false);
  for (const std::int64_t given : formula.axes) {
    const std::int64_t axis = given < 0 ? given + rank : given;
    const bool is_there = axis >= 0 && axis < rank;
    if (is_there && !space.reduced[static_cast<std::size_t>(axis)]) {
      space.reduced[static_cast<std::size_t>(axis)] = true;
      continue;
    }
    fail({.found = "axes=" + graph::to_string(formula.axes),
          .expected = "axes of " + to_string(space.whole) + ", each of them once"});
  }
  return space;
}

Elementwise::Elementwise(const OpView& op) {
  graph::ElementFormula given = op.op().definition->formula(op);
  space = space_of(op, given);
  formula = std::move(given.expression);
  for (std::size_t i = 0; i < formula.operands().size(); ++i) values.push_back({&op.operand(i)});
  const auto varies = formula.varying();
  for (std::size_t i = 0; i < op.op().results.size(); ++i)
    values.push_back({&op.result(i), !given.keeps_axes && !varies[formula.results()[i]]});
}

/// Passes ask again and again, of ops that are often alike: the last texts are kept as they were
/// read.
expr::Expression parsed(const OpView& op) {
  constexpr std::size_t most_kept = 256;
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::vector<expr::Type>>, expr::Expression> known;
  std::pair<std::string, std::vector<expr::Type>> asked{op.attributes().text(map_expression), {}};
  for (std::size_t i = 0; i < op.operand_count(); ++i)
    asked.second.push_back(type_of(op.operand(i).type));
  const std::lock_guard lock(mutex);
  const auto found = known.find(asked);
  if (found != known.end()) return found->second;
  expr::Expression made = expr::parse(asked.first, asked.second);
  if (known.size() == most_kept) known.clear();
  return known.emplace(std::move(asked), std::move(made)).first->second;
}

void share_kernels_of_map(const graph::OperatorTable& operators, runtime::KernelTable& kernels) {
  for (const auto& [name, definition] : operators.all()) {
    if (!definition->formula || name == "map") continue;
    for (const Kernel& kernel : kernels.find("map")) {
      const auto is_there = [&](const Kernel& own) {
        return own.name == kernel.name && own.device == kernel.device;
      };
      if (std::ranges::none_of(kernels.find(name), is_there)) kernels.add(name, kernel);
    }
  }
}

std::vector<std::pair<std::size_t, std::size_t>> in_place(std::size_t operands,
                                                          std::size_t results) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t result = 0; result < results; ++result) {
    for (std::size_t operand = 0; operand < operands; ++operand)
      pairs.emplace_back(result, operand);
  }
  return pairs;
}

void expect_numbers(const OpView& op, const expr::Formula& formula) {
  for (const auto& number : formula.numbers) {
    using Range = expr::Formula::Number::Range;
    const double given = op.attributes().real(number.name);
    const bool is_within = number.range == Range::positive ? given > 0
                           : number.range == Range::not_negative
                               ? given >= 0 && std::isfinite(given)
                           : number.range == Range::from_0_to_below_1 ? given >= 0 && given < 1
                                                                      : given == given;
    if (is_within) continue;
    fail({.found = number.name + "=" + graph::to_string(*op.attributes().find(number.name)),
          .expected = number.range == Range::positive            ? "a number above 0"
                      : number.range == Range::not_negative      ? "a finite number of at least 0"
                      : number.range == Range::from_0_to_below_1 ? "a number from 0 to below 1"
                                                                 : "a number"});
  }
}

std::vector<graph::AttributeSchema> schema_of(const expr::Formula& formula) {
  std::vector<graph::AttributeSchema> all;
  for (const auto& number : formula.numbers)
    all.push_back({number.name, graph::AttributeType::real, number.standard});
  return all;
}

std::vector<double> numbers_of(const graph::Attributes& attributes, const expr::Formula& formula) {
  std::vector<double> all;
  for (const auto& number : formula.numbers) all.push_back(attributes.real(number.name));
  return all;
}

expr::Expression made_with_numbers(const OpView& op, const expr::Formula& formula,
                                   expr::Type type) {
  const auto refuse = [&](const std::string& what) {
    fail({.found = "numbers of " + formula.name + " with which " + what,
          .expected = "numbers with which it is as with those that it has unless said"});
  };
  expect_numbers(op, formula);
  expr::Expression made;
  try {
    made = formula.with(type, numbers_of(op.attributes(), formula));
  } catch (const Error& error) {
    refuse("there is " + error.text().found);
  }
  if (made.reduces() != formula.is_of_rows) {
    refuse(formula.is_of_rows     ? "nothing is reduced"
           : formula.is_optimizer ? "a weight is reduced"
                                  : "rows are reduced");
  }
  const std::vector<bool> varies = made.varying();
  for (const expr::NodeId result : made.results()) {
    if (made.reduces() && !varies[result]) refuse("a result is one for a row");
  }
  return made;
}

namespace {

Results infer_map(const OpView& op) {
  const expr::Expression formula = parsed(op);
  if (formula.reduces()) {
    fail({.found = "a formula that reduces groups of elements, in a map",
          .expected = "a `reduce`, which says what groups are: reduce($1, axes=[0]) { … }"});
  }
  const Shape shape = shape_of_all(op);
  expect_axes_of(formula, shape);
  Results results;
  for (std::size_t i = 0; i < formula.results().size(); ++i)
    results.push_back({dtype_of(formula.result_type(i)), shape});
  return results;
}

Results infer_named(const OpView& op, const expr::Formula& formula) {
  expect_real(op, 0);
  for (std::size_t i = 1; i < op.operand_count(); ++i) expect_type(op, i, op.operand(0).type);
  if (formula.is_of_rows) {
    expect_axes(op, 0, "[..., C]");
    const Shape &x = op.operand(0).shape, all = shape_of_all(op);
    if (all != x) {
      fail({.found = "operands that are repeated to " + to_string(all),
            .expected = to_string(x) + ", the shape of '" + formula.operands[0] + "'"});
    }
  }
  const expr::Expression made = made_with_numbers(op, formula, type_of(op.operand(0).type));
  const Shape shape = shape_of_all(op);
  expect_axes_of(made, shape);
  Results results;
  for (std::size_t i = 0; i < made.results().size(); ++i)
    results.push_back({dtype_of(made.result_type(i)), shape});
  return results;
}

}  // namespace

graph::Cost map_cost(const OpView& op) {
  const Elementwise made(op);
  double each = 0;
  for (const expr::Node& node : made.formula.nodes()) each += expr::info(node.function).work;
  return {.flops = each * static_cast<double>(made.space.whole.elements()),
          .bytes = bytes_touched(op)};
}

namespace {

/// Of constants alone: what they make, where all machines make the same bits of them.
std::optional<double> constant_of(const OpView& op) {
  expr::Builder builder;
  std::vector<expr::Value> constants;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    const auto number = constant(op, i);
    if (!number || !is_real(op.operand(i).type)) return std::nullopt;
    constants.push_back(builder.constant(type_of(op.operand(i).type), *number));
  }
  const expr::Value made = builder.insert(Elementwise(op).formula, constants).front();
  const expr::Node& node = builder[made.node()];
  if (node.function != expr::Function::constant) return std::nullopt;
  return node.type == expr::Type::float32 ? static_cast<double>(expr::value_of<float>(node.payload))
                                          : expr::value_of<double>(node.payload);
}

/// As relu of a relu: the first has left nothing to do.
bool is_done(const OpView& op) {
  const graph::Op* first = op.operand_count() == 1 ? made_by(op, 0, op.op().name()) : nullptr;
  if (first == nullptr || first->operands.size() != 1 || first->results.size() != 1) return false;
  expr::Builder builder;
  const std::array x{builder.operand(type_of(op.graph()[first->operands[0]].type))};
  const auto once = builder.insert(Elementwise(OpView(op.graph(), *first)).formula, x);
  return builder.insert(Elementwise(op).formula, once).front().node() == once.front().node();
}

std::optional<Simpler> simplify(const OpView& op) {
  if (op.op().results.size() != 1 || !is_real(op.result(0).type)) return std::nullopt;
  if (is_done(op)) return is_value(op.op().operands[0]);
  const auto number = constant_of(op);
  return number ? is_full(op, *number) : std::nullopt;
}

}  // namespace

std::optional<graph::OfShare> share_of_elements(const OpView& op, const graph::Share& share) {
  const Shape& shape = op.result(0).shape;
  if (shape.rank() == 0) return std::nullopt;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    if (!op.has_operand(i)) continue;
    const Shape& own = op.operand(i).shape;
    const bool has_rows = own.rank() == shape.rank() && own[0] == shape[0] && shape[0] != 1;
    if (!share.is(has_rows ? graph::Split::rows : graph::Split::none, i)) return std::nullopt;
  }
  return all_rows(op, op.attributes());
}

std::optional<graph::OfShare> share_of_numbered(const OpView& op, const graph::Share& share) {
  const expr::Expression made = op.op().definition->formula(op).expression;
  const bool numbers_rows = std::ranges::any_of(made.nodes(), [](const expr::Node& node) {
    return node.function == expr::Function::index && node.payload == 0;
  });
  return numbers_rows ? std::nullopt : share_of_elements(op, share);
}

graph::ElementFormula formula_named(std::string_view name, std::initializer_list<double> numbers) {
  return {expr::find_formula(name)->with(expr::Type::float32, std::span(numbers))};
}

namespace {

graph::ElementFormula formula_of(const OpView& op, const expr::Formula& formula) {
  graph::ElementFormula made{
      formula.with(type_of(op.operand(0).type), numbers_of(op.attributes(), formula))};
  if (formula.is_of_rows) made.axes = {-1};
  return made;
}

graph::Attributes attributes_of(const graph::ElementFormula& formula) {
  return {{map_expression, expr::print(formula.expression)}};
}

}  // namespace

graph::OperatorDefinition formula_operator(std::shared_ptr<const expr::Formula> formula) {
  const std::size_t results = formula->standard(expr::Type::float32).results().size();
  graph::OperatorDefinition definition{
      .name = formula->name,
      .results = {"y"},
      .attributes = schema_of(*formula),
      .infer = [formula](const OpView& op) { return infer_named(op, *formula); },
      .gradient = map_gradient,
      .in_place = in_place(formula->operands.size(), std::min(results, most_results_in_place)),
      .formula = [formula](const OpView& op) { return formula_of(op, *formula); },
      .cost = map_cost,
      .simplify = simplify};
  definition.of_share = formula->is_of_rows ? share_of_groups : share_of_numbered;
  const bool is_row = expr::find_formula(formula->name) != nullptr;
  const expr::Formula* gradient = expr::find_formula(formula->name + "_grad");
  if (is_row && gradient != nullptr && gradient->is_of_rows)
    definition.gradient = [gradient](graph::GradientContext& context) {
      stated_gradient(context, *gradient);
    };
  for (const std::string& operand : formula->operands) definition.operands.push_back({operand});
  return definition;
}

void register_map(Registry& registry) {
  registry.add({.name = "map",
                .operands = {{"x"}},
                .variadic = 1,
                .results = {"y"},
                .attributes = {{map_expression, graph::AttributeType::text, {}}},
                .infer = infer_map,
                .gradient = map_gradient,
                .in_place = in_place(most_in_place, most_results_in_place),
                .formula = [](const OpView& op) { return graph::ElementFormula{parsed(op)}; },
                .cost = map_cost,
                .simplify = simplify,
                .does = graph::FormulaOf{.reduces = false, .attributes = attributes_of},
                .of_share = share_of_numbered},
               map_kernels());
  for (const expr::Formula& formula : expr::formulas()) {
    if (formula.is_operator)
      registry.add(formula_operator(std::make_shared<const expr::Formula>(formula)), {});
  }
  registry.operators.define_by = [](const graph::WrittenFormula& written) {
    auto formula = expr::written(written.name, written.operands, written.numbers, written.text);
    return formula->is_optimizer ? optimizer(std::move(formula))
                                 : formula_operator(std::move(formula));
  };
  registry.kernels.of_formulas = "map";
}

}  // namespace arenite::codelets
