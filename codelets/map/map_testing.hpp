// A random expression on random operands, its results compared with the scalar evaluator's to the
// bit.
#pragma once

#include <arenite/expr/text.hpp>

#include "codelets/map/map.hpp"
#include "codelets/testing.hpp"
#include "src/expr/random_expression.hpp"
#include "src/expr/scalar.hpp"

namespace arenite::codelets::testing {

using expr::Expression;
using expr::Type;

inline DType stored_as(Type type) {
  constexpr DType types[] = {DType::uint8, DType::uint8,   DType::int32,
                             DType::int64, DType::float32, DType::float64};
  return types[static_cast<std::size_t>(type)];
}

/// The element of a value that is repeated to `whole`, at the whole's element i.
inline std::int64_t seen_at(const Shape& whole, const Shape& part, std::int64_t i) {
  std::int64_t at = 0, step = 1;
  for (int axis = whole.rank(); axis-- > 0; i /= whole[axis]) {
    const int own = axis - (whole.rank() - part.rank());
    if (own < 0) continue;
    if (part[own] != 1) at += i % whole[axis] * step;
    step *= part[own];
  }
  return at;
}

struct Given {
  ValueId id;
  Shape shape;
  std::vector<std::uint64_t> payloads;
};

class RandomMap {
 public:
  explicit RandomMap(unsigned seed, Runner runner = run_here)
      : engine_(seed), harness_(seed, std::move(runner)) {}

  /// Of this formula, or a random one; halos and rows of any length where the kernel is the CPU's.
  void run(const runtime::Kernel& kernel, const std::optional<Expression>& given = {}) {
    is_on_cpu_ = kernel.device == DeviceKind::cpu;
    draw_whole();
    expr::testing::RandomExpression random(static_cast<unsigned>(engine_()),
                                           {.exact = true, .axes = whole_.rank(), .stored = true});
    const Expression formula = given ? *given : random.make();
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
    EXPECT_EQ(harness_.run(kernel), runtime::StatusWord::ok);
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

  bool can_have_halo() const { return is_on_cpu_ && whole_.rank() == 4 && whole_.elements() > 0; }

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
            from.type != into.type || !(from.layout == into.layout))
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
  bool is_on_cpu_ = true;
  Shape whole_;
  std::vector<Given> given_;
};

}  // namespace arenite::codelets::testing
