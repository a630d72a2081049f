#include "src/graph/passes/obstacle.hpp"

#include "src/graph/views.hpp"

namespace arenite::graph {

std::string name_of(const Graph& graph, ValueId id) {
  const Value& value = graph[id];
  if (!value.producer) return "'" + value.name + "'";
  const Op& op = graph[value.producer];
  if (op.results.size() == 1) return "the result of " + describe(graph, value.producer);
  return "result " + std::to_string(result_index(op, id) + 1) + " of " +
         describe(graph, value.producer);
}

std::string describe(const Graph& graph, std::span<const OpId> ops) {
  std::string all;
  for (OpId id : ops) all += (all.empty() ? "" : ", ") + describe(graph, id);
  return all;
}

std::string in_words(const Graph& graph, const Obstacle& obstacle) {
  std::string text;
  for (const char* at = obstacle.words; *at != '\0'; ++at) {
    if (*at != '%') {
      text += *at;
      continue;
    }
    switch (*++at) {
      case 'v':
        text += name_of(graph, obstacle.value);
        break;
      case 'o':
        text += describe(graph, obstacle.op);
        break;
      case 'n':
        text += std::to_string(obstacle.number);
        break;
      default:
        text += obstacle.name;
    }
  }
  return text;
}

}  // namespace arenite::graph
