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

}  // namespace arenite::oracle
