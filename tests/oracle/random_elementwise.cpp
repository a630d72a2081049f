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

/// Maps of a value, and of one that is repeated to its shape.
void add_map(RandomValues& values, graph::ValueId x) {
  Draw& draw = values.draw;
  const Shape shape = values.shape(x);
  const char* expression =
      draw.of({"$1 * sigmoid($1)", "tanh($1)", "fma($1, 0.5, $2)", "max($1, $2)",
               "yield select($1 < $2, $2 * 0.1, $1), $1 - $2", "$1 + 0.1 * float32(index(0))"});
  std::vector<graph::ValueId> operands{x};
  if (std::string_view(expression).find("$2") != std::string_view::npos)
    operands.push_back(values.floats(Shape(draw.chance(50) ? dims(shape) : shrunk(draw, shape))));
  if (std::string_view(expression).find("index") != std::string_view::npos && shape.rank() == 0)
    expression = "-$1";
  values.builder.add("map", operands, {{"expression", std::string(expression)}});
}

/// Of groups along some axes.
void add_reduce(RandomValues& values, graph::ValueId x) {
  Draw& draw = values.draw;
  const Shape shape = values.shape(x);
  if (shape.rank() == 0) return add_map(values, x);
  const char* expression =
      shape.elements() == 0
          ? "sum($1)"
          : draw.of({"sum($1)", "mean($1 * $2)", "e = exp($1 - max($1)); yield e / sum(e)",
                     "d = $1 - mean($1); yield d * rsqrt(mean(d * d) + 0.1), variance($1)",
                     "logsumexp($1)", "yield 0.5 * $1 - 0.1 * max($1) + $2, sum($1)"});
  std::vector<graph::ValueId> operands{x};
  if (std::string_view(expression).find("$2") != std::string_view::npos)
    operands.push_back(values.floats(Shape(draw.chance(50) ? dims(shape) : shrunk(draw, shape))));
  List axes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (draw.chance(50)) axes.push_back(axis);
  }
  if (axes.empty()) axes.push_back(shape.rank() - 1);
  values.builder.add(
      "reduce", operands,
      {{"axes", axes}, {"keep", draw.between(0, 1)}, {"expression", std::string(expression)}});
}

void add_dropout(RandomValues& values, graph::ValueId x) {
  Draw& draw = values.draw;
  const auto position = values.declare(DType::int64, {1}, {0, 1000}, graph::StorageClass::input);
  values.builder.add("dropout_in_training", {x, position},
                     {{"rate", draw.of({0.1, 0.5})}, {"key", draw.between(0, 9)}});
}

void add_formula(RandomValues& values, graph::ValueId x, const expr::Formula& formula) {
  Draw& draw = values.draw;
  const Shape shape = values.shape(x);
  std::vector<graph::ValueId> operands{x};
  // Products of products would leave the range of floats.
  while (operands.size() < formula.operands.size()) {
    const Shape of(draw.chance(50) ? dims(shape) : shrunk(draw, shape));
    operands.push_back(values.declare(DType::float32, of, {}));
  }
  values.builder.add(formula.name, operands);
}

}  // namespace

void add_elementwise(RandomValues& values) {
  Draw& draw = values.draw;
  graph::Builder& builder = values.builder;
  const graph::ValueId x = values.tensor();
  const Shape shape = values.shape(x);
  static const auto formulas = [] {
    std::vector<const expr::Formula*> all;
    for (const expr::Formula& one : expr::formulas()) {
      if (one.is_operator && !one.is_of_rows) all.push_back(&one);
    }
    return all;
  }();
  constexpr std::size_t others = 7;
  const std::size_t kind = draw.below(others + formulas.size());
  if (kind >= others) return add_formula(values, x, *formulas[kind - others]);
  switch (kind) {
    case 0:
      builder.add("sum_to", {x}, {{"shape", shrunk(draw, shape)}});
      break;
    case 1:
      builder.add("broadcast_to", {x}, {{"shape", grown(draw, shape)}});
      break;
    case 2:
    case 3:
      add_map(values, x);
      break;
    case 4:
      add_dropout(values, x);
      break;
    default:
      add_reduce(values, x);
  }
}

}  // namespace arenite::oracle
