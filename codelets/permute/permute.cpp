// permute(x, dims) -> y : axis i of y is axis dims[i] of x; a copy. Its gradient is the permutation
// back.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/share.hpp"

#include <algorithm>

namespace arenite::codelets {

std::vector<runtime::Kernel> permute_kernels();

namespace {

using graph::OpView;
using Axes = std::vector<std::int64_t>;

bool is_permutation(Axes dims, int rank) {
  std::sort(dims.begin(), dims.end());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != static_cast<std::int64_t>(i)) return false;
  }
  return dims.size() == static_cast<std::size_t>(rank);
}

std::vector<graph::ResultType> infer(const OpView& op) {
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

void gradient(graph::GradientContext& context) {
  const graph::ValueId of_y = context.result_gradient(0);
  if (!of_y || !context.wants(0)) return;
  const Axes dims = context.forward().attributes().integers("dims");
  Axes back(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i)
    back[static_cast<std::size_t>(dims[i])] = static_cast<std::int64_t>(i);
  context.set(0, context.builder().add1("permute", {of_y}, {{"dims", back}}));
}

}  // namespace

void register_permute(Registry& registry) {
  graph::OperatorDefinition permute;
  permute.name = "permute";
  permute.operands = {{"x"}};
  permute.results = {"y"};
  permute.attributes = {{"dims", graph::AttributeType::integers, {}}};
  permute.infer = infer;
  permute.gradient = gradient;
  permute.of_share = [](const OpView& op, const graph::Share& share) {
    const bool first_stays = share.split[0] && op.attributes().integers("dims").front() == 0;
    return first_stays ? rows_of_first<>(op, share) : std::nullopt;
  };
  registry.add(std::move(permute), permute_kernels());
}

}  // namespace arenite::codelets
