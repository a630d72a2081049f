// broadcast_to(x, shape): x repeated along the axes where its size is 1 and `shape`'s is not; the
// rank stays. sum_to backwards.
#include "codelets/broadcast.hpp"
#include "codelets/image.hpp"
#include "codelets/registry.hpp"
#include "codelets/share.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> broadcast_to_kernels();

namespace {

using graph::OpView;

std::vector<graph::ResultType> infer(const OpView& op) {
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

}  // namespace

void register_broadcast_to(Registry& registry) {
  graph::OperatorDefinition broadcast_to;
  broadcast_to.name = "broadcast_to";
  broadcast_to.operands = {{"x"}};
  broadcast_to.results = {"y"};
  broadcast_to.attributes = {{"shape", graph::AttributeType::integers, {}}};
  broadcast_to.infer = infer;
  broadcast_to.of_share = [](const OpView& op,
                             const graph::Share& share) -> std::optional<graph::OfShare> {
    const Shape &x = op.operand(0).shape, &y = op.result(0).shape;
    // Its rows stay, or each is made of the only one there is.
    if (x.rank() == 0 || (share.split[0] ? y[0] != x[0] : x[0] != 1)) return std::nullopt;
    return all_rows(op, with_rows(op, "shape", share));
  };
  broadcast_to.gradient = [](graph::GradientContext& context) {
    const graph::ValueId gradient = context.result_gradient(0);
    if (!gradient || !context.wants(0)) return;
    context.set(0, summed_like(context.builder(), gradient, context.operand(0)));
  };
  broadcast_to.cost = [](const OpView& op) {
    return graph::Cost{.flops = 0, .bytes = bytes_touched(op)};
  };
  registry.add(std::move(broadcast_to), broadcast_to_kernels());
}

}  // namespace arenite::codelets
