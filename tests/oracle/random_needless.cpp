#include "tests/oracle/random_needless.hpp"

#include "src/graph/versions.hpp"

#include <algorithm>
#include <numeric>

namespace arenite::oracle {
namespace {

using graph::ValueId;
using List = std::vector<std::int64_t>;

List dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

ValueId number(RandomValues& values, std::int64_t value) {
  return values.builder.add1(
      "full", {},
      {{"shape", List{1}}, {"value", static_cast<double>(value)}, {"type", std::string("int64")}});
}

/// An op of the same values as another one.
void add_again(RandomValues& values) {
  std::vector<graph::OpId> all;
  for (graph::OpId id : values.graph[graph::Graph::body].ops) {
    const graph::Op& op = values.graph[id];
    if (op.regions.empty() && op.name() != "draw" && !graph::only_renews(op)) all.push_back(id);
  }
  if (all.empty()) return;
  const graph::Op op = values.graph[values.draw.of(all)];  // appending ops moves it
  if (values.draw.chance(80)) values.builder.context.lane = op.lane;
  if (values.draw.chance(80)) values.builder.context.phase = op.phase;
  values.builder.add(op.definition, op.operands, op.attributes);
}

List permutation(RandomValues& values, int rank) {
  List order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[values.draw.below(i)]);
  return order;
}

/// Permutations of permutations, the last of which may lead back.
void add_permutations(RandomValues& values) {
  ValueId x = values.tensor();
  const Shape shape = values.shape(x);
  List all(static_cast<std::size_t>(shape.rank()));
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t more = values.draw.between(1, 3); more > 0; --more) {
    const List order = permutation(values, shape.rank());
    x = values.builder.add1("permute", {x}, {{"dims", order}});
    List both;
    for (const std::int64_t axis : order) both.push_back(all[static_cast<std::size_t>(axis)]);
    all = both;
  }
  if (values.draw.chance(50)) return;
  List back(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    back[static_cast<std::size_t>(all[i])] = static_cast<std::int64_t>(i);
  values.builder.add("permute", {x}, {{"dims", back}});
}

/// A product with a matrix that was transposed for it.
void add_transposed_product(RandomValues& values) {
  const ValueId x = values.matrix();
  const std::int64_t inner = values.shape(x)[1], columns = values.draw.of<std::int64_t>({1, 3, 10});
  const ValueId weight = values.builder.add1("permute", {values.weight({columns, inner}, inner)},
                                             {{"dims", List{1, 0}}});
  values.builder.add(values.draw.chance(70) ? "matmul" : "dense", {x, weight});
}

void add_nothing(RandomValues& values) {
  graph::Builder& builder = values.builder;
  const ValueId x = values.tensor();
  const Shape shape = values.shape(x);
  switch (values.draw.below(7)) {
    case 0:
      builder.add("reshape", {x}, {{"shape", dims(shape)}});
      break;
    case 1:
      builder.add("reshape", {builder.add1("reshape", {x}, {{"shape", List{shape.elements()}}})},
                  {{"shape", dims(shape)}});
      break;
    case 2:
      builder.add("slice", {x}, {{"begin", std::int64_t{0}}, {"end", shape[0]}});
      break;
    case 3:
      builder.add("relu", {builder.add1("relu", {x})});
      break;
    case 4:
      builder.add("broadcast_to", {x}, {{"shape", dims(shape)}});
      break;
    case 5:
      builder.add(values.draw.chance(50) ? "stack_columns" : "join_columns", {values.matrix()});
      break;
    default:
      builder.add(values.draw.chance(50) ? "sum" : "identity", {x});
  }
}

/// Rows from an index that is known, which may be all.
void add_known_rows(RandomValues& values) {
  const ValueId x = values.tensor();
  const std::int64_t rows = values.shape(x)[0];
  if (values.draw.chance(30) && values.renew(x)) {
    values.builder.add("replace_slice", {x, values.floats(values.shape(x)), number(values, 0)});
    return;
  }
  const std::int64_t taken = values.draw.between(std::min<std::int64_t>(rows, 1), rows),
                     begin = values.draw.between(0, rows - taken);
  const ValueId sum =
      values.builder.add1("index_sum", {number(values, begin + 1)}, {{"offset", std::int64_t{-1}}});
  values.builder.add("dynamic_slice", {x, sum}, {{"rows", taken}});
}

void add_constants(RandomValues& values) {
  graph::Builder& builder = values.builder;
  const ValueId x = values.tensor();
  const Shape shape = values.shape(x);
  const auto full = [&](const Shape& of) {
    return builder.add1("full", {},
                        {{"shape", dims(of)}, {"value", values.draw.of({-0.5, 0.0, 0.1, 2.0})}});
  };
  ValueId made = full(shape);
  switch (values.draw.below(4)) {
    case 0:
      made = builder.add1("relu", {made});
      break;
    case 1:
      made = builder.add1("mul", {made, full(shape)});
      break;
    case 2:
      made = builder.add1("add", {made, builder.add1("reshape", {full({shape.elements()})},
                                                     {{"shape", dims(shape)}})});
      break;
    default:
      made = builder.add1("broadcast_to", {full(Shape(List(dims(shape).size(), 1)))},
                          {{"shape", dims(shape)}});
  }
  builder.add("sum", {x, made});
}

}  // namespace

void add_needless(RandomValues& values) {
  using Add = void (*)(RandomValues&);
  static const std::vector<Add> all{
      add_again,   add_again,      add_permutations, add_transposed_product,
      add_nothing, add_known_rows, add_constants};
  values.draw.of(all)(values);
}

}  // namespace arenite::oracle
