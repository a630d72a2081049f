#include "src/graph/values.hpp"

#include <algorithm>
#include <utility>

namespace arenite::graph {
namespace {

/// Evaluation follows forward and feeds nothing back, so it ranks with it.
int rank(Phase phase) noexcept {
  switch (phase) {
    case Phase::init:
      return 0;
    case Phase::forward:
    case Phase::evaluate:
      return 1;
    case Phase::backward:
      return 2;
    case Phase::update:
      return 3;
  }
  return 0;
}

}  // namespace

std::string result_name(const Op& op, std::size_t i, std::size_t count) {
  std::string name(op.where.empty() ? op.name() : op.where);
  // A layer has one forward op and several backward ones.
  if (op.phase == Phase::backward && !op.where.empty()) name += "." + std::string(op.name());
  if (count != 1) {
    const auto& names = op.definition->results;
    name += "." + (i < names.size() ? names[i] : std::to_string(i));
  }
  if (op.lane >= 0) name += "@" + std::to_string(op.lane);
  return name;
}

std::string parameter_name(const Op& op, std::size_t i) {
  std::string name(op.where.empty() ? op.name() : op.where);
  const auto& names = op.definition->parameter_names;
  if (names.empty()) {
    name += "." + std::to_string(i);
  } else if (i < names.size()) {
    name += "." + names[i];
    // The last name may stand for many.
  } else {
    name += "." + names.back() + std::to_string(i + 1 - names.size());
  }
  if (op.lane >= 0) name += "@" + std::to_string(op.lane);
  return name;
}

std::string workspace_name(const Op& op) {
  std::string name(op.name());
  if (!op.where.empty()) name += " '" + op.where + "'";
  if (op.lane >= 0) name += " (lane " + std::to_string(op.lane) + ")";
  return name + ".workspace";
}

bool may_read(Phase reader, Phase maker) noexcept { return rank(maker) <= rank(reader); }

StorageClass result_class(Phase phase) noexcept {
  return phase == Phase::backward || phase == Phase::update ? StorageClass::gradient
                                                            : StorageClass::activation;
}

ValueId add_with_storage(Graph& graph, Value value, StorageClass cls, const Space& space) {
  value.storage = graph.add_storage({.name = value.name,
                                     .cls = cls,
                                     .space = space,
                                     .bytes = byte_size(value.type, value.shape, value.layout)});
  return graph.add_value(std::move(value));
}

void add_workspace(Graph& graph, OpId id, std::int64_t bytes, const Space& space) {
  graph[id].workspace = add_with_storage(graph,
                                         {.name = workspace_name(graph[id]),
                                          .type = DType::uint8,
                                          .shape = Shape{bytes},
                                          .producer = id},
                                         StorageClass::workspace, space);
}

Shape joint_shape(const Graph& graph, const std::vector<ValueId>& values) {
  int rank = 0;
  for (ValueId id : values) rank = id ? std::max(rank, graph[id].shape.rank()) : rank;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
  for (ValueId id : values) {
    for (int axis = 0; id && axis < graph[id].shape.rank(); ++axis) {
      const Shape& own = graph[id].shape;
      std::int64_t& size = dims[static_cast<std::size_t>(rank - own.rank() + axis)];
      if (size == 1) size = own[axis];
    }
  }
  return Shape(dims);
}

std::vector<ValueId> declared_values(const Graph& graph) {
  std::vector<ValueId> all;
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    if (graph[ValueId(i)].is_declared()) all.emplace_back(i);
  }
  return all;
}

}  // namespace arenite::graph
