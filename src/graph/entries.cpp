#include <arenite/graph/entries.hpp>
#include <arenite/graph/passes.hpp>

#include <algorithm>
#include <array>
#include <string>

#include "src/base/nearest.hpp"
#include "src/base/refuse.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/tidy_needs.hpp"
#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"

namespace arenite::graph {
namespace {

const Entry& find(const Graph& graph, std::string_view name) {
  Nearest nearest(name);
  std::string known;
  for (const Entry& entry : graph.entries) {
    if (entry.name == name) return entry;
    nearest.consider(entry.name);
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  refuse("no entry '" + std::string(name) + "'", known.empty() ? "none" : "one of " + known, {},
         nearest.hint());
}

/// The new version of what persists that the value is, or that it is a view of; none: it is no
/// such, or one in training alone, and this is not that.
ValueId version_of(const Graph& graph, ValueId id, Mode mode) {
  while (id && graph[id].producer) {
    const Op& op = graph[graph[id].producer];
    if (result_views(graph, op)[result_index(op, id)]) {
      id = op.operands.front();
      continue;
    }
    ValueId old;
    for_each_renewed(op, [&](std::size_t result, std::size_t operand) {
      if (op.results[result] == id) old = op.operands[operand];
    });
    if (!old || (op.definition->in_mode && mode != Mode::train)) return {};
    const bool persists =
        is_persistent(graph.root_storage(old).cls) || version_of(graph, old, mode) != ValueId{};
    return persists ? id : ValueId{};
  }
  return {};
}

/// By value: whether an op or a block reads it, or it is an output.
std::vector<bool> values_read(const Graph& graph) {
  std::vector<bool> read(graph.value_count());
  const auto note = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      if (id) read[id.index] = true;
    }
  };
  for (std::size_t r = 0; r < graph.region_count(); ++r) {
    const Region& region = graph[RegionId(r)];
    note(region.results);
    for (const OpId op : region.ops) note(graph[op].operands);
  }
  note(graph.outputs);
  return read;
}

}  // namespace

void check_entry_name(const Graph& graph, std::string_view name) {
  constexpr std::array given{"train", "accumulate", "evaluate", "averaged"};
  const std::string found = "an entry named '" + std::string(name) + "'";
  if (name.empty() || std::ranges::find(given, name) != given.end())
    refuse(found,
           "another name than train, accumulate, evaluate and averaged, which models have already");
  if (std::ranges::count(graph.entries, name, &Entry::name) > 1)
    refuse("a second " + found.substr(3), "a name of its own for each");
}

Graph at_entry(const Graph& graph, const OperatorTable& table, std::string_view name) {
  const Entry& entry = find(graph, name);
  expect_before_select(graph, "entry");
  Graph chosen = graph;
  chosen.entries = {entry};
  chosen.outputs = entry.outputs;
  if (entry.averaged) use_averages(chosen, table);
  chosen.training.reset();
  std::vector<bool> kept(graph.op_count());
  for (ValueId& id : chosen.entries.front().keeps) {
    const std::string keeps = "entry '" + entry.name + "' that keeps '" + graph[id].name + "'";
    const ValueId version = version_of(graph, id, entry.mode);
    if (!version) {
      refuse(keeps, "a new version of what persists, such as a result of assign", {},
             version_of(graph, id, Mode::train) ? "it is one in training: mode=train" : "");
    }
    id = version;
    const OpId op = graph[version].producer;
    for_each_renewed(graph[op], [&](std::size_t, std::size_t operand) {
      const ValueId old = graph[op].operands[operand];
      if (chosen[op].operands[operand] != old)
        refuse(keeps, "no version of a parameter, as it computes with means");
    });
    kept[op.index] = true;
  }
  const Needs needs(chosen, kept, std::vector<bool>(graph.op_count()), Needs::Reports::ignored);
  needs.drop_results(chosen);
  return rebuild(chosen, table,
                 [&](OpId id, std::vector<ValueId>&, Builder&) { return !needs.op(id); });
}

std::vector<ValueId> inputs_read(const Graph& graph) {
  const std::vector<bool> read = values_read(graph);
  std::vector<ValueId> inputs = graph.declared(StorageClass::input);
  std::erase_if(inputs, [&](ValueId id) { return !read[id.index]; });
  return inputs;
}

}  // namespace arenite::graph
