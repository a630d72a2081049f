#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>

#include "src/graph/passes/rebuild.hpp"

#include <algorithm>
#include <memory>

namespace arenite::graph {
namespace {

using Definition = std::shared_ptr<const OperatorDefinition>;

/// The operators that stand for a chain, longest chain first.
std::vector<Definition> fused_operators(const OperatorTable& table) {
  std::vector<Definition> fused;
  for (const std::string& name : table.names()) {
    auto definition = table.find(name);
    if (!definition->fusion) continue;
    for (const std::string& part : definition->fusion->chain) {
      if (table.find(part)) continue;
      fail({.found = "operator '" + name + "' fused from a chain with '" + part + "'",
            .expected = "a chain of registered operators"});
    }
    fused.push_back(std::move(definition));
  }
  std::stable_sort(fused.begin(), fused.end(), [](const Definition& a, const Definition& b) {
    return a->fusion->chain.size() > b->fusion->chain.size();
  });
  return fused;
}

struct Match {
  std::vector<OpId> chain;
  OpId place;  ///< where the fused op stands
  Definition fused;
  Attributes attributes;
};

class Fuser {
 public:
  Fuser(const Graph& graph, const OperatorTable& table)
      : graph_(graph), readers_(graph), match_of_(graph.op_count()) {
    for (const Definition& definition : fused_operators(table)) {
      for (OpId id : graph_[Graph::body].ops) {
        auto match = match_at(id, definition);
        if (!match) continue;
        const auto shared = std::make_shared<const Match>(std::move(*match));
        for (OpId op : shared->chain) match_of_[op.index] = shared;
        ++matches_;
      }
    }
  }

  int matches() const noexcept { return matches_; }

  /// A chain is replaced where it ends, all that it reads exists by then, or where it begins.
  bool replace(OpId id, std::vector<ValueId>& map, Builder& builder) const {
    const auto& match = match_of_[id.index];
    if (match && id == match->place) add_fused(*match, map, builder);
    return match != nullptr;
  }

 private:
  std::optional<Match> match_at(OpId first, const Definition& definition) const {
    Match match{.chain = {first}, .place = {}, .fused = definition, .attributes = {}};
    const auto& names = definition->fusion->chain;
    if (graph_[first].name() != names.front()) return std::nullopt;
    while (match.chain.size() < names.size()) {
      const auto next = follower(match.chain.back());
      if (!next || graph_[*next].name() != names[match.chain.size()]) return std::nullopt;
      match.chain.push_back(*next);
    }
    const auto stays = [&](OpId id) {
      return match_of_[id.index] || !only_reads(graph_[id]) || !only_first_result_used(id);
    };
    if (std::any_of(match.chain.begin(), match.chain.end(), stays)) return std::nullopt;
    const auto place = place_of(match.chain);
    if (!place) return std::nullopt;
    match.place = *place;
    std::vector<OpView> views;
    for (OpId id : match.chain) views.emplace_back(graph_, graph_[id]);
    auto attributes = definition->fusion->attributes(views);
    if (!attributes) return std::nullopt;
    match.attributes = std::move(*attributes);
    return match;
  }

  /// Where all ops of the chain see what they see now: at its end, or at its beginning, where an
  /// update of what it reads stands in between.
  std::optional<OpId> place_of(const std::vector<OpId>& chain) const {
    const auto none_of = [&](auto condition) {
      return std::none_of(chain.begin(), chain.end(), condition);
    };
    const OpId first = chain.front(), last = chain.back();
    if (none_of([&](OpId id) { return overwritten_between(graph_, id, first, last, chain); }))
      return last;
    const auto made_later = [&](ValueId operand) {
      const OpId producer = operand ? graph_[operand].producer : OpId{};
      return producer && std::find(chain.begin(), chain.end(), producer) == chain.end() &&
             stands_behind(producer, first);
    };
    const auto sees_more = [&](OpId id) {
      const auto& operands = graph_[id].operands;
      return std::any_of(operands.begin(), operands.end(), made_later) ||
             (id != first && overwritten_between(graph_, id, first, id, chain));
    };
    return none_of(sees_more) ? std::optional(first) : std::nullopt;
  }

  bool stands_behind(OpId id, OpId other) const {
    const auto& ops = graph_[Graph::body].ops;
    return std::find(std::find(ops.begin(), ops.end(), other), ops.end(), id) != ops.end();
  }

  /// The op that alone reads what this one makes, as its operand 0.
  std::optional<OpId> follower(OpId id) const {
    const Op& op = graph_[id];
    if (op.results.empty() || !readers_.only_one(op.results[0])) return std::nullopt;
    const OpId next = readers_.of(op.results[0]).front();
    const bool together = graph_[next].phase == op.phase && graph_[next].lane == op.lane;
    if (!together || graph_[next].operands.front() != op.results[0]) return std::nullopt;
    return next;
  }

  bool only_first_result_used(OpId id) const {
    const auto& results = graph_[id].results;
    return !results.empty() && std::all_of(results.begin() + 1, results.end(),
                                           [&](ValueId result) { return readers_.unused(result); });
  }

  void add_fused(const Match& match, std::vector<ValueId>& map, Builder& builder) const {
    const Op &first = graph_[match.chain.front()], &last = graph_[match.chain.back()];
    std::vector<ValueId> operands;
    for (OpId id : match.chain) {
      const Op& op = graph_[id];
      // Optional operands that were left out keep their places.
      const std::size_t count = std::max(op.operands.size(), op.definition->operands.size());
      for (std::size_t i = id == match.chain.front() ? 0 : 1; i < count; ++i) {
        const ValueId operand = i < op.operands.size() ? op.operands[i] : ValueId{};
        operands.push_back(operand ? map[operand.index] : ValueId{});
      }
    }
    while (!operands.empty() && !operands.back()) operands.pop_back();
    builder.context = {.phase = first.phase, .lane = first.lane, .where = first.where};
    const auto results = builder.add(match.fused->name, operands, match.attributes);
    map[last.results[0].index] = results.at(0);
    copy_placement(graph_, last.results[0], builder.graph(), results[0]);
  }

  const Graph& graph_;
  const Readers readers_;
  std::vector<std::shared_ptr<const Match>> match_of_;  // by op; none: it stays
  int matches_ = 0;
};

}  // namespace

int fuse(Graph& graph, const OperatorTable& table) {
  expect_before_select(graph, "fuse");
  if (graph.region_count() > 1) return 0;
  // What was fused may be part of a chain itself.
  for (int total = 0;;) {
    const Fuser fuser(graph, table);
    if (fuser.matches() == 0) return total;
    total += fuser.matches();
    graph = rebuild(graph, table, [&](OpId id, std::vector<ValueId>& map, Builder& builder) {
      return fuser.replace(id, map, builder);
    });
  }
}

}  // namespace arenite::graph
