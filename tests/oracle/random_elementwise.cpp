#include "tests/oracle/random_elementwise.hpp"

#include "src/expr/formulas.hpp"

namespace arenite::oracle {
namespace {

using List = std::vector<std::int64_t>;

List dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// The shape with 1 for some of its sizes.
List shrunk(Draw& draw, const Shape& shape) {
  List sizes = dims(shape);
  for (std::int64_t& size : sizes) size = draw.chance(50) ? 1 : size;
  return sizes;
}

/// A shape that the value can be repeated to.
List grown(Draw& draw, const Shape& shape) {
  List sizes = dims(shape);
  const bool small = shape.elements() <= RandomValues::most_elements / 100;
  for (std::int64_t& size : sizes) {
    if (size == 1 && small && draw.chance(50)) size = draw.between(1, 3);
  }
  return sizes;
}

/// Which one it is follows from what was drawn already, so that all else in the programs stays as
/// it was.
void add_formula(RandomValues& values, std::vector<graph::ValueId> operands) {
  static const std::vector<std::string> maps[] = {
      {"$1 * sigmoid($1)", "tanh($1)", "exp(-abs($1))"},
      {"fma($1, 0.5, $2)", "max($1, $2)", "select($1 < $2, $2 * 0.1, $1)"}};
  const auto& expressions = maps[operands.size() - 1];
  std::vector<std::string_view> names;
  for (const expr::Formula& formula : expr::formulas()) {
    if (formula.is_operator && formula.operands.size() == operands.size())
      names.push_back(formula.name);
  }
  const graph::Graph& graph = values.graph;
  const auto seed =
      graph.value_count() + static_cast<std::size_t>(values.shape(operands[0]).elements());
  const std::size_t which = seed % (names.size() + expressions.size());
  if (which < names.size()) {
    values.builder.add(names[which], operands);
  } else {
    values.builder.add("map", operands, {{"expression", expressions[which - names.size()]}});
  }
}

}  // namespace

void add_elementwise(RandomValues& values) {
  Draw& draw = values.draw;
  graph::Builder& builder = values.builder;
  const graph::ValueId x = values.tensor();
  const Shape shape = values.shape(x);
  switch (draw.below(5)) {
    case 0:
      builder.add("sum_to", {x}, {{"shape", shrunk(draw, shape)}});
      break;
    case 1:
      add_formula(values, {x});
      break;
    case 2:
      builder.add("broadcast_to", {x}, {{"shape", grown(draw, shape)}});
      break;
    default: {
      const Shape of(draw.chance(50) ? dims(shape) : shrunk(draw, shape));
      if (draw.chance(50)) {
        builder.add("add", {x, values.floats(of)});
      } else {
        // Products of products would leave the range of floats.
        builder.add("mul", {x, values.declare(DType::float32, of, {})});
      }
    }
  }
}

void add_elementwise_gradient(RandomValues& values) {
  const graph::ValueId x = values.tensor();
  add_formula(values, {values.floats(values.shape(x)), x});
}

}  // namespace arenite::oracle
