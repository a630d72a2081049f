#include "codelets/testing.hpp"

#include <arenite/error.hpp>

#include <algorithm>

namespace arenite::codelets::testing {
namespace {

using List = std::vector<std::int64_t>;

/// Element (row, column) of what was put together, straight from the definition.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;

  float at(std::int64_t row, std::int64_t column) const {
    return values.at(static_cast<std::size_t>(row * columns + column));
  }
};

Matrix stacked(const std::vector<Matrix>& all, std::int64_t begin, std::int64_t end) {
  Matrix y{.columns = end - begin};
  for (const Matrix& x : all) {
    y.rows += x.rows;
    for (std::int64_t r = 0; r < x.rows; ++r) {
      for (std::int64_t c = begin; c < end; ++c) y.values.push_back(x.at(r, c));
    }
  }
  return y;
}

Matrix joined(const std::vector<Matrix>& all, std::int64_t begin, std::int64_t end) {
  Matrix y{.rows = end - begin};
  for (const Matrix& x : all) y.columns += x.columns;
  for (std::int64_t r = begin; r < end; ++r) {
    for (const Matrix& x : all) {
      for (std::int64_t c = 0; c < x.columns; ++c) y.values.push_back(x.at(r, c));
    }
  }
  return y;
}

TEST(Columns, PutMatricesTogether) {
  OpHarness h(7);
  std::uniform_int_distribution<std::int64_t> size(0, 40);
  std::uniform_int_distribution<int> terms(1, 5);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const bool stacks = round % 2 == 0, some = round % 3 != 0;
    const std::int64_t alike = size(h.engine());
    std::vector<ValueId> operands;
    std::vector<Matrix> matrices;
    for (int i = terms(h.engine()); i > 0; --i) {
      const std::int64_t other = size(h.engine());
      const Shape shape = stacks ? Shape{other, alike} : Shape{alike, other};
      operands.push_back(h.random("x" + std::to_string(round) + "." + std::to_string(i), shape));
      matrices.push_back({shape[0], shape[1], h.read<float>(operands.back())});
    }
    std::uniform_int_distribution<std::int64_t> bound(0, alike);
    const auto [begin, end] = std::minmax({bound(h.engine()), bound(h.engine())});
    graph::Attributes attributes;
    if (some) attributes.set(stacks ? "columns" : "rows", List{begin, end});
    const auto y = h.op(stacks ? "stack_columns" : "join_columns", operands, attributes).front();
    ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
    const Matrix expected =
        (stacks ? stacked : joined)(matrices, some ? begin : 0, some ? end : alike);
    EXPECT_EQ(h.graph()[y].shape, Shape({expected.rows, expected.columns}));
    EXPECT_EQ(h.read<float>(y), expected.values);
  }
}

TEST(Columns, SayWhatDoesNotFit) {
  OpHarness h;
  const auto a = h.declare("a", DType::float32, {2, 3}), b = h.declare("b", DType::float32, {4, 2}),
             c = h.declare("c", DType::int32, {2, 3}), d = h.declare("d", DType::float32, {2});
  const auto message = [&](const char* op, const std::vector<ValueId>& operands,
                           const graph::Attributes& attributes = {}) -> std::string {
    try {
      h.op(op, operands, attributes);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  for (const char* op : {"stack_columns", "join_columns"}) {
    EXPECT_PRED2(has, message(op, {a, c}), "int32") << op;
    EXPECT_PRED2(has, message(op, {a, d}), "[N, C]") << op;
    EXPECT_PRED2(has, message(op, {a, b}), "like the first, [2, 3]") << op;
  }
  EXPECT_PRED2(has, message("stack_columns", {a}, {{"columns", List{1, 4}}}),
               "columns=[1, 4]; expected none, or [begin, end) with 0 ≤ begin ≤ end ≤ 3, the "
               "columns of a [2, 3]");
  EXPECT_PRED2(has, message("join_columns", {a}, {{"rows", List{2, 1}}}), "rows=[2, 1]");
  EXPECT_PRED2(has, message("join_columns", {a}, {{"rows", List{1}}}), "rows=[1]");
}

}  // namespace
}  // namespace arenite::codelets::testing
