#include "tests/oracle/random_attention.hpp"

namespace arenite::oracle {
namespace {

using graph::ValueId;
using List = std::vector<std::int64_t>;

void add_norm(RandomValues& values) {
  const ValueId x = values.tensor();
  const Shape row{values.shape(x).at(-1)};
  std::vector<ValueId> operands{x, values.floats(row)};
  const bool is_layer_norm = values.draw.chance(50);
  if (is_layer_norm) operands.push_back(values.floats(row));
  // A small eps magnifies what a row of zeros gets.
  values.builder.add(is_layer_norm ? "layer_norm" : "rms_norm", operands,
                     {{"eps", values.draw.of({1e-2, 0.1, 0.1})}});
}

void add_softmax(RandomValues& values) {
  const ValueId x = values.tensor();
  const std::int64_t last = values.shape(x).at(-1);
  switch (values.draw.below(5)) {
    case 0:
    case 1:
      values.builder.add(values.draw.chance(50) ? "softmax" : "log_softmax", {x});
      break;
    case 2:
      values.builder.add("sliced_softmax", {x}, {{"prefix", values.draw.between(0, last)}});
      break;
    default:
      values.builder.add("sliced_softmax", {x, values.index(last)});
  }
}

/// Numbers that are there already, or the elements of others in pairs.
ValueId complex(RandomValues& values) {
  const auto fits = [&](ValueId id) {
    const bool real =
        values.graph[id].type == DType::float32 || values.graph[id].type == DType::float64;
    return real && values.shape(id).rank() > 0 &&
           values.shape(id).elements() <= RandomValues::most_elements;
  };
  const auto is_complex = [&](ValueId id) { return fits(id) && values.shape(id).at(-1) == 2; };
  const auto is_even = [&](ValueId id) { return fits(id) && values.shape(id).elements() % 2 == 0; };
  if (values.draw.chance(40)) {
    if (const ValueId found = values.any(is_complex)) return found;
  }
  if (values.draw.chance(70)) {
    if (const ValueId found = values.any(is_even)) {
      const List pairs{values.shape(found).elements() / 2, 2};
      return values.builder.add1("reshape", {found}, {{"shape", pairs}});
    }
  }
  const auto size = [&] { return values.draw.of<std::int64_t>({1, 2, 3, 5, 17}); };
  const Shape of{size(), size(), size(), 2};
  return values.declare(values.draw.chance(20) ? DType::float64 : DType::float32, of, {});
}

void add_complex_mul(RandomValues& values) {
  const ValueId a = complex(values);
  const Shape of = values.shape(a);
  List dims(of.begin(), of.end());
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) {
    if (values.draw.chance(50)) dims[i] = 1;
  }
  // Of absolute value 1 at most: products of products must not grow without limit.
  const ValueId b = values.declare(values.graph[a].type, Shape(dims), {-0.7, 0.7});
  values.builder.add("complex_mul", {a, b}, {{"conjugate", values.draw.between(0, 1)}});
}

}  // namespace

void add_attention_op(RandomValues& values) {
  switch (values.draw.below(3)) {
    case 0:
      return add_norm(values);
    case 1:
      return add_softmax(values);
    default:
      return add_complex_mul(values);
  }
}

}  // namespace arenite::oracle
