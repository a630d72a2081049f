#include "src/graph/passes/ask_share.hpp"

#include <arenite/error.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace arenite::graph {
namespace {

[[noreturn]] void refuse_share(const Graph& graph, OpId id, std::string found,
                               std::string expected) {
  fail({.found = std::move(found),
        .expected = std::move(expected),
        .where = describe(graph, id),
        .hint = "of_share of operator '" + std::string(graph[id].name()) + "' says otherwise"});
}

bool can_be_finished(const Op& op, const Share& share, const OfShare& of) {
  if (of.finish.empty()) return true;
  std::vector<std::size_t> taken;
  for (const OfShare::Finish& finish : of.finish)
    taken.insert(taken.end(), finish.operands.begin(), finish.operands.end());
  std::ranges::sort(taken);
  return of.results == std::vector{OfShare::Result::sum} &&
         std::ranges::adjacent_find(taken) == taken.end() &&
         std::ranges::all_of(taken, [&](std::size_t i) {
           return i > 0 && i < op.operands.size() && op.operands[i] && share.is_whole(i);
         });
}

}  // namespace

std::optional<OfShare> ask_share(const Graph& graph, OpId id, const Share& share) {
  const Op& op = graph[id];
  if (!op.definition->of_share) return std::nullopt;
  auto of = op.definition->of_share({graph, op}, share);
  if (!of) return of;
  if (of->results.size() != op.results.size()) {
    refuse_share(graph, id, "a share of " + std::to_string(of->results.size()) + " results",
                 std::to_string(op.results.size()));
  }
  if (!can_be_finished(op, share, *of)) {
    refuse_share(graph, id, "a share with more to be done behind it",
                 "one sum, and whole operands that the op has, each once");
  }
  return of;
}

void check_share(const Graph& graph, OpId id, std::size_t result, OfShare::Result of,
                 std::int64_t count, const Shape& part) {
  const Shape& all = graph[graph[id].results[result]].shape;
  const int axis = of == OfShare::Result::columns ? 1 : 0;
  const bool sums = of == OfShare::Result::sum;
  if (sums ? part == all : all.rank() > axis && part == all.with(axis, count)) return;
  refuse_share(graph, id,
               "a share of " + std::to_string(count) + " places of shape " + to_string(part) +
                   ", for " + to_string(all),
               sums        ? "a term of the sum, of the same shape"
               : axis == 0 ? "as many rows as the share has"
                           : "as many columns as the share has");
}

}  // namespace arenite::graph
