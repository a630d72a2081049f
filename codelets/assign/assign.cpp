// assign(target, value): target = value, of any type. It has no result: what a buffer, or a view of
// one, holds in the next step. identity(x) -> y: the same as a new value, in any space.
#include "codelets/image.hpp"
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/share.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> assign_kernels();
std::vector<runtime::Kernel> identity_kernels();

void register_assign(Registry& registry) {
  graph::OperatorDefinition assign;
  assign.name = "assign";
  assign.operands = {{"target", graph::Effect::write}, {"value"}};
  assign.infer = [](const graph::OpView& op) -> std::vector<graph::ResultType> {
    expect_like(op, 1, 0);
    return {};
  };
  assign.cost = [](const graph::OpView& op) { return graph::Cost{.bytes = bytes_touched(op)}; };
  registry.add(std::move(assign), assign_kernels());

  graph::OperatorDefinition identity;
  identity.name = "identity";
  identity.operands = {{"x"}};
  identity.results = {"y"};
  identity.of_share = rows_of_first<>;
  identity.crosses_spaces = true;
  identity.infer = [](const graph::OpView& op) -> std::vector<graph::ResultType> {
    return {{op.operand(0).type, op.operand(0).shape}};
  };
  identity.gradient = [](graph::GradientContext& context) {
    const graph::ValueId gradient = context.result_gradient(0);
    if (gradient && context.wants(0)) context.set(0, gradient);
  };
  identity.cost = [](const graph::OpView& op) { return graph::Cost{.bytes = bytes_touched(op)}; };
  registry.add(std::move(identity), identity_kernels());
}

}  // namespace arenite::codelets
