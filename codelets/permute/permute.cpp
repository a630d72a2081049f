// permute(x, dims) -> y : axis i of y is axis dims[i] of x; a copy. Its gradient is the permutation
// back.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/simpler.hpp"

#include <algorithm>

namespace arenite::codelets {

std::vector<Kernel> permute_kernels();

namespace {

using Axes = std::vector<std::int64_t>;

bool is_permutation(Axes dims, int rank) {
  std::sort(dims.begin(), dims.end());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != static_cast<std::int64_t>(i)) return false;
  }
  return dims.size() == static_cast<std::size_t>(rank);
}

Results infer(const OpView& op) {
  const graph::Value& x = op.operand(0);
  const Axes& dims = op.attributes().integers("dims");
  if (!is_permutation(dims, x.shape.rank())) {
    fail({.found = "dims=" + graph::to_string(*op.attributes().find("dims")),
          .expected = "each of the " + std::to_string(x.shape.rank()) + " axes of x " +
                      to_string(x.shape) + " once, counted from 0"});
  }
  Shape y = x.shape;
  for (int axis = 0; axis < y.rank(); ++axis)
    y = y.with(axis, x.shape.at(static_cast<int>(dims[static_cast<std::size_t>(axis)])));
  return {{x.type, y}};
}

ValueId gradient(graph::GradientContext& context, ValueId of_y) {
  const Axes dims = context.forward().attributes().integers("dims");
  Axes back(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i)
    back[static_cast<std::size_t>(dims[i])] = static_cast<std::int64_t>(i);
  return context.builder().add1("permute", {of_y}, {{"dims", back}});
}

/// The axes longer than 1, in the order in which dims has them.
Axes long_axes(const Axes& dims, const Shape& shape) {
  Axes axes;
  for (const std::int64_t axis : dims) {
    if (shape.at(static_cast<int>(axis)) != 1) axes.push_back(axis);
  }
  return axes;
}

std::optional<Simpler> simplify(const OpView& op) {
  const Axes& dims = op.attributes().integers("dims");
  const ValueId x = op.op().operands[0];
  if (std::ranges::is_sorted(dims)) return is_value(x);
  // Axes of one element are no matter of order.
  if (std::ranges::is_sorted(long_axes(dims, op.operand(0).shape)))
    return is_op("reshape", {x}, {{"shape", dims_of(op.result(0).shape)}});
  if (const auto number = constant(op, 0)) return is_full(op, *number);
  const graph::Op* inner = made_by(op, 0, "permute");
  if (!inner) return std::nullopt;
  const Axes& before = inner->attributes.integers("dims");
  Axes both;
  for (const std::int64_t axis : dims) both.push_back(before[static_cast<std::size_t>(axis)]);
  return is_op("permute", {inner->operands[0]}, {{"dims", both}});
}

}  // namespace

void register_permute(Registry& registry) {
  registry.add({.name = "permute",
                .operands = {{"x"}},
                .results = {"y"},
                .attributes = {{"dims", graph::AttributeType::integers, {}}},
                .infer = infer,
                .gradient = gradient_of_first(gradient),
                .simplify = simplify,
                .of_share =
                    [](const OpView& op, const graph::Share& share) {
                      const bool first_stays =
                          share.has_rows(0) && op.attributes().integers("dims").front() == 0;
                      return first_stays ? rows_of_first<>(op, share) : std::nullopt;
                    }},
               permute_kernels());
}

}  // namespace arenite::codelets
