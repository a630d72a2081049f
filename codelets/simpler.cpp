#include "codelets/simpler.hpp"

#include <algorithm>

namespace arenite::codelets {

bool swaps_last_two(const graph::Op& permute) {
  std::vector<std::int64_t> dims = permute.attributes.integers("dims");
  if (dims.size() < 2) return false;
  std::swap(dims[dims.size() - 2], dims[dims.size() - 1]);
  return std::ranges::is_sorted(dims);
}

std::optional<double> constant(const OpView& op, std::size_t i) {
  if (!op.has_operand(i)) return std::nullopt;
  const graph::Graph& graph = op.graph();
  const graph::Value* value = &op.operand(i);
  // Not through chains of views, which every op that reads one would walk again.
  for (int views = 0; views < 8; ++views) {
    if (!value->producer || !value->batch.empty()) return std::nullopt;
    const graph::Op& producer = graph[value->producer];
    if (producer.name() == "full") {
      const double number = producer.attributes.real("value");
      return value->type == DType::float32 ? static_cast<double>(static_cast<float>(number))
                                           : number;
    }
    if (!producer.definition->views) return std::nullopt;
    const auto view = producer.definition->views({graph, producer}).at(0);
    if (!view || producer.results.size() != 1) return std::nullopt;
    const graph::Value& owner = graph[producer.operands.at(view->operand)];
    if (owner.type != value->type) return std::nullopt;
    value = &owner;
  }
  return std::nullopt;
}

std::optional<Simpler> is_full(const OpView& op, double value) {
  const graph::Value& y = op.result(0);
  return is_op(
      "full", {},
      {{"shape", dims_of(y.shape)}, {"value", value}, {"type", std::string(to_string(y.type))}});
}

}  // namespace arenite::codelets
