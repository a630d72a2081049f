// Formulas of rows: norms and softmax.
#include <arenite/expr/text.hpp>

#include "codelets/testing.hpp"
#include "src/expr/formulas.hpp"

#include <cstring>
#include <limits>

namespace arenite::codelets::testing {
namespace {

using Values = std::vector<double>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

/// What a formula makes of a row.
using Row = std::function<Values(const Values& x, const std::vector<Values>& others)>;

struct Formula {
  const char* name;
  std::size_t operands;
  Row row;
};

/// 1 / the square root of the mean square + eps.
double scale(const Values& x, double eps) {
  double squares = 0;
  for (const double one : x) squares += one * one / static_cast<double>(x.size());
  return 1 / std::sqrt(squares + eps);
}

constexpr double eps = 1e-5;

Values rms_norm(const Values& x, const std::vector<Values>& others) {
  Values y = x;
  const double by = scale(x, eps);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] *= by * others[0][i];
  return y;
}

Values layer_norm(const Values& x, const std::vector<Values>& others) {
  Values y = x;
  double mean = 0;
  for (const double one : x) mean += one / static_cast<double>(x.size());
  for (double& one : y) one -= mean;
  const double by = scale(y, eps);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = y[i] * by * others[0][i] + others[1][i];
  return y;
}

Values log_softmax(const Values& x, const std::vector<Values>&) {
  Values y = x;
  const double largest = x.empty() ? 0 : *std::ranges::max_element(x);
  double sum = 0;
  for (const double one : x) sum += std::exp(one - largest);
  for (double& one : y) one -= largest + std::log(sum);
  return y;
}

Values softmax(const Values& x, const std::vector<Values>& others) {
  Values y = log_softmax(x, others);
  for (double& one : y) one = std::exp(one);
  return y;
}

const std::vector<Formula>& formulas() {
  static const std::vector<Formula> all{{"layer_norm", 3, layer_norm},
                                        {"log_softmax", 1, log_softmax},
                                        {"rms_norm", 2, rms_norm},
                                        {"softmax", 1, softmax}};
  return all;
}

Values reference(const Formula& formula, const Values& x, const std::vector<Values>& others,
                 std::int64_t length) {
  Values all;
  for (auto row = x.begin(); row != x.end(); row += length) {
    const Values y = formula.row({row, row + length}, others);
    all.insert(all.end(), y.begin(), y.end());
  }
  return all;
}

std::vector<Shape> shapes(OpHarness& h) {
  std::vector<Shape> all{{1},    {17},   {3, 1},      {64, 512},       {2, 1000},
                         {0, 5}, {4, 0}, {100, 2, 3}, {1, 2, 3, 4, 33}};
  std::uniform_int_distribution<int> size(1, 9), length(1, 90);
  for (int i = 0; i < 40; ++i) {
    all.push_back(i % 2 == 0 ? Shape{size(h.engine()), length(h.engine())}
                             : Shape{size(h.engine()), size(h.engine()), length(h.engine())});
  }
  return all;
}

struct Case {
  std::vector<ValueId> operands;
  ValueId y;
  Values x;
  std::vector<Values> others;

  Case(OpHarness& h, const Formula& formula, const Shape& shape, const std::string& tag) {
    for (std::size_t i = 0; i < formula.operands; ++i)
      operands.push_back(
          h.random(tag + "." + std::to_string(i), i == 0 ? shape : Shape{shape.at(-1)}));
    y = h.op(formula.name, operands).front();
    x = as_doubles(h.read<float>(operands[0]));
    for (std::size_t i = 1; i < operands.size(); ++i)
      others.push_back(as_doubles(h.read<float>(operands[i])));
  }
};

TEST(MapOfRows, MatchesTheReferenceByEachKernel) {
  OpHarness h(3);
  int number = 0;
  for (const Shape& shape : shapes(h)) {
    for (const Formula& formula : formulas()) {
      SCOPED_TRACE(formula.name + (" of " + to_string(shape)));
      const Case one(h, formula, shape, "a" + std::to_string(number++));
      const Values expected = reference(formula, one.x, one.others, shape.at(-1));
      for (const std::string& kernel : h.cpu_kernels()) {
        ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
        // Logarithms are as exact as what is subtracted there.
        const auto found = h.read<float>(one.y);
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_NEAR(static_cast<double>(found[i]), expected[i],
                      2e-6 * std::max(1.0, std::fabs(expected[i])));
      }
    }
  }
}

/// Of gradients and those of several results, too.
TEST(MapOfRows, MakesTheSameBitsInOneLoop) {
  int loops = 0;
  for (const expr::Formula& formula : expr::formulas()) {
    for (const std::int64_t length : {64, 77, 1000}) {
      if (!formula.is_of_rows) continue;
      SCOPED_TRACE(std::string(formula.name) + " of " + std::to_string(length));
      OpHarness h(static_cast<unsigned>(length));
      std::vector<ValueId> operands;
      for (const std::string& name : formula.operands) {
        const bool is_one_row = name == "weight" || name == "bias";
        operands.push_back(h.random(name, is_one_row ? Shape{length} : Shape{3, length}));
      }
      const auto made = h.op("reduce", operands,
                             {{"axes", std::vector<std::int64_t>{-1}},
                              {"expression", expr::print(formula.standard(expr::Type::float32))}});
      std::vector<std::vector<float>> expected;
      h.run("tiles");
      for (const ValueId one : made) expected.push_back(h.read<float>(one));
      h.run("fused");
      for (std::size_t r = 0; r < made.size(); ++r) {
        const auto found = h.read<float>(made[r]);
        EXPECT_EQ(std::memcmp(found.data(), expected[r].data(), found.size() * sizeof(float)), 0);
      }
      ++loops;
    }
  }
  EXPECT_GE(loops, 20);
}

/// Of one loop too: eps is a number that it is given.
TEST(MapOfRows, TakesNumbersAtRunTime) {
  for (const std::int64_t length : {5, 70, 128}) {
    OpHarness h(static_cast<unsigned>(length));
    const auto x = h.random("x", {3, length}), weight = h.random("w", {length});
    for (const double number : {0.0, 1e-5, 0.5, 1.0, 2.5}) {
      const auto y = h.op("rms_norm", {x, weight}, {{"eps", number}}).front();
      const Values input = as_doubles(h.read<float>(x)), w = as_doubles(h.read<float>(weight));
      Values expected;
      for (std::size_t i = 0; i < input.size(); ++i) {
        const auto row = input.begin() + static_cast<std::ptrdiff_t>(i) / length * length;
        expected.push_back(input[i] * scale({row, row + length}, number) *
                           w[i % static_cast<std::size_t>(length)]);
      }
      const auto kernels = h.cpu_kernels();
      EXPECT_EQ(std::ranges::count(kernels, "fused"), length < 64 ? 0 : 1) << number;
      for (const std::string& kernel : kernels) {
        ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
        expect_close(h.read<float>(y), expected, 1e-6);
      }
    }
  }
}

TEST(MapOfRows, GradientsAgreeWithCentralDifferences) {
  OpHarness h(5);
  int number = 0;
  for (const Formula& formula : formulas()) {
    for (const Shape& shape : {Shape{7}, Shape{1, 7}, Shape{3, 2, 7}, Shape{4, 70}}) {
      SCOPED_TRACE(formula.name + (" of " + to_string(shape)));
      const std::string tag = "g" + std::to_string(number++);
      const Case one(h, formula, shape, tag);
      h.run("tiles");
      const auto g = h.random(tag, shape);
      const auto found = h.gradient({g}, std::vector<bool>(formula.operands, true));
      const Values gradient = as_doubles(h.read<float>(g));
      const auto of_x = [&](const Values& x) {
        return reference(formula, x, one.others, shape.at(-1));
      };
      expect_close(h.read<float>(found[0]), numeric_gradient(of_x, one.x, gradient), 4e-6);
      for (std::size_t i = 0; i < one.others.size(); ++i) {
        const auto of_other = [&](const Values& other) {
          std::vector<Values> others = one.others;
          others[i] = other;
          return reference(formula, one.x, others, shape.at(-1));
        };
        expect_close(h.read<float>(found[i + 1]),
                     numeric_gradient(of_other, one.others[i], gradient), 4e-6);
      }
    }
  }
}

/// That of a weight needs no bytes but for a scale of each row.
TEST(MapOfRows, SumsTheGradientOfAWeightAsItIsMade) {
  OpHarness h;
  const Case one(h, formulas()[2], {50, 30}, "x");
  h.run("tiles");
  const auto g = h.random("g", {50, 30});
  const auto found = h.gradient({g}, {false, true});
  const graph::Graph& graph = h.graph();
  const graph::Op& sum = graph[graph[found[1]].producer];
  const bool is_shaped = sum.name() == "reshape";
  const graph::Op& made = is_shaped ? graph[graph[sum.operands[0]].producer] : sum;
  EXPECT_EQ(made.name(), "reduce");
  for (ValueId operand : made.operands) {
    const graph::Value& value = graph[operand];
    EXPECT_TRUE(!value.producer || value.shape == (Shape{50, 1})) << value.name;
  }
}

TEST(MapOfRows, SumsManyRowsAndLongOnesAccurately) {
  OpHarness h(7);
  for (const Shape& shape : {Shape{20000, 3}, Shape{2, 200001}}) {
    const std::string tag = std::to_string(shape[0]);
    const auto x = h.random("x" + tag, shape, 0.5, 1),
               weight = h.random("w" + tag, {shape.at(-1)}, 0.5, 1),
               g = h.random("g" + tag, shape, 0.5, 1);
    const auto y = h.op("rms_norm", {x, weight}).front();
    h.run("tiles");
    const Values input = as_doubles(h.read<float>(x)), w = as_doubles(h.read<float>(weight)),
                 gradient = as_doubles(h.read<float>(g));
    expect_close(h.read<float>(y), reference(formulas()[2], input, {w}, shape.at(-1)), 6e-7);
    Values dweight(w.size(), 0);
    for (std::size_t from = 0; from < input.size(); from += w.size()) {
      const auto row = input.begin() + static_cast<std::ptrdiff_t>(from);
      const double by = scale({row, row + shape.at(-1)}, eps);
      for (std::size_t i = 0; i < w.size(); ++i)
        dweight[i] += gradient[from + i] * input[from + i] * by;
    }
    expect_close(h.read<float>(h.gradient({g}, {false, true})[1]), dweight, 6e-7);
  }
}

TEST(MapOfRows, NaNAndInfinityStayInTheirRow) {
  OpHarness h;
  const auto x = h.declare("x", DType::float32, {3, 2}),
             weight = h.declare("w", DType::float32, {2}), g = h.random("g", {3, 2});
  h.write<float>(x, {1, nan, 3, -4, 1, inf});
  h.write<float>(weight, {1, 1});
  const auto y = h.op("rms_norm", {x, weight}).front();
  h.run("tiles");
  const auto out = h.read<float>(y);
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  EXPECT_TRUE(std::isfinite(out[2]) && std::isfinite(out[3]));
  EXPECT_EQ(out[4], 0);
  EXPECT_TRUE(std::isnan(out[5]));
  const auto dx = h.read<float>(h.gradient({g}, {true, false})[0]);
  EXPECT_TRUE(std::isnan(dx[0]) && std::isnan(dx[1]));
  EXPECT_TRUE(std::isfinite(dx[2]) && std::isfinite(dx[3]));
}

TEST(MapOfRows, SoftmaxIsStable) {
  OpHarness h;
  const auto x = h.declare("x", DType::float32, {4, 3});
  h.write<float>(x, {1e30f, 1e30f, -1e30f, -5000, -5000, -5000, 88, 188, -inf, -inf, 0, -inf});
  const auto y = h.op("softmax", {x}).front();
  h.run("tiles");
  expect_close(h.read<float>(y),
               std::vector{0.5, 0.5, 0.0, 1 / 3.0, 1 / 3.0, 1 / 3.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0},
               1e-6);
}

TEST(MapOfRows, RunsInPlace) {
  OpHarness h;
  int number = 0;
  for (const Formula& formula : formulas()) {
    for (const Shape& shape : {Shape{5}, Shape{4, 33}, Shape{2, 3, 16}, Shape{5, 100}}) {
      const std::string tag = "x" + std::to_string(number++);
      const Case apart(h, formula, shape, tag);
      for (const std::string& kernel : h.cpu_kernels()) {
        SCOPED_TRACE(formula.name + (" of " + to_string(shape)) + " by " + kernel);
        const auto alone = h.op(formula.name, apart.operands).front();
        h.run(kernel);
        const auto y = h.op(formula.name, apart.operands).front();
        h.in_place(0, 0);
        h.run(kernel);
        EXPECT_EQ(h.read<float>(y), h.read<float>(alone));
        h.write(apart.operands[0], std::vector<float>(apart.x.begin(), apart.x.end()));
      }
    }
  }
}

TEST(MapOfRows, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), w = h.random("w", {3}), two = h.random("two", {2}),
             s = h.random("s", {});
  const auto d = h.declare("d", DType::float64, {3});
  const auto norm = [&](ValueId of, ValueId weight, double number = 1e-5) {
    h.op("rms_norm", {of, weight}, {{"eps", number}});
  };
  expect_error([&] { norm(d, w); },
               "rms_norm: operand 'weight' (w) of type float32; expected float64");
  expect_error([&] { norm(s, w); },
               "rms_norm: operand 'x' (s) of shape []; expected rank 1 or more, [..., C]");
  expect_error([&] { norm(x, two); },
               "rms_norm: operand 'weight' (two) of shape [2]; expected a shape that fits [2, 3] "
               "from the last axis on, where a size of 1 is repeated");
  expect_error(
      [&] {
        norm(h.random("one", {2, 1}), w);
      },
      "rms_norm: operands that are repeated to [2, 3]; expected [2, 1], the shape of 'x'");
  expect_error([&] { norm(x, w, inf); },
               "rms_norm: eps=inf; expected a finite number of at least 0");
  expect_error([&] { norm(x, w, -0.5); },
               "rms_norm: eps=-0.5; expected a finite number of at least 0");
  expect_error([&] { norm(x, w, std::numeric_limits<double>::quiet_NaN()); },
               "rms_norm: eps=nan; expected a finite number of at least 0");
}

}  // namespace
}  // namespace arenite::codelets::testing
