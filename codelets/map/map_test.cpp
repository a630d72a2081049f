// Maps against the scalar evaluator, element by element and to the bit, and against formulas.
#include "codelets/testing.hpp"

#include <arenite/expr/text.hpp>
#include <arenite/graph/verify.hpp>

#include "codelets/map/map.hpp"
#include "codelets/registry.hpp"
#include "src/expr/random_expression.hpp"
#include "src/expr/scalar.hpp"

namespace arenite::codelets::testing {
namespace {

using expr::Expression;
using expr::Type;

DType stored_as(Type type) {
  constexpr DType types[] = {DType::uint8, DType::uint8,   DType::int32,
                             DType::int64, DType::float32, DType::float64};
  return types[static_cast<std::size_t>(type)];
}

/// The element of a value that is repeated to `whole`, at the whole's element i.
std::int64_t seen_at(const Shape& whole, const Shape& part, std::int64_t i) {
  std::int64_t at = 0, step = 1;
  for (int axis = whole.rank(); axis-- > 0; i /= whole[axis]) {
    const int own = axis - (whole.rank() - part.rank());
    if (own < 0) continue;
    if (part[own] != 1) at += i % whole[axis] * step;
    step *= part[own];
  }
  return at;
}

/// Not in the process's table by itself yet.
const bool registered = [] {
  Registry registry{operators(), kernels()};
  register_map(registry);
  return true;
}();

struct Given {
  ValueId id;
  Shape shape;
  std::vector<std::uint64_t> payloads;
};

class RandomMap {
 public:
  explicit RandomMap(unsigned seed) : engine_(seed) {}

  void run() {
    draw_whole();
    expr::testing::RandomExpression random(static_cast<unsigned>(engine_()),
                                           {.exact = true, .axes = whole_.rank(), .stored = true});
    const Expression formula = random.make();
    std::vector<ValueId> operands;
    for (const Type type : formula.operands()) {
      given_.push_back(operand(type, operands.empty(), random));
      operands.push_back(given_.back().id);
    }
    SCOPED_TRACE(expr::print(formula) + " on " + to_string(whole_));
    const auto results = harness_.op("map", operands, {{map_expression, expr::print(formula)}});
    const int halo = can_have_halo() && pick(4) == 0 ? 1 : 0;
    for (const ValueId result : results) {
      if (halo > 0) harness_.set_halo(result, halo);
    }
    lay_in_place(results);
    harness_.run("tiles");
    for (std::size_t r = 0; r < results.size(); ++r) compare(formula, results[r], r);
    for (const ValueId result : results) {
      EXPECT_TRUE(halo == 0 || halo_is_zero(result));
    }
  }

 private:
  int pick(int below) { return static_cast<int>(engine_() % static_cast<unsigned>(below)); }

  void draw_whole() {
    constexpr std::int64_t sizes[] = {1, 2, 3, 5, 16, 17, 63, 130, 511, 600};
    std::vector<std::int64_t> dims;
    std::int64_t elements = 1;
    for (int i = pick(6); i > 0; --i) {
      const std::int64_t size = sizes[pick(10)];
      dims.push_back(elements * size > 20000 ? 1 : size);
      elements *= dims.back();
    }
    if (!dims.empty() && pick(20) == 0)
      dims[static_cast<std::size_t>(pick(static_cast<int>(dims.size())))] = 0;
    whole_ = Shape(dims);
  }

  bool can_have_halo() const { return whole_.rank() == 4 && whole_.elements() > 0; }

  /// The first one has the whole shape; of others any size may be 1, and the first ones missing.
  Given operand(Type type, bool whole, expr::testing::RandomExpression& random) {
    std::vector<std::int64_t> dims(whole_.begin(), whole_.end());
    if (!whole && pick(2) == 0) {
      for (std::int64_t& size : dims) size = pick(2) == 0 ? 1 : size;
      if (pick(3) == 0)
        dims.erase(dims.begin(), dims.begin() + pick(static_cast<int>(dims.size()) + 1));
    }
    Given made;
    made.shape = Shape(dims);
    const int halo = made.shape == whole_ && can_have_halo() && pick(4) == 0 ? 2 : 0;
    made.id =
        harness_.declare("x" + std::to_string(given_.size()), stored_as(type), made.shape, halo);
    for (std::int64_t i = 0; i < made.shape.elements(); ++i)
      made.payloads.push_back(random.payload(type));
    with_type(type, [&]<class T>(T) {
      std::vector<T> values;
      for (const std::uint64_t payload : made.payloads)
        values.push_back(expr::value_of<T>(payload));
      harness_.write(made.id, values);
    });
    return made;
  }

  template <class F>
  static void with_type(Type type, F f) {
    if (type == Type::uint8) return f(std::uint8_t{});
    if (type == Type::int32) return f(std::int32_t{});
    if (type == Type::int64) return f(std::int64_t{});
    if (type == Type::float32) return f(float{});
    f(double{});
  }

  /// Each result in some operand's bytes, where they are alike.
  void lay_in_place(const std::vector<ValueId>& results) {
    const graph::Graph& graph = harness_.graph();
    std::set<std::size_t> taken;
    for (std::size_t r = 0; r < results.size(); ++r) {
      for (std::size_t i = 0; i < given_.size(); ++i) {
        const graph::Value &from = graph[results[r]], &into = graph[given_[i].id];
        if (pick(2) == 0 || taken.contains(i) || from.shape != into.shape ||
            size_of(from.type) != size_of(into.type) || !(from.layout == into.layout))
          continue;
        harness_.in_place(r, i);
        taken.insert(i);
        break;
      }
    }
  }

  void compare(const Expression& formula, ValueId result, std::size_t number) {
    const Type type = formula.result_type(number);
    with_type(type, [&]<class T>(T) {
      const std::vector<T> made = harness_.read<T>(result);
      for (std::int64_t i = 0; i < whole_.elements(); ++i) {
        std::vector<std::uint64_t> operands;
        for (const Given& one : given_)
          operands.push_back(one.payloads[static_cast<std::size_t>(seen_at(whole_, one.shape, i))]);
        std::vector<std::int64_t> indices(static_cast<std::size_t>(whole_.rank()));
        for (std::int64_t axis = whole_.rank(), left = i; axis-- > 0;
             left /= whole_[static_cast<int>(axis)])
          indices[static_cast<std::size_t>(axis)] = left % whole_[static_cast<int>(axis)];
        const std::uint64_t expected = expr::evaluate(formula, operands, indices)[number],
                            found = expr::payload_of(made[static_cast<std::size_t>(i)]);
        ASSERT_TRUE(expr::testing::same_bits(type, found, expected))
            << "result " << number << ", element " << i << ": " << std::hex << found
            << " instead of " << expected;
      }
    });
  }

  bool halo_is_zero(ValueId id) {
    bool is_zero = false;
    const DType type = harness_.graph()[id].type;
    if (type == DType::uint8) is_zero = harness_.halo_is_zero<std::uint8_t>(id);
    if (type == DType::int32) is_zero = harness_.halo_is_zero<std::int32_t>(id);
    if (type == DType::int64) is_zero = harness_.halo_is_zero<std::int64_t>(id);
    if (type == DType::float32) is_zero = harness_.halo_is_zero<float>(id);
    if (type == DType::float64) is_zero = harness_.halo_is_zero<double>(id);
    return is_zero;
  }

  std::mt19937_64 engine_;
  OpHarness harness_;
  Shape whole_;
  std::vector<Given> given_;
};

TEST(Map, IsTheExpressionToTheBit) {
  for (unsigned seed = 0; seed < 600 && !HasFailure(); ++seed) RandomMap(seed).run();
}

TEST(Map, HasSeveralResultsOfSeveralTypes) {
  OpHarness h;
  const ValueId x = h.random("x", {3, 700});
  const auto made =
      h.op("map", {x}, {{map_expression, "a = $1 * 2; yield a, int32(a * 100), uint8($1 > 0)"}});
  h.run("tiles");
  const auto values = h.read<float>(x), doubled = h.read<float>(made[0]);
  const auto hundreds = h.read<std::int32_t>(made[1]);
  const auto above = h.read<std::uint8_t>(made[2]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(doubled[i], values[i] * 2);
    EXPECT_EQ(hundreds[i], static_cast<std::int32_t>(values[i] * 2 * 100));
    EXPECT_EQ(above[i], values[i] > 0 ? 1 : 0);
  }
}

TEST(Map, GradientsAreOfWhatWasRepeated) {
  struct Shapes {
    Shape x, b;
  };
  for (const Shapes& shapes :
       {Shapes{{4, 6}, {6}}, Shapes{{4, 6}, {4, 1}}, Shapes{{2, 3, 4}, {1, 3, 1}}, Shapes{{5}, {}},
        Shapes{{2, 6}, {2, 6}}}) {
    const Shape &x_shape = shapes.x, &b_shape = shapes.b;
    OpHarness h;
    const ValueId x = h.random("x", x_shape, -2, 2), b = h.random("b", b_shape, -2, 2);
    const auto y = h.op("map", {x, b}, {{map_expression, "a = $1 * $2; yield a / (1 + exp(-a))"}});
    h.run("tiles");  // the gradient may read the result
    const ValueId g = h.random("g", x_shape);
    const auto gradients = h.gradient({g}, {true, true});
    const auto weights = as_doubles(h.read<float>(g));
    const auto of = [&](const std::vector<double>& xs, const std::vector<double>& bs) {
      std::vector<double> made(xs.size());
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const auto at =
            static_cast<std::size_t>(seen_at(x_shape, b_shape, static_cast<std::int64_t>(i)));
        const double a = xs[i] * bs[at];
        made[i] = a / (1 + std::exp(-a));
      }
      return made;
    };
    const auto xs = as_doubles(h.read<float>(x)), bs = as_doubles(h.read<float>(b));
    expect_close(h.read<float>(gradients[0]),
                 numeric_gradient([&](const auto& v) { return of(v, bs); }, xs, weights), 1e-4);
    expect_close(h.read<float>(gradients[1]),
                 numeric_gradient([&](const auto& v) { return of(xs, v); }, bs, weights), 1e-4);
    EXPECT_EQ(h.graph()[gradients[1]].shape, b_shape);
  }
}

/// tanh, relu and sigmoid let go of their operands.
TEST(Map, GradientsAreFromResultsWhereThatIsEnough) {
  for (const char* text : {"tanh($1)", "sigmoid($1)", "select($1 <= 0, 0, $1)"}) {
    OpHarness h;
    const ValueId x = h.random("x", {3, 4});
    const auto y = h.op("map", {x}, {{map_expression, text}});
    h.run("tiles");
    const ValueId g = h.random("g", {3, 4});
    h.gradient({g}, {true});
    const graph::Op& op = h.graph()[h.graph()[graph::Graph::body].ops.back()];
    EXPECT_EQ(std::ranges::count(op.operands, x), 0) << text;
    EXPECT_EQ(std::ranges::count(op.operands, y[0]), 1) << text;
  }
}

/// Bytes of an eighth of the elements: the others would be overwritten before they are read.
TEST(Map, LiesInPlaceOfElementsOfItsSize) {
  for (const auto& [text, fits] : {std::pair{"int64($1 + $2)", true}, {"uint8($1 + $2)", false}}) {
    OpHarness h;
    const ValueId column = h.declare("column", DType::float64, {4, 1});
    const ValueId row = h.declare("row", DType::float64, {fits ? 1 : 8});
    const auto made = h.op("map", {column, row}, {{map_expression, text}});
    h.in_place(0, 0);
    if (fits) {
      EXPECT_NO_THROW(graph::verify(h.graph()));
    } else {
      EXPECT_THROW(graph::verify(h.graph()), Error);
    }
  }
}

/// However large its storage is.
TEST(Map, LiesNotInPlaceOfWhatIsRepeated) {
  OpHarness h;
  const ValueId row = h.random("row", {1, 600}), whole = h.random("whole", {4, 600});
  h.graph().storage(h.graph()[row].storage).bytes *= 4;
  h.op("map", {row, whole}, {{map_expression, "$1 + $2"}});
  h.in_place(0, 0);
  EXPECT_THROW(graph::verify(h.graph()), Error);
}

/// More than 16 bits could number.
TEST(Map, TakesAnyNumberOfConstants) {
  std::string text = "a0 = $1 - 1; ";
  constexpr int steps = 33'000;
  for (int i = 1; i < steps; ++i) {
    text += "a" + std::to_string(i) + " = a" + std::to_string(i - 1) + " + " +
            std::to_string(1 + i * 0.00006) + "; ";
  }
  text += "yield a" + std::to_string(steps - 1);
  OpHarness h;
  const ValueId x = h.random("x", {});
  const auto made = h.op("map", {x}, {{map_expression, text}});
  h.run("tiles");
  const std::vector<std::uint64_t> operands{expr::payload_of(h.read<float>(x)[0])};
  const Expression formula = expr::parse(text, std::vector{Type::float32});
  EXPECT_EQ(expr::payload_of(h.read<float>(made[0])[0]), expr::evaluate(formula, operands)[0]);
}

/// It is asked for before results are laid in place, and used afterwards.
TEST(Map, NeedsNoMoreWorkspaceInPlace) {
  for (const char* text : {"yield $1 * 2, $1 + $2", "yield $1, $1 + $2", "yield $2, $1"}) {
    OpHarness h;
    const ValueId x = h.random("x", {40, 30}), y = h.random("y", {40, 30});
    h.op("map", {x, y}, {{map_expression, text}});
    const auto workspace = [&] {
      const graph::Op& op = h.graph()[h.graph()[graph::Graph::body].ops.back()];
      return kernels().find("map").front().workspace(OpView(h.graph(), op));
    };
    const std::int64_t asked = workspace();
    h.in_place(0, 0);
    EXPECT_EQ(workspace(), asked) << text;
  }
}

TEST(Map, HasNoGradientWhereItIsFlat) {
  OpHarness h;
  const ValueId x = h.random("x", {3});
  h.op("map", {x}, {{map_expression, "pow($1, 0)"}});
  const ValueId g = h.random("g", {3});
  EXPECT_FALSE(h.gradient({g}, {true})[0]);
}

TEST(Map, RefusesWhatDoesNotFit) {
  OpHarness h;
  const ValueId x = h.random("x", {2, 3}), b = h.random("b", {4});
  const ValueId i = h.declare("i", DType::int32, {2, 3});
  const auto map = [&](std::vector<ValueId> operands, const char* text) {
    h.op("map", std::move(operands), {{map_expression, text}});
  };
  expect_error(
      [&] {
        map({x, b}, "$1 + $2");
      },
      "map: operand $2 (b) of shape [4]; expected a shape that is repeated to [2, 3], that "
      "of those before it: its last sizes, where any may be 1");
  expect_error([&] { map({x}, "$1 + float32(index(2))"); },
               "map: index(2); expected an axis of the results' shape [2, 3]");
  EXPECT_THROW(map({x, i}, "$1 + $2"), Error);
  EXPECT_THROW(map({x, x}, "$1"), Error);
  EXPECT_THROW(map({x}, "$1 +"), Error);
}

}  // namespace
}  // namespace arenite::codelets::testing
