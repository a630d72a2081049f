#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>

#include "src/graph/passes/fused.hpp"
#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/versions.hpp"

#include <algorithm>
#include <map>
#include <memory>

namespace arenite::graph {
namespace {

using Chain = Fused<ChainOf>;

/// All results of its ops are new versions.
bool updates(const OperatorDefinition& definition) {
  const auto renewed = std::ranges::count_if(definition.operands, [](const OperandSchema& operand) {
    return operand.renews != Renews::nothing;
  });
  return renewed > 0 && static_cast<std::size_t>(renewed) == definition.results.size();
}

/// The operators that stand for a chain that ends in an update, or in none, longest chain first.
std::vector<Chain> chains(const OperatorTable& table, bool in_update) {
  std::vector<Chain> all = fused_operators<ChainOf>(table);
  for (const Chain& fused : all) {
    for (const std::string& part : fused.form->operators) {
      if (table.find(part)) continue;
      fail({.found = "operator '" + fused.by->name + "' fused from a chain with '" + part + "'",
            .expected = "a chain of registered operators"});
    }
  }
  std::erase_if(all, [&](const Chain& fused) {
    return updates(*table.find(fused.form->operators.back())) != in_update;
  });
  std::ranges::stable_sort(all, std::greater<>(),
                           [](const Chain& fused) { return fused.form->operators.size(); });
  return all;
}

struct Match {
  std::vector<OpId> chain;
  OpId place;  ///< where the fused op stands
  Chain fused;
  Attributes attributes;
};

/// A chain that is one but for what stands against it.
struct Miss {
  std::vector<OpId> chain;
  Obstacle why;
};

class Fuser {
 public:
  Fuser(const Graph& graph, const OperatorTable& table, bool in_update, bool telling)
      : graph_(graph),
        in_update_(in_update),
        readers_(graph),
        ops_(nested_ops(graph)),
        match_of_(graph.op_count()) {
    for (const Chain& fused : chains(table, in_update)) {
      for (OpId id : ops_) {
        if (graph_[id].name() != fused.form->operators.front()) continue;
        Match match{.chain = {id}, .place = {}, .fused = fused, .attributes = {}};
        if (const Obstacle why = complete(match)) {
          if (telling && why.worth_a_remark()) misses_[id].push_back({match.chain, why});
          continue;
        }
        const auto shared = std::make_shared<const Match>(std::move(match));
        for (OpId op : shared->chain) match_of_[op.index] = shared;
        ++matches_;
      }
    }
  }

  int count() const noexcept { return matches_; }

  /// A chain is replaced where it ends, all that it reads exists by then, or where it begins.
  bool replace(OpId id, std::vector<ValueId>& map, Builder& builder) const {
    const auto& match = match_of_[id.index];
    if (match && id == match->place) add_fused(*match, map, builder);
    return match != nullptr;
  }

  void tell(Remarks& remarks) const {
    for (OpId id : ops_) {
      const auto& match = match_of_[id.index];
      if (match && id == match->chain.front())
        remarks.done.push_back({describe(graph_, match->chain), match->fused.by->name});
      const auto found = misses_.find(id);
      if (found == misses_.end()) continue;
      const std::vector<OpId>* told = nullptr;  // several operators may have the same chain
      for (const auto& [chain, why] : found->second) {
        if (told && *told == chain) continue;
        told = &chain;
        // What stays whole is looked at once more; what became a part of something is told now.
        const auto matched = [&](OpId op) { return match_of_[op.index] != nullptr; };
        const bool another = match && match == match_of_[chain.back().index];
        if (another || (matches_ > 0 && std::ranges::none_of(chain, matched))) continue;
        remarks.left.push_back({describe(graph_, chain), in_words(graph_, why)});
      }
    }
  }

 private:
  /// Follows the chain from its first op; what stands against it stands against the ops so far.
  Obstacle complete(Match& match) const {
    const auto& names = match.fused.form->operators;
    while (match.chain.size() < names.size()) {
      const OpId id = match.chain.back(),
                 next = follower(id, names[match.chain.size()], match.fused.form->operand);
      if (!next) return not_meant;
      match.chain.push_back(next);
      if (const Obstacle why = apart(id, next)) return why;
    }
    for (OpId id : match.chain) {
      if (match_of_[id.index]) return not_meant;
      if (in_update_ && id == match.chain.back()) continue;  // all that it makes the fused op does
      if (const Obstacle why = stays(id)) return why;
    }
    if (const Obstacle why = find_place(match)) return why;
    std::vector<OpView> views;
    for (OpId id : match.chain) views.emplace_back(graph_, graph_[id]);
    auto attributes = match.fused.form->attributes(views);
    if (!attributes)
      return {.words = "%t takes no such shapes or attributes", .name = match.fused.by->name};
    match.attributes = std::move(*attributes);
    return {};
  }

  /// An op of this name that reads what the op makes, as this operand.
  OpId follower(OpId id, const std::string& name, std::size_t operand) const {
    const Op& op = graph_[id];
    if (op.results.empty()) return {};
    for (const auto& [reader, in_block] : readers_.of(op.results[0])) {
      if (!in_block && graph_[reader].name() == name &&
          operand_of(graph_[reader], operand) == op.results[0])
        return reader;
    }
    return {};
  }

  Obstacle apart(OpId id, OpId next) const {
    const ValueId result = graph_[id].results[0];
    if (const Obstacle why = readers_.only_for(result, next)) return why;
    if (in_update_) {
      if (!as_made(graph_, result)) return {.words = "%v is placed by hand", .value = result};
      return reads_renewed(graph_, id, next)
                 ? Obstacle{.words = "%o updates what is read besides", .op = next}
                 : Obstacle{};
    }
    const bool together =
        graph_[next].phase == graph_[id].phase && graph_[next].lane == graph_[id].lane;
    return together ? Obstacle{} : Obstacle{.words = "%o is of another phase or lane", .op = next};
  }

  Obstacle stays(OpId id) const {
    const auto& results = graph_[id].results;
    if (results.empty()) return not_meant;
    const auto used = std::find_if_not(results.begin() + 1, results.end(),
                                       [&](ValueId result) { return readers_.unused(result); });
    return used == results.end() ? Obstacle{} : Obstacle{.words = "%v is used", .value = *used};
  }

  /// Where all ops of the chain see what they see now: at its end, or at its beginning, where an
  /// update of what it reads stands in between.
  Obstacle find_place(Match& match) const {
    const auto& chain = match.chain;
    const OpId first = chain.front(), last = chain.back();
    Obstacle changed;
    for (auto id = chain.begin(); id != chain.end() && !changed; ++id) {
      if (!in_update_ || *id != last) changed = readers_.moved(*id, first, last, chain);
    }
    if (in_update_) {
      match.place = last;
      return changed;
    }
    const auto made_later = [&](ValueId operand) {
      const OpId producer = operand ? graph_[operand].producer : OpId{};
      return producer && std::find(chain.begin(), chain.end(), producer) == chain.end() &&
             stands_behind(producer, first);
    };
    const auto sees_more = [&](OpId id) {
      const auto& operands = graph_[id].operands;
      return std::any_of(operands.begin(), operands.end(), made_later) ||
             (id != first && readers_.renewer(id, first, id, chain));
    };
    match.place = changed ? first : last;
    return changed && std::any_of(chain.begin(), chain.end(), sees_more) ? changed : Obstacle{};
  }

  /// In one block.
  bool stands_behind(OpId id, OpId other) const {
    const Nesting& nesting = readers_.nesting();
    return nesting.region_of(id) == nesting.region_of(other) &&
           nesting.position_of(id) >= nesting.position_of(other);
  }

  void add_fused(const Match& match, std::vector<ValueId>& map, Builder& builder) const {
    const Op &first = graph_[match.chain.front()], &last = graph_[match.chain.back()];
    std::vector<ValueId> operands, of_any_number;
    for (OpId id : match.chain) {
      const Op& op = graph_[id];
      auto& into = op.definition->variadic > 0 ? of_any_number : operands;
      // Optional operands that were left out keep their places.
      const std::size_t count = std::max(op.operands.size(), op.definition->operands.size());
      for (std::size_t i = 0; i < count; ++i) {
        if (id == match.chain.front() || i != match.fused.form->operand)
          into.push_back(operand_of(op, i));
      }
    }
    operands.insert(operands.end(), of_any_number.begin(), of_any_number.end());
    while (!operands.empty() && !operands.back()) operands.pop_back();
    const Op& like = in_update_ ? last : first;
    builder.context = {.phase = like.phase, .lane = like.lane, .where = like.where};
    const auto results = builder.add(match.fused.by->name, mapped(operands, map), match.attributes);
    if (in_update_) return map_results(last, results, map);
    map[last.results[0].index] = results.at(0);
    copy_placement(graph_, last.results[0], builder.graph(), results[0]);
  }

  const Graph& graph_;
  const bool in_update_;  ///< chains end in an update
  const Readers readers_;
  const std::vector<OpId> ops_;
  std::vector<std::shared_ptr<const Match>> match_of_;  // by op; none: it stays
  std::map<OpId, std::vector<Miss>> misses_;            // by the first op
  int matches_ = 0;
};

int fuse_all(Graph& graph, const OperatorTable& table, bool in_update, Remarks* remarks) {
  // What was fused may be part of a chain itself.
  for (int total = 0;;) {
    const Fuser fuser(graph, table, in_update, remarks != nullptr);
    if (remarks != nullptr) fuser.tell(*remarks);
    const int count = rewrite(graph, table, fuser);
    if (count == 0) return total;
    total += count;
  }
}

}  // namespace

int fuse(Graph& graph, const OperatorTable& table, Remarks* remarks) {
  expect_before_select(graph, "fuse");
  return fuse_all(graph, table, false, remarks);
}

int fuse_updates(Graph& graph, const OperatorTable& table, Remarks* remarks) {
  expect_before_select(graph, "fuse_updates");
  return fuse_all(graph, table, true, remarks);
}

}  // namespace arenite::graph
