#include "tests/oracle/random_products.hpp"

#include <numeric>

namespace arenite::oracle {
namespace {

using graph::ValueId;

/// A float32 vector that is there, or a new one.
ValueId vector(RandomValues& values) {
  const ValueId found = values.any([&](ValueId id) {
    return values.graph[id].type == DType::float32 && values.shape(id).rank() == 1 &&
           values.shape(id).elements() <= 1000;
  });
  return found ? found : values.floats({values.draw.between(1, 20)});
}

/// The rows of images as a batch of matrices.
ValueId batch(RandomValues& values) {
  const ValueId image = values.image();
  const Shape of = values.shape(image);
  return values.builder.add1("reshape", {image},
                             {{"shape", std::vector<std::int64_t>{of[0], of[1] * of[2], of[3]}}});
}

}  // namespace

void add_product(RandomValues& values) {
  Draw& draw = values.draw;
  const std::size_t kind = draw.below(4);
  const ValueId a = kind == 0 ? vector(values) : kind == 1 ? batch(values) : values.matrix();
  const Shape of = values.shape(a);
  const std::int64_t transpose_a = of.rank() == 1 ? 0 : draw.between(0, 1),
                     transpose_b = draw.between(0, 1);
  const std::int64_t inner = of.at(transpose_a == 1 ? -2 : -1),
                     columns = draw.of<std::int64_t>({1, 3, 7, 10, 50});
  std::vector<std::int64_t> sizes{inner, columns};
  if (transpose_b == 1) std::swap(sizes[0], sizes[1]);
  if (of.rank() == 3) sizes.insert(sizes.begin(), of[0]);
  const ValueId b = values.weight(Shape(sizes), std::max<std::int64_t>(inner, 1));
  values.builder.add("matmul", {a, b},
                     {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

void add_permutation(RandomValues& values) {
  const ValueId x = values.any([&](ValueId id) {
    return values.graph[id].type != DType::uint8 &&
           values.shape(id).elements() <= RandomValues::most_elements;
  });
  if (!x) return;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(values.shape(x).rank()));
  std::iota(dims.begin(), dims.end(), 0);
  for (std::size_t i = dims.size(); i > 1; --i) std::swap(dims[i - 1], dims[values.draw.below(i)]);
  values.builder.add("permute", {x}, {{"dims", dims}});
}

void add_lanes_dense(RandomValues& values) {
  Draw& draw = values.draw;
  const ValueId x = values.matrix();
  const std::int64_t inputs = values.shape(x)[1], outputs = draw.between(1, 5),
                     more = draw.between(1, 3);
  const std::int64_t n = values.shape(x)[0];
  const std::vector<ValueId> operands{x, values.floats({n, outputs}), values.floats({more, inputs}),
                                      values.floats({more, outputs})};
  graph::Attributes attributes;
  if (draw.chance(40)) {
    const std::int64_t begin = draw.between(0, inputs - 1);
    attributes.set("rows", std::vector<std::int64_t>{begin, draw.between(begin + 1, inputs)});
  }
  values.builder.add("dense_grad_weight", operands, attributes);
}

void add_dense_to_relu(RandomValues& values) {
  Draw& draw = values.draw;
  const ValueId g = values.matrix();
  const std::int64_t n = values.shape(g)[0], outputs = values.shape(g)[1],
                     inputs = draw.between(1, 20);
  values.builder.add("dense_grad_input_relu",
                     {g, values.floats({inputs, outputs}), values.floats({n, inputs})});
}

void add_columns(RandomValues& values) {
  Draw& draw = values.draw;
  const ValueId x = values.matrix();
  const std::int64_t rows = values.shape(x)[0], columns = values.shape(x)[1];
  const bool stacks = draw.chance(50);
  std::vector<ValueId> operands{x};
  for (std::int64_t more = draw.between(0, 2); more > 0; --more) {
    const std::int64_t size = draw.between(1, 4);
    operands.push_back(values.floats(stacks ? Shape{size, columns} : Shape{rows, size}));
  }
  const std::int64_t along = stacks ? columns : rows, begin = draw.between(0, along - 1);
  graph::Attributes attributes;
  if (draw.chance(60))
    attributes.set(stacks ? "columns" : "rows",
                   std::vector<std::int64_t>{begin, draw.between(begin + 1, along)});
  values.builder.add(stacks ? "stack_columns" : "join_columns", operands, attributes);
}

void add_view(RandomValues& values) {
  Draw& draw = values.draw;
  graph::Builder& builder = values.builder;
  const ValueId x = values.any([&](ValueId id) { return values.shape(id).rank() > 0; });
  if (!x) return;
  const Shape of = values.shape(x);
  const std::int64_t rows = of[0];
  switch (draw.below(4)) {
    case 0:
      builder.add("flatten", {x});
      break;
    case 1:
      builder.add("reshape", {x}, {{"shape", std::vector<std::int64_t>{of.elements()}}});
      break;
    default: {
      const std::int64_t begin = draw.between(0, std::max<std::int64_t>(0, rows - 1)),
                         end = draw.between(std::min(begin + 1, rows), rows);
      // An empty one now and then.
      builder.add("slice", {x}, {{"begin", begin}, {"end", draw.chance(10) ? begin : end}});
    }
  }
}

}  // namespace arenite::oracle
