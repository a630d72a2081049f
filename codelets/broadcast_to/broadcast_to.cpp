// broadcast_to(x, shape): x repeated along the axes where its size is 1 and `shape`'s is not; the
// rank stays. sum_to backwards.
#include <arenite/expr/builder.hpp>

#include "codelets/broadcast.hpp"
#include "codelets/map/map.hpp"
#include "codelets/simpler.hpp"

namespace arenite::codelets {
namespace {

Results infer(const OpView& op) {
  expect_real(op, 0);
  const graph::Value& x = op.operand(0);
  const std::vector<std::int64_t>& dims = op.attributes().integers("shape");
  if (!fills(x.shape.dims(), dims)) {
    fail({.found = operand_text(op, 0) + " of shape " + to_string(x.shape),
          .expected = graph::to_string(*op.attributes().find("shape")) +
                      ", the attribute 'shape', where any size may be 1"});
  }
  return {{x.type, Shape(dims)}};
}

std::optional<Simpler> simplify(const OpView& op) {
  if (auto same = same_shape(op)) return same;
  if (const auto number = constant(op, 0)) return is_full(op, *number);
  const graph::Op* inner = made_by(op, 0, "broadcast_to");
  return inner ? is_op("broadcast_to", {inner->operands[0]}, op.attributes()) : std::nullopt;
}

/// Its rows stay, or each is made of the only one there is.
std::optional<graph::OfShare> of_share(const OpView& op, const graph::Share& share) {
  const Shape &x = op.operand(0).shape, &y = op.result(0).shape;
  const bool stay = share.has_rows(0) && x.rank() > 0 && y[0] == x[0],
             repeat = share.is_whole(0) && x.rank() > 0 && x[0] == 1;
  if (!stay && !repeat) return std::nullopt;
  return all_rows(op, with_rows(op, "shape", share));
}

}  // namespace

void register_broadcast_to(Registry& registry) {
  registry.add(
      {.name = "broadcast_to",
       .operands = {{"x"}},
       .results = {"y"},
       .attributes = {{"shape", graph::AttributeType::integers, {}}},
       .infer = infer,
       .gradient = gradient_of_first([](graph::GradientContext& context, ValueId gradient) {
         return summed_like(context.builder(), gradient, context.operand(0));
       }),
       .formula =
           [](const OpView& op) {
             expr::Builder formula;
             return graph::ElementFormula{
                 formula.finish({formula.operand(type_of(op.operand(0).type))})};
           },
       .simplify = simplify,
       .of_share = of_share},
      {});
}

}  // namespace arenite::codelets
