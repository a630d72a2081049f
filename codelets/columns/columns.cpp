// stack_columns(x [N, C], …, columns) -> [Σ N, end − begin] : the rows of all x, one below the
// other, of which only the columns [begin, end) are taken (all, when none are given).
// join_columns(x [N, C], …, rows) -> [end − begin, Σ C] : the columns of all x, side by side, of
// which only the rows [begin, end) are taken.
// Each is the other one's gradient, with zeros for what was not taken. By these copies the lanes of
// a batch hand each other samples (`split_features`).
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/simpler.hpp"

namespace arenite::codelets {

std::vector<Kernel> stack_columns_kernels();
std::vector<Kernel> join_columns_kernels();

namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

/// The attribute for the range of stack_columns (axis 0) or join_columns (1).
constexpr const char* range_name(int axis) noexcept { return axis == 0 ? "columns" : "rows"; }

/// The range that an attribute gives, of an axis this long; all of it when it gives none.
Range range_of(const OpView& op, const char* name, std::int64_t length) {
  const auto& range = op.attributes().integers(name);
  if (range.empty()) return {0, length};
  if (range.size() != 2 || range[0] < 0 || range[1] < range[0] || range[1] > length) {
    fail({.found = std::string(name) + "=" + graph::to_string(*op.attributes().find(name)),
          .expected = "none, or [begin, end) with 0 ≤ begin ≤ end ≤ " + std::to_string(length) +
                      ", the " + name + " of " + op.operand(0).name + " " +
                      to_string(op.operand(0).shape)});
  }
  return {range[0], range[1]};
}

/// Sum of the operands' sizes along `axis`; along the other one they are alike.
std::int64_t total(const OpView& op, int axis) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    expect_type(op, i, DType::float32);
    expect_rank(op, i, 2, "[N, C]");
    const Shape& shape = op.operand(i).shape;
    const std::int64_t size = shape[axis];
    expect_shape(
        op, i, op.operand(0).shape.with(axis, size),
        std::string(range_name(axis)) + " like the first, " + to_string(op.operand(0).shape));
    sum = Shape{sum + size}[0];  // which refuses what no shape can be
  }
  return sum;
}

/// `axis`: along which the operands stand one behind the other; of the other one the range is
/// taken.
Results infer(const OpView& op, int axis) {
  const std::int64_t sum = total(op, axis);
  const Shape& first = op.operand(0).shape;
  const auto [begin, end] = range_of(op, range_name(axis), first[1 - axis]);
  return {{DType::float32, first.with(axis, sum).with(1 - axis, end - begin)}};
}

ValueId zeros(graph::Builder& builder, const Shape& shape) {
  return builder.add1("full", {}, {{"shape", dims_of(shape)}, {"value", 0.0}});
}

/// Between zeros of two shapes, of which either may be empty.
ValueId between(graph::Builder& builder, const char* op, const Shape& before, ValueId middle,
                const Shape& after) {
  std::vector<ValueId> pieces{middle};
  if (before.elements() > 0) pieces.insert(pieces.begin(), zeros(builder, before));
  if (after.elements() > 0) pieces.push_back(zeros(builder, after));
  return pieces.size() == 1 ? middle : builder.add1(op, pieces);
}

/// Each x has its rows, or columns, of the gradient, between zeros for what was not taken.
void gradient(graph::GradientContext& context, int axis) {
  const ValueId gradient = context.result_gradient(0);
  if (!gradient) return;
  graph::Builder& builder = context.builder();
  std::int64_t at = 0;
  for (std::size_t i = 0; i < context.forward().operand_count(); ++i) {
    const Shape x = context.forward().operand(i).shape;
    const std::int64_t from = at;
    at += x[axis];
    if (!context.wants(i)) continue;
    const auto [begin, end] = range_of(context.forward(), range_name(axis), x[1 - axis]);
    if (x.elements() == 0 || begin == end) {
      context.set(i, zeros(builder, x));
      continue;
    }
    const ValueId part = axis == 0
                             ? builder.add1("slice", {gradient}, {{"begin", from}, {"end", at}})
                             : builder.add1("stack_columns", {gradient},
                                            {{"columns", std::vector<std::int64_t>{from, at}}});
    context.set(i, between(builder, axis == 0 ? "join_columns" : "stack_columns",
                           x.with(1 - axis, begin), part, x.with(1 - axis, x[1 - axis] - end)));
  }
}

/// What is copied is read and written, whatever else the operands hold.
graph::Cost cost(const OpView& op) {
  return {.bytes = 2.0 * sizeof(float) * static_cast<double>(op.result(0).shape.elements())};
}

/// All of one operand.
std::optional<Simpler> simplify(const OpView& op) {
  return op.operand_count() == 1 ? same_shape(op) : std::nullopt;
}

graph::OperatorDefinition definition(std::string name, int axis) {
  return {.name = std::move(name),
          .operands = {{"x"}},
          .variadic = 1,
          .results = {"y"},
          .attributes = {{range_name(axis), graph::AttributeType::integers,
                          std::vector<std::int64_t>{}}},
          .infer = [axis](const OpView& op) { return infer(op, axis); },
          .gradient = [axis](graph::GradientContext& context) { gradient(context, axis); },
          .cost = cost,
          .simplify = simplify};
}

}  // namespace

void register_columns(Registry& registry) {
  auto stack = definition("stack_columns", 0);
  registry.add(std::move(stack), stack_columns_kernels());
  auto join = definition("join_columns", 1);
  join.of_share = [](const OpView& op, const graph::Share& share) {
    const bool all = op.attributes().integers("rows").empty();
    return all ? rows_of_all(op, share) : std::nullopt;
  };
  registry.add(std::move(join), join_columns_kernels());
}

}  // namespace arenite::codelets
