#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/operator.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/spaces.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace arenite::graph {
namespace {

/// f(space) for each value that the op names itself, results first.
template <class F>
void for_each_space(const Graph& graph, const Op& op, F f) {
  for (const auto* values : {&op.results, &op.operands}) {
    for (ValueId id : *values) {
      if (id) f(graph.root_storage(id).space);
    }
  }
  if (op.workspace) f(graph.root_storage(op.workspace).space);
}

}  // namespace

std::string suffix(const Space& space) { return "@" + to_string(space); }

Space space_of(const Graph& graph, const Op& op) {
  Space found;
  for_each_space(graph, op, [&](const Space& space) {
    if (found.device == DeviceKind::cpu && space.device != DeviceKind::cpu) found = space;
  });
  return found;
}

bool is_crossing(const Graph& graph, const Op& op) {
  std::optional<Space> first;
  bool crossing = false;
  for_each_space(graph, op, [&](const Space& space) {
    if (!first) first = space;
    // Two that differ in their capacity are for the planner to refuse.
    crossing = crossing || first->device != space.device || first->index != space.index ||
               first->memory != space.memory;
  });
  return crossing;
}

void check_spaces(const Graph& graph) {
  for (OpId id : nested_ops(graph)) {
    const Op& op = graph[id];
    const bool outside = std::any_of(op.regions.begin(), op.regions.end(), [&](RegionId region) {
      const auto& inner = graph[region].ops;
      return std::any_of(inner.begin(), inner.end(), [&](OpId one) {
        return space_of(graph, graph[one]).device != DeviceKind::cpu;
      });
    });
    if (!outside && (op.name() == copy_operator || !is_crossing(graph, op))) continue;
    std::vector<std::string> names;
    for_each_space(graph, op, [&](const Space& space) { names.push_back(to_string(space)); });
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : " and ") + name;
    fail({.found = outside ? "a block with ops on a device" : "values in " + all,
          .expected = outside ? "blocks whose values are the host's" : "values in one space",
          .where = describe(graph, id),
          .hint = "graph::place copies what has to cross"});
  }
}

bool is_staging(const Graph& graph, OpId id) {
  bool writes = false;
  for (const Access& access : accesses(graph, id)) {
    const StorageClass cls = graph.storage(access.storage).cls;
    if (access.writes && cls != StorageClass::input) return false;
    if (access.reads && cls != StorageClass::input && cls != StorageClass::constant) return false;
    writes = writes || access.writes;
  }
  return writes;
}

}  // namespace arenite::graph
