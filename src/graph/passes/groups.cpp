#include "src/graph/passes/groups.hpp"

#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace arenite::graph {
namespace {

std::vector<std::string> patterns_of(std::string_view names) {
  std::vector<std::string> patterns;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    std::string_view one = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    const std::size_t first = one.find_first_not_of(' ');
    if (first == one.npos) continue;
    patterns.emplace_back(one.substr(first, one.find_last_not_of(' ') + 1 - first));
  }
  return patterns;
}

bool has_name(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool holds(const ParameterGroup& group, const Value& parameter) {
  if (group.most_rank && parameter.shape.rank() > *group.most_rank) return false;
  const std::vector<std::string> patterns = patterns_of(group.names);
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return has_name(pattern, parameter.name);
         });
}

void check_patterns(const Graph& graph, const ParameterGroup& group) {
  // Those that are frozen count too: who freezes some keeps the groups.
  const std::vector<ValueId> parameters = graph.declared(StorageClass::parameter);
  for (const std::string& pattern : patterns_of(group.names)) {
    std::string known;
    const bool names_some = std::ranges::any_of(parameters, [&](ValueId id) {
      known += (known.empty() ? "" : ", ") + graph[id].name;
      return has_name(pattern, graph[id].name);
    });
    if (names_some) continue;
    fail({.found = "a group of parameters '" + pattern + "', which none is called",
          .expected = "a pattern that one has of " + known,
          .hint = "'*' stands for any characters, '?' for one"});
  }
}

}  // namespace

Groups::Groups(const Graph& graph, const Training& training) : training_(training) {
  for (const ParameterGroup& group : training.groups) {
    check_learning_rate(group.rate);
    check_patterns(graph, group);
    ways_.push_back({group.rate, training.attributes});
    Ways& ways = ways_.back();
    for (const auto& [name, value] : group.attributes.items()) ways.attributes.set(name, value);
  }
  ways_.push_back({1, training.attributes});
}

const Groups::Ways& Groups::of(const Value& parameter) const {
  const auto group = std::ranges::find_if(
      training_.groups, [&](const ParameterGroup& one) { return holds(one, parameter); });
  return ways_[static_cast<std::size_t>(group - training_.groups.begin())];
}

}  // namespace arenite::graph
