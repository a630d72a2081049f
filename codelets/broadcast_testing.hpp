// Shapes to broadcast between, and what a broadcast means. For tests only.
#pragma once

#include "codelets/testing.hpp"

namespace arenite::codelets::testing {

/// Two shapes that fit each other: `part` has size 1 along some of the axes of `whole`.
struct Pattern {
  Shape whole, part;
};

/// Every choice of repeated axes for every rank, in small sizes, some of them 1, a few 0.
inline std::vector<Pattern> patterns(std::mt19937& random) {
  std::uniform_int_distribution<int> size(1, 6), percent(0, 99);
  std::vector<Pattern> all;
  for (int rank = 0; rank <= Shape::max_rank; ++rank) {
    for (unsigned repeated = 0; repeated < 1u << rank; ++repeated) {
      std::vector<std::int64_t> whole, part;
      for (int axis = 0; axis < rank; ++axis) {
        // Large ranks would have too many elements.
        const int least = percent(random) < 2 ? 0 : 1;
        whole.push_back(std::min(least * size(random), axis < 4 ? 6 : 3));
        part.push_back((repeated >> axis & 1u) != 0 ? 1 : whole.back());
      }
      all.push_back({Shape(whole), Shape(part)});
    }
  }
  return all;
}

/// Where in `part` element `i` of `whole` comes from, or goes to.
inline std::size_t source(const Shape& whole, const Shape& part, std::size_t i) {
  std::size_t at = 0, step = 1;
  for (int axis = whole.rank(); axis-- > 0;) {
    const auto size = static_cast<std::size_t>(whole[axis]);
    if (part[axis] != 1) at += i % size * step;
    step *= static_cast<std::size_t>(part[axis]);
    i /= size;
  }
  return at;
}

inline std::vector<std::int64_t> dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// A name that no value of the graph has.
inline std::string fresh(OpHarness& h) { return "v" + std::to_string(h.graph().value_count()); }

inline int halo(OpHarness& h) { return std::uniform_int_distribution<int>(0, 2)(h.engine()); }

/// Uniform in [-1, 1).
template <class T>
ValueId random_value(OpHarness& h, const Shape& shape, int with_halo = 0) {
  const ValueId id = h.declare(fresh(h), dtype_of<T>, shape, with_halo);
  std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  std::uniform_real_distribution<T> uniform(-1, 1);
  for (T& v : values) v = uniform(h.engine());
  h.write(id, values);
  return id;
}

/// |a − e| ≤ tolerance · max(1, |e|) for each element by itself; NaN fails.
template <class T>
void expect_each_close(const std::vector<T>& actual, const std::vector<double>& expected,
                       double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(actual[i]), expected[i],
                tolerance * std::max(1.0, std::fabs(expected[i])))
        << i;
  }
}

}  // namespace arenite::codelets::testing
