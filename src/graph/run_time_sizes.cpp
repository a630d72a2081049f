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

/// What may be sizes among an attribute's numbers.
std::vector<double> numbers_of(const AttributeValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    return {static_cast<double>(*integer)};
  if (const auto* real = std::get_if<double>(&value)) return {*real};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
    return {list->begin(), list->end()};
  return {};
}

void put_number(AttributeValue& value, std::size_t at, std::int64_t number) {
  if (auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    (*list)[at] = number;
  } else if (std::holds_alternative<double>(value)) {
    value = static_cast<double>(number);
  } else {
    value = number;
  }
}

using Bounds = std::unordered_map<std::string_view, std::int64_t>;

/// `refuse(found, expected)` says whose attributes they are.
template <class Refuse>
void check_attributes(const Attributes& attributes, const Bounds& bounds, Refuse refuse) {
  for (const auto& [attribute, names] : attributes.size_names()) {
    const AttributeValue& value = *attributes.find(attribute);
    const std::vector<double> numbers = numbers_of(value);
    const std::string what = "attribute " + attribute + "=" + to_string(value);
    if (names.size() != numbers.size()) {
      refuse(std::to_string(names.size()) + " names of sizes for " + what,
             "one for each number, \"\" for those that are none");
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) continue;
      const auto known = bounds.find(names[i]);
      const std::string named = "'" + printable(names[i]) + "' in " + what;
      if (known == bounds.end()) refuse("size " + named, "a size that a declared value has");
      if (numbers[i] != static_cast<double>(known->second))
        refuse("size " + named, std::to_string(known->second) + " there, its upper bound");
      // Which scripts have for these numbers.
      if (std::holds_alternative<double>(value) && (names[i] == "inf" || names[i] == "nan"))
        refuse("size " + named, "another name in place of a real number");
    }
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
  Resized(const Graph& graph, const SizeValues& sizes, bool are_bounds)
      : bounds_(graph), sizes_(sizes), are_bounds_(are_bounds), graph_(graph) {
    for (const auto& [name, size] : sizes)
      said_ += (said_.empty() ? "at " : ", ") + name + "=" + std::to_string(size);
    for (std::size_t i = 0; i < graph_.value_count(); ++i) declare(ValueId(i));
    if (graph_.training) put_sizes(graph_.training->attributes);
    region(Graph::body);
    verify(graph_);
  }

  Graph take() { return std::move(graph_); }

 private:
  void declare(ValueId id) {
    if (graph_[id].size_names.empty()) return;
    Shape shape = graph_[id].shape;
    for_each_name(bounds_[id], [&](int axis, const std::string& name) {
      const auto given = sizes_.find(name);
      if (given == sizes_.end()) return;
      smaller_ = smaller_ || given->second < shape[axis];
      shape = shape.with(axis, given->second);
      if (!are_bounds_) graph_[id].size_names[static_cast<std::size_t>(axis)].clear();
    });
    drop_if_none(graph_[id].size_names);
    resize(id, shape);
  }

  static void drop_if_none(std::vector<std::string>& names) {
    if (std::ranges::all_of(names, [](const auto& name) { return name.empty(); })) names.clear();
  }

  void put_sizes(Attributes& attributes) const {
    const auto all_named = attributes.size_names();  // a copy: they change
    for (const auto& [attribute, names] : all_named) {
      AttributeValue value = *attributes.find(attribute);
      std::vector<std::string> left = names;
      for (std::size_t i = 0; i < names.size(); ++i) {
        const auto given = sizes_.find(names[i]);
        if (given == sizes_.end()) continue;
        put_number(value, i, given->second);
        if (!are_bounds_) left[i].clear();
      }
      drop_if_none(left);
      attributes.set(attribute, std::move(value), std::move(left));
    }
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
    put_sizes(graph_[id].attributes);
    // Rules are asked about an op without blocks and results, as when it was made.
    Op bare = graph_[id];
    if (!bare.kernel.empty() || bare.workspace) {
      fail({.found = "an op with a kernel or a workspace",
            .expected = "sizes given before `select`",
            .where = describe(graph_, id)});
    }
    // Rules of gradients put shapes into attributes, which may fit and yet mean something else.
    if (bare.phase == Phase::backward && smaller_) {
      fail({.found = "an op of phase backward",
            .expected = "sizes given before gradients are made",
            .where = describe(graph_, id) + " " + said_,
            .hint = "'train' makes them afterwards, but 'grad' where it stands"});
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
  const SizeValues& sizes_;
  const bool are_bounds_;
  Graph graph_;
  std::string said_;      // "at rows=40, tokens=7"
  bool smaller_ = false;  // than at the bounds
};

}  // namespace

void verify_run_time_sizes(const Graph& graph) {
  std::unordered_map<std::string_view, ValueId> first;
  Bounds bounds;
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
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId id(i);
    check_attributes(graph[id].attributes, bounds, [&](std::string found, std::string expected) {
      op_flaw(graph, id, std::move(found), std::move(expected));
    });
  }
  if (!graph.training) return;
  check_attributes(graph.training->attributes, bounds, [](std::string found, std::string expected) {
    graph_flaw("train", std::move(found), std::move(expected));
  });
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

void fix_attributes(Graph& graph) {
  const auto fix = [](Attributes& attributes) {
    const auto all_named = attributes.size_names();  // a copy: they change
    for (const auto& [attribute, names] : all_named)
      attributes.set(attribute, AttributeValue(*attributes.find(attribute)));
  };
  for (std::size_t i = 0; i < graph.op_count(); ++i) fix(graph[OpId(i)].attributes);
  if (graph.training) fix(graph.training->attributes);
}

namespace {

Graph resized(const Graph& graph, const SizeValues& sizes, bool are_bounds) {
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
  return Resized(graph, sizes, are_bounds).take();
}

}  // namespace

Graph at_sizes(const Graph& graph, const SizeValues& sizes) { return resized(graph, sizes, false); }
Graph at_bounds(const Graph& graph, const SizeValues& bounds) {
  return resized(graph, bounds, true);
}

}  // namespace arenite::graph
