#include <arenite/error.hpp>
#include <arenite/graph/operator.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/verify.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "src/base/nearest.hpp"
#include "src/graph/flaw.hpp"
#include "src/graph/lexer.hpp"

namespace arenite::graph {
namespace {

void check_value(const Graph& graph, ValueId id) {
  const Value& value = graph[id];
  if (value.size_names.empty()) return;
  if (!value.is_declared()) {
    value_flaw(graph, id, "a named size of a result",
               "named sizes of declared values: others follow from these");
  }
  if (value.size_names.size() != static_cast<std::size_t>(value.shape.rank())) {
    value_flaw(graph, id,
               "names for " + std::to_string(value.size_names.size()) + " dimensions of shape " +
                   to_string(value.shape),
               "one for each, \"\" for sizes that are known");
  }
  const StorageClass cls = graph.root_storage(id).cls;
  for (int axis = 0; axis < value.shape.rank(); ++axis) {
    const std::string& name = value.size_names[static_cast<std::size_t>(axis)];
    if (name.empty()) continue;
    if (!is_name(name) || name == "_") {
      value_flaw(graph, id, "a size named '" + printable(name) + "'",
                 "a name of letters, digits, '_' and '.'");
    }
    if (is_persistent(cls)) {
      value_flaw(graph, id,
                 "size '" + name + "' known only at run time in a value of class " +
                     std::string(to_string(cls)),
                 "known sizes of what outlives a step");
    }
    if (value.shape[axis] < 1)
      value_flaw(graph, id, "an upper bound of 0 for size '" + name + "'", "at least 1");
  }
}

template <class F>
void for_each_name(const Value& value, F f) {
  for (std::size_t axis = 0; axis < value.size_names.size(); ++axis) {
    const std::string& name = value.size_names[axis];
    if (!name.empty()) f(static_cast<int>(axis), name);
  }
}

class Resized {
 public:
  Resized(const Graph& graph, const SizeValues& sizes) : bounds_(graph), graph_(graph) {
    for (const auto& [name, size] : sizes)
      said_ += (said_.empty() ? "at " : ", ") + name + "=" + std::to_string(size);
    for (std::size_t i = 0; i < graph_.value_count(); ++i) declare(ValueId(i), sizes);
    region(Graph::body);
    verify(graph_);
  }

  Graph take() { return std::move(graph_); }

 private:
  void declare(ValueId id, const SizeValues& sizes) {
    if (graph_[id].size_names.empty()) return;
    Shape shape = graph_[id].shape;
    for_each_name(bounds_[id], [&](int axis, const std::string& name) {
      const auto given = sizes.find(name);
      if (given == sizes.end()) return;
      shape = shape.with(axis, given->second);
      graph_[id].size_names[static_cast<std::size_t>(axis)].clear();
    });
    auto& left = graph_[id].size_names;
    if (std::all_of(left.begin(), left.end(), [](const auto& name) { return name.empty(); }))
      left.clear();
    resize(id, shape);
  }

  template <class Rule>
  auto rule(OpId op, Rule rule) const {
    try {
      return rule();
    } catch (const Error& error) {
      ErrorText text = error.text();
      text.where =
          describe(graph_, op) + " " + said_ + (text.where.empty() ? "" : ", " + text.where);
      text.hint = "an attribute that holds a number for a named size fits that number alone";
      throw Error(text);
    }
  }

  // Blocks nest at most max_region_depth deep.
  void region(RegionId id) {
    for (OpId inner : graph_[id].ops) op(inner);
  }

  void op(OpId id) {
    // Rules are asked about an op without blocks and results, as when it was made.
    Op bare = graph_[id];
    if (!bare.kernel.empty() || bare.workspace) {
      fail({.found = "an op with a kernel or a workspace",
            .expected = "sizes given before `select`",
            .where = describe(graph_, id)});
    }
    const std::vector<RegionId> blocks = std::exchange(bare.regions, {});
    const std::vector<ValueId> results = std::exchange(bare.results, {});
    const OperatorDefinition& definition = *bare.definition;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const auto& parameters = graph_[blocks[b]].parameters;
      if (!parameters.empty()) {
        const auto types = rule(id, [&] { return definition.parameters({graph_, bare}, b); });
        for (std::size_t i = 0; i < parameters.size(); ++i) resize(parameters[i], types[i].shape);
      }
      region(blocks[b]);
    }
    bare.regions = blocks;
    const auto types = rule(id, [&] { return definition.infer({graph_, bare}); });
    std::vector<std::optional<ViewOf>> views(types.size());
    if (definition.views) views = rule(id, [&] { return definition.views({graph_, bare}); });
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!views[i]) {
        resize(results[i], types[i].shape);
        continue;
      }
      const Value& owner = graph_[bare.operands.at(views[i]->operand)];
      graph_[results[i]].shape = types[i].shape;
      graph_[results[i]].offset = owner.offset + views[i]->offset;
    }
  }

  /// A storage that a note made larger than its value stays so.
  void resize(ValueId id, const Shape& shape) {
    Value& value = graph_[id];
    const std::int64_t at_bound = byte_size(value.type, value.shape, value.layout);
    const std::int64_t bytes = byte_size(value.type, shape, value.layout);
    if (bytes > at_bound) {
      fail({.found = "value '" + value.name + "' of " + std::to_string(bytes) + " bytes " + said_,
            .expected = "at most the " + std::to_string(at_bound) + " that it has at the bounds",
            .where = describe_value(graph_, id)});
    }
    value.shape = shape;
    Storage& storage = graph_.storage(value.storage);
    if (storage.bytes == value.offset + at_bound) storage.bytes = value.offset + bytes;
  }

  const Graph& bounds_;
  Graph graph_;
  std::string said_;  // "at rows=40, tokens=7"
};

}  // namespace

void verify_run_time_sizes(const Graph& graph) {
  std::unordered_map<std::string_view, ValueId> first;
  std::unordered_map<std::string_view, std::int64_t> bounds;
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    const ValueId id(i);
    check_value(graph, id);
    for_each_name(graph[id], [&](int axis, const std::string& name) {
      first.emplace(name, id);
      const auto [known, fresh] = bounds.emplace(name, graph[id].shape[axis]);
      if (known->second == graph[id].shape[axis]) return;
      value_flaw(graph, id,
                 "size '" + name + "' of at most " + std::to_string(graph[id].shape[axis]),
                 "at most " + std::to_string(known->second) + ", as in " +
                     describe_value(graph, first.at(name)));
    });
  }
}

std::vector<RunTimeSize> run_time_sizes(const Graph& graph) {
  std::vector<RunTimeSize> all;
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    const Value& value = graph[ValueId(i)];
    for_each_name(value, [&](int axis, const std::string& name) {
      if (seen.insert(name).second) all.push_back({name, value.shape[axis]});
    });
  }
  return all;
}

void name_size(Graph& graph, ValueId declared, int axis, std::string name) {
  Value& value = graph[declared];
  const int rank = value.shape.rank();
  if (axis < 0 || axis >= rank) {
    fail({.found = "axis " + std::to_string(axis) + " of shape " + to_string(value.shape),
          .expected = "one of its " + std::to_string(rank),
          .where = describe_value(graph, declared)});
  }
  value.size_names.resize(static_cast<std::size_t>(rank));
  value.size_names[static_cast<std::size_t>(axis)] = std::move(name);
  verify_run_time_sizes(graph);
}

Graph at_sizes(const Graph& graph, const SizeValues& sizes) {
  const std::vector<RunTimeSize> known = run_time_sizes(graph);
  for (const auto& [name, size] : sizes) {
    Nearest nearest(name);
    std::string names;
    const RunTimeSize* found = nullptr;
    for (const RunTimeSize& one : known) {
      nearest.consider(one.name);
      names += (names.empty() ? "one of " : ", ") + one.name;
      if (one.name == name) found = &one;
    }
    if (!found) {
      fail({.found = "unknown size '" + printable(name) + "'",
            .expected = known.empty() ? "none: all sizes of the graph are known" : names,
            .hint = nearest.hint()});
    }
    if (size < 1 || size > found->bound) {
      fail({.found = "size " + name + "=" + std::to_string(size),
            .expected = "1 to " + std::to_string(found->bound) + ", its upper bound"});
    }
  }
  return Resized(graph, sizes).take();
}

}  // namespace arenite::graph
