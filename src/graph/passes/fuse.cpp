#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/verify.hpp>

#include "src/graph/passes/rebuild.hpp"

#include <algorithm>
#include <memory>

namespace arenite::graph {
namespace {

using Definition = std::shared_ptr<const OperatorDefinition>;

struct Match {
  std::vector<OpId> chain;
  Definition fused;
  Attributes attributes;
};

class Fuser {
 public:
  Fuser(const Graph& graph, const OperatorTable& table)
      : source_(graph), table_(table), readers_(graph.value_count()), output_(graph.value_count()) {
    for (OpId id : source_[Graph::body].ops) {
      for (ValueId operand : source_[id].operands) {
        if (operand) readers_[operand.index].push_back(id);
      }
    }
    for (ValueId output : source_.outputs) output_[output.index] = true;
    for (const std::string& name : table.names()) {
      if (auto definition = table.find(name); definition->fusion) fused_.push_back(definition);
    }
    std::stable_sort(fused_.begin(), fused_.end(), [](const Definition& a, const Definition& b) {
      return a->fusion->chain.size() > b->fusion->chain.size();
    });
  }

  /// Chains in program order of their first ops; no op is in two.
  std::vector<Match> matches() const {
    std::vector<Match> found;
    std::vector<bool> taken(source_.op_count());
    for (const Definition& definition : fused_) {
      for (OpId id : source_[Graph::body].ops) {
        auto match = match_at(id, definition);
        const auto is_taken = [&](OpId op) { return taken[op.index]; };
        if (!match || std::any_of(match->chain.begin(), match->chain.end(), is_taken)) continue;
        for (OpId op : match->chain) taken[op.index] = true;
        found.push_back(std::move(*match));
      }
    }
    return found;
  }

  Graph rebuild(const std::vector<Match>& matches) const {
    std::vector<const Match*> match_of(source_.op_count());
    for (const Match& match : matches) {
      for (OpId id : match.chain) match_of[id.index] = &match;
    }
    Graph target;
    Builder builder(target, table_);
    std::vector<ValueId> map(source_.value_count());
    for (std::size_t i = 0; i < source_.value_count(); ++i) {
      if (!source_[ValueId(i)].producer) map[i] = copy_declared(source_, ValueId(i), builder);
    }
    for (OpId id : source_[Graph::body].ops) {
      const Match* match = match_of[id.index];
      if (!match) {
        copy_op(source_, id, source_[id].lane, map, builder);
      } else if (id == match->chain.back()) {  // all its operands exist by now
        add_fused(*match, map, builder);
      }
    }
    for (ValueId output : source_.outputs) target.outputs.push_back(map[output.index]);
    return target;
  }

 private:
  std::optional<Match> match_at(OpId first, const Definition& definition) const {
    Match match{.chain = {first}, .fused = definition, .attributes = {}};
    const auto& names = definition->fusion->chain;
    if (source_[first].name() != names.front()) return std::nullopt;
    while (match.chain.size() < names.size()) {
      const auto next = follower(match.chain.back());
      if (!next || source_[*next].name() != names[match.chain.size()]) return std::nullopt;
      match.chain.push_back(*next);
    }
    if (!only_first_result_used(match.chain.back()) || overwritten(match)) return std::nullopt;
    std::vector<OpView> views;
    for (OpId id : match.chain) views.emplace_back(source_, source_[id]);
    auto attributes = definition->fusion->attributes(views);
    if (!attributes) return std::nullopt;
    match.attributes = std::move(*attributes);
    return match;
  }

  /// The op that alone reads what this one makes, as its operand 0.
  std::optional<OpId> follower(OpId id) const {
    const Op& op = source_[id];
    if (op.results.empty() || output_[op.results[0].index] || !only_first_result_used(id))
      return std::nullopt;
    const auto& readers = readers_[op.results[0].index];
    if (readers.size() != 1) return std::nullopt;
    const Op& next = source_[readers.front()];
    const bool together = next.phase == op.phase && next.lane == op.lane;
    if (!together || next.operands.front() != op.results[0]) return std::nullopt;
    return readers.front();
  }

  /// The fused op reads at the end of the chain what its ops read along it: nobody may have written
  /// there in between.
  bool overwritten(const Match& match) const {
    std::vector<StorageId> read;
    for (OpId id : match.chain) {
      for (ValueId operand : source_[id].operands) {
        if (operand) read.push_back(source_.root(operand));
      }
    }
    const auto& ops = source_[Graph::body].ops;
    auto at = std::find(ops.begin(), ops.end(), match.chain.front());
    for (; *at != match.chain.back(); ++at) {
      if (std::find(match.chain.begin(), match.chain.end(), *at) != match.chain.end()) continue;
      for (const auto& access : accesses(source_, *at)) {
        if (access.writes && std::find(read.begin(), read.end(), access.storage) != read.end())
          return true;
      }
    }
    return false;
  }

  bool only_first_result_used(OpId id) const {
    const auto& results = source_[id].results;
    return std::all_of(results.begin() + 1, results.end(), [&](ValueId result) {
      return readers_[result.index].empty() && !output_[result.index];
    });
  }

  void add_fused(const Match& match, std::vector<ValueId>& map, Builder& builder) const {
    const Op &first = source_[match.chain.front()], &last = source_[match.chain.back()];
    std::vector<ValueId> operands;
    for (OpId id : match.chain) {
      const auto& own = source_[id].operands;
      for (std::size_t i = id == match.chain.front() ? 0 : 1; i < own.size(); ++i)
        operands.push_back(own[i] ? map[own[i].index] : ValueId{});
    }
    builder.context = {.phase = first.phase, .lane = first.lane, .where = first.where};
    const auto results = builder.add(match.fused->name, operands, match.attributes);
    map[last.results[0].index] = results.at(0);
    copy_placement(source_, last.results[0], builder.graph(), results[0]);
  }

  const Graph& source_;
  const OperatorTable& table_;
  std::vector<std::vector<OpId>> readers_;
  std::vector<bool> output_;
  std::vector<Definition> fused_;  // longest chain first
};

}  // namespace

int fuse(Graph& graph, const OperatorTable& table) {
  if (graph.region_count() > 1) return 0;
  const Fuser fuser(graph, table);
  const auto matches = fuser.matches();
  if (matches.empty()) return 0;
  Graph fused = fuser.rebuild(matches);
  verify(fused);
  graph = std::move(fused);
  return static_cast<int>(matches.size());
}

}  // namespace arenite::graph
