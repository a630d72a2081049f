#include "codelets/testing.hpp"

#include <utility>

namespace arenite::codelets::testing {
namespace {

using Doubles = std::vector<double>;

struct Sizes {
  std::int64_t batch, rows, inner, columns;  ///< batch −1: two matrices, 0: a vector and one
  bool transpose_a = false, transpose_b = false;

  bool is_vector() const { return batch == 0; }
  std::int64_t count() const { return std::max<std::int64_t>(batch, 1); }
  Shape shape(std::int64_t r, std::int64_t c, bool transposed) const {
    if (transposed) std::swap(r, c);
    return batch > 0 ? Shape{batch, r, c} : Shape{r, c};
  }
  Shape a() const { return is_vector() ? Shape{inner} : shape(rows, inner, transpose_a); }
  Shape b() const { return shape(inner, columns, transpose_b); }
  Shape c() const { return is_vector() ? Shape{columns} : shape(rows, columns, false); }
  graph::Attributes attributes() const {
    return {{"transpose_a", std::int64_t{transpose_a}}, {"transpose_b", std::int64_t{transpose_b}}};
  }
  std::string text() const {
    return to_string(a()) + (transpose_a ? "ᵀ · " : " · ") + to_string(b()) +
           (transpose_b ? "ᵀ" : "");
  }
};

/// The products one after the other, each element by itself.
Doubles reference(const Doubles& a, const Doubles& b, const Sizes& s) {
  Doubles c;
  const auto element = [](const Doubles& of, std::int64_t matrix, std::int64_t row,
                          std::int64_t column, std::int64_t rows, std::int64_t columns,
                          bool transposed) {
    const std::int64_t i = transposed ? column * rows + row : row * columns + column;
    return of[static_cast<std::size_t>(matrix * rows * columns + i)];
  };
  for (std::int64_t m = 0; m < s.count(); ++m) {
    for (std::int64_t i = 0; i < s.rows; ++i) {
      for (std::int64_t j = 0; j < s.columns; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < s.inner; ++p) {
          sum += element(a, m, i, p, s.rows, s.inner, s.transpose_a) *
                 element(b, m, p, j, s.inner, s.columns, s.transpose_b);
        }
        c.push_back(sum);
      }
    }
  }
  return c;
}

Doubles transposed(const Doubles& x, std::int64_t count, std::int64_t rows, std::int64_t columns) {
  Doubles t(x.size());
  for (std::int64_t m = 0; m < count; ++m) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        t[static_cast<std::size_t>((m * columns + c) * rows + r)] =
            x[static_cast<std::size_t>((m * rows + r) * columns + c)];
      }
    }
  }
  return t;
}

/// d(sum of g · c) by a and by b, in their own layouts.
std::pair<Doubles, Doubles> gradients(const Doubles& a, const Doubles& b, const Doubles& g,
                                      const Sizes& s) {
  const std::int64_t n = s.count();
  Sizes by_a{n, s.rows, s.columns, s.inner, false, !s.transpose_b},
      by_b{n, s.inner, s.rows, s.columns, !s.transpose_a, false};
  Doubles of_a = reference(g, b, by_a), of_b = reference(a, g, by_b);
  if (s.transpose_a) of_a = transposed(of_a, n, s.rows, s.inner);
  if (s.transpose_b) of_b = transposed(of_b, n, s.inner, s.columns);
  return {of_a, of_b};
}

template <class T>
ValueId random(OpHarness& h, const std::string& name, const Shape& shape) {
  const auto id = h.declare(name, dtype_of<T>, shape);
  std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (T& v : values) v = static_cast<T>(uniform(h.engine()));
  h.write(id, values);
  return id;
}

/// Forward and both gradients on every kernel, against double.
template <class T>
void check(OpHarness& h, const Sizes& s) {
  SCOPED_TRACE(s.text());
  const double tolerance = std::is_same_v<T, float> ? 3e-6 : 1e-14;
  const std::string tag = std::to_string(h.graph().value_count());
  const auto a = random<T>(h, "a" + tag, s.a()), b = random<T>(h, "b" + tag, s.b()),
             g = random<T>(h, "g" + tag, s.c());
  const Doubles as = as_doubles(h.read<T>(a)), bs = as_doubles(h.read<T>(b)),
                gs = as_doubles(h.read<T>(g));
  const auto c = h.op("matmul", {a, b}, s.attributes()).front();
  ASSERT_EQ(h.graph()[c].shape, s.c());
  ASSERT_EQ(h.graph()[c].type, dtype_of<T>);
  const Doubles expected = reference(as, bs, s);
  const auto [by_a, by_b] = gradients(as, bs, gs, s);
  const auto expect_same = [&](ValueId id, const Doubles& values, const Shape& shape) {
    ASSERT_EQ(h.graph()[id].shape, shape);
    if (!values.empty()) expect_close(h.read<T>(id), values, tolerance);
  };
  const auto names = h.cpu_kernels();
  EXPECT_EQ(names.back(), "plain");
  for (const std::string& kernel : names) {
    SCOPED_TRACE(kernel);
    ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
    expect_same(c, expected, s.c());
    const auto found = h.gradient({g}, {true, true}, kernel);
    expect_same(found[0], by_a, s.a());
    expect_same(found[1], by_b, s.b());
  }
}

/// All ways to read the operands that the ranks allow.
void check_all(OpHarness& h, Sizes s) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      s.transpose_a = transpose_a, s.transpose_b = transpose_b;
      if (s.is_vector() && transpose_a) continue;
      check<float>(h, s);
      if (s.count() * s.rows * s.inner * s.columns < 100000) check<double>(h, s);
    }
  }
}

TEST(Matmul, MatchesTheReferenceForNamedShapes) {
  OpHarness h(17);
  // Few and many rows, blocks of terms, copied tiles of b, whole tiles and rests.
  for (const Sizes& s : {Sizes{-1, 128, 784, 100},
                         {-1, 33, 300, 1030},
                         {-1, 32, 257, 1024},
                         {-1, 31, 129, 1100},
                         {-1, 1, 288, 768},
                         {-1, 4, 130, 96},
                         {-1, 5, 130, 96},
                         {-1, 300, 5, 1},
                         {-1, 1, 700, 1},
                         {-1, 1, 1, 1},
                         {-1, 48, 1, 48},
                         {-1, 65, 67, 71},
                         {3, 64, 32, 64},
                         {2, 1, 40, 50},
                         {4, 9, 17, 1},
                         {1, 7, 7, 7},
                         {0, 1, 288, 768},
                         {0, 1, 1, 1},
                         {0, 1, 300, 1}})
    check_all(h, s);
}

TEST(Matmul, MatchesTheReferenceForRandomShapes) {
  OpHarness h(19);
  std::uniform_int_distribution<int> batch(-1, 3), rows(1, 70), others(1, 150);
  for (int i = 0; i < 60; ++i) {
    Sizes s{batch(h.engine()), rows(h.engine()), others(h.engine()), others(h.engine())};
    if (s.is_vector()) s.rows = 1;
    check_all(h, s);
  }
}

TEST(Matmul, OfNothingIsNothingOrZeros) {
  OpHarness h(23);
  for (const Sizes& s : {Sizes{-1, 0, 3, 4},
                         {-1, 3, 0, 4},
                         {-1, 3, 4, 0},
                         {-1, 1, 0, 1},
                         {-1, 0, 0, 0},
                         {2, 3, 0, 4},
                         {2, 0, 3, 4},
                         {0, 1, 0, 4},
                         {0, 1, 4, 0}})
    check_all(h, s);
  const auto none = h.random("none", {0, 3, 4}), other = h.random("other", {0, 4, 5});
  const auto c = h.op("matmul", {none, other}).front();
  EXPECT_EQ(h.graph()[c].shape, Shape({0, 3, 5}));
  for (const std::string& kernel : h.cpu_kernels()) EXPECT_EQ(h.run(kernel), 0u) << kernel;
}

TEST(Matmul, GradientAgreesWithCentralDifferences) {
  OpHarness h;
  for (const Sizes& base : {Sizes{-1, 3, 5, 4}, {2, 3, 2, 4}, {0, 1, 5, 4}}) {
    for (const auto& [ta, tb] :
         {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
      Sizes s = base;
      s.transpose_a = ta, s.transpose_b = tb;
      if (s.is_vector() && ta) continue;
      SCOPED_TRACE(s.text());
      const std::string tag = std::to_string(h.graph().value_count());
      const auto a = h.random("a" + tag, s.a()), b = h.random("b" + tag, s.b()),
                 g = h.random("g" + tag, s.c());
      const Doubles as = as_doubles(h.read<float>(a)), bs = as_doubles(h.read<float>(b)),
                    gs = as_doubles(h.read<float>(g));
      h.op("matmul", {a, b}, s.attributes());
      const auto got = h.gradient({g}, {true, true});
      expect_close(h.read<float>(got[0]),
                   numeric_gradient([&](const Doubles& v) { return reference(v, bs, s); }, as, gs),
                   1e-6);
      expect_close(h.read<float>(got[1]),
                   numeric_gradient([&](const Doubles& v) { return reference(as, v, s); }, bs, gs),
                   1e-6);
    }
  }
}

TEST(Matmul, GradientIsOnlyOfWhatIsWanted) {
  OpHarness h;
  h.op("matmul", {h.random("a", {2, 3}), h.random("b", {3, 4})});
  const auto g = h.random("g", {2, 4});
  const std::size_t ops = h.graph().op_count();
  const auto gradients = h.gradient({g}, {false, true});
  EXPECT_FALSE(gradients[0]);
  EXPECT_EQ(h.graph().op_count(), ops + 1);
}

TEST(Matmul, SupportsTheFastKernelWhereTheMachineDoes) {
  OpHarness h;
  h.op("dense", {h.random("x", {64, 784}), h.random("w", {784, 512})});
  const bool fast = h.cpu_kernels().front() == "xsmm";
  h.op("matmul", {h.random("a", {3, 7}), h.random("b", {7, 10})});
  EXPECT_EQ(h.cpu_kernels().front() == "xsmm", fast);
  h.op("matmul", {h.random("row", {288}), h.random("wide", {288, 768})});
  EXPECT_EQ(h.cpu_kernels().front() == "xsmm", fast);
  h.op("matmul", {h.random("batch", {5, 8, 64}), h.random("keys", {5, 8, 64})},
       {{"transpose_b", std::int64_t{1}}});
  EXPECT_EQ(h.cpu_kernels().front() == "xsmm", fast);
}

TEST(Matmul, CountsItsWork) {
  OpHarness h;
  h.op("matmul", {h.random("a", {5, 784, 64}), h.random("b", {5, 784, 512})},
       {{"transpose_a", std::int64_t{1}}});
  const OpView op(h.graph(), h.graph()[graph::OpId(0)]);
  const graph::Cost cost = op.op().definition->cost(op);
  EXPECT_DOUBLE_EQ(cost.flops, 2.0 * 5 * 64 * 784 * 512);
  EXPECT_DOUBLE_EQ(cost.bytes, 4.0 * 5 * (64 * 784 + 784 * 512 + 64 * 512));
}

TEST(Matmul, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto scalar = h.random("scalar", {}), row = h.random("row", {3}), a = h.random("a", {2, 3}),
             b = h.random("b", {4, 5}), batch = h.random("batch", {6, 2, 3}),
             other = h.random("other", {7, 3, 5}), image = h.random("image", {1, 2, 3, 4});
  const auto integers = h.declare("integers", DType::int32, {2, 3}),
             doubles = h.declare("doubles", DType::float64, {3, 4});
  const auto refuse = [&](ValueId x, ValueId y, std::int64_t transpose_a, std::int64_t transpose_b,
                          const std::string& message) {
    expect_error(
        [&] {
          h.op("matmul", {x, y}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
        },
        "matmul: " + message);
  };
  refuse(integers, b, 0, 0, "operand 'a' (integers) of type int32; expected float32 or float64");
  refuse(a, doubles, 0, 0, "operand 'b' (doubles) of type float64; expected float32");
  refuse(scalar, b, 0, 0,
         "operand 'a' (scalar) of shape []; expected rank 1 to 3, [n], [m, n] or [b, m, n]");
  refuse(image, b, 0, 0,
         "operand 'a' (image) of shape [1, 2, 3, 4]; expected rank 1 to 3, [n], [m, n] or "
         "[b, m, n]");
  refuse(a, b, 0, 0, "operand 'b' (b) of shape [4, 5]; expected [3, 5], [n, k] for a [2, 3]");
  refuse(a, b, 1, 0,
         "operand 'b' (b) of shape [4, 5]; expected [2, 5], [n, k] for a [2, 3] transposed");
  refuse(a, b, 0, 1, "operand 'b' (b) of shape [4, 5]; expected [4, 3], [k, n] for a [2, 3]");
  refuse(row, b, 0, 0, "operand 'b' (b) of shape [4, 5]; expected [3, 5], [n, k] for a [3]");
  refuse(row, row, 0, 0, "operand 'b' (row) of shape [3]; expected rank 2, [n, k] for a [3]");
  refuse(batch, b, 0, 0,
         "operand 'b' (b) of shape [4, 5]; expected rank 3, [b, n, k] for a [6, 2, 3]");
  refuse(a, other, 0, 1,
         "operand 'b' (other) of shape [7, 3, 5]; expected rank 2, [k, n] for a [2, 3]");
  refuse(batch, other, 0, 0,
         "operand 'b' (other) of shape [7, 3, 5]; expected [6, 3, 5], [b, n, k] for a [6, 2, 3]");
  refuse(batch, other, 1, 1,
         "operand 'b' (other) of shape [7, 3, 5]; expected [6, 3, 2], [b, k, n] for a [6, 2, 3] "
         "transposed");
  refuse(row, b, 1, 0, "transpose_a=1 for a [3]; expected 0, as a vector has one axis only");
  refuse(a, b, 2, 0, "transpose_a=2; expected 0 or 1");
  refuse(a, b, 0, -1, "transpose_b=-1; expected 0 or 1");
}

}  // namespace
}  // namespace arenite::codelets::testing
