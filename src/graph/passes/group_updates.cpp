#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>

#include "src/graph/passes/fused.hpp"
#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace arenite::graph {
namespace {

/// Larger ones keep a GPU busy without company, and their gradients are not to live longer.
constexpr std::int64_t most_elements = 1 << 16;
/// Rows that the thread of an element adds: beyond, a sum is dealt out to several.
constexpr std::int64_t most_rows = 128;

using Several = Fused<GroupOf>;

std::vector<Several> groups(const OperatorTable& table) {
  std::vector<Several> all = fused_operators<GroupOf>(table);
  expect_one_each(all);
  for (const Several& fused : all) {
    const GroupOf& form = *fused.form;
    const auto one = table.find(form.of), sum = table.find(form.sums);
    const auto has = [&](std::size_t operand) {
      return operand < one->operands.size() && !one->operands[operand].optional;
    };
    if (one && one->variadic == 0 && has(form.shared) && has(form.summed) &&
        form.shared != form.summed && fused.by->operands.size() == one->operands.size() &&
        fused.by->variadic + 1 == one->operands.size() && fused.by->results == one->results &&
        fused.by->attributes.size() == one->attributes.size() &&
        (form.sums.empty() || (sum && sum->operands.size() == 1 && sum->results.size() == 1))) {
      continue;
    }
    fail({.found = "operator '" + fused.by->name + "' with " + fused.by->expected_operands() +
                   " operands, which does '" + form.of + "' in groups",
          .expected = "a registered operator, its shared operand and groups of the others, its "
                      "attributes, and its results of each group"});
  }
  return all;
}

bool in_the_way(const std::vector<Access>& a, const std::vector<Access>& b) {
  return std::ranges::any_of(a, [&](const Access& x) {
    return std::ranges::any_of(b, [&](const Access& y) { return graph::in_the_way(x, y); });
  });
}

class UpdateGrouper {
 public:
  UpdateGrouper(const Graph& graph, const OperatorTable& table, Remarks* remarks)
      : graph_(graph), fused_(groups(table)), readers_(graph), with_(graph.op_count()) {
    for (OpId id : graph_[Graph::body].ops) {
      const Obstacle why = apart(id);
      const bool joins = !why;
      leave(id, why);
      const Member member = joins ? member_of(id) : Member{id, {}, touched(graph_, id), nullptr};
      // A group whose updates cannot wait behind this op is as long as it gets.
      for (auto& group : groups_) {
        group.open = group.open && std::ranges::none_of(group.members, [&](const Member& earlier) {
                       return in_the_way(earlier.touches, member.touches);
                     });
      }
      if (joins) join(member);
    }
    for (const Group& group : groups_) settle(group);
    if (remarks != nullptr) tell(*remarks);
  }

  int count() const noexcept { return count_; }

  bool replace(OpId id, std::vector<ValueId>& map, Builder& builder) const {
    const Group* group = with_[id.index];
    if (group != nullptr && id == group->members.back().update) add_group(*group, map, builder);
    return group != nullptr;
  }

 private:
  struct Member {
    OpId update, sum;  ///< `sum` makes the gradient and goes with it; none: it stays
    std::vector<Access> touches;
    const Several* fused;  ///< what does updates like it together
  };
  struct Group {
    std::vector<Member> members;
    bool open = true;
  };

  /// From an update of a small parameter.
  Obstacle apart(OpId id) const {
    const Op& op = graph_[id];
    const Several* fused = find(fused_, op.name());
    if (fused == nullptr) return not_meant;
    const std::int64_t elements = graph_[op.operands[fused->form->summed]].shape.elements();
    if (elements <= most_elements) return {};
    return {.words = "%n elements keep a GPU busy, and their gradient is not to live longer",
            .number = elements};
  }

  void leave(OpId id, const Obstacle& why) {
    if (why.worth_a_remark()) left_.emplace_back(id, why);
  }

  Member member_of(OpId id) {
    const Several* fused = find(fused_, graph_[id].name());
    const GroupOf& form = *fused->form;
    const ValueId gradient = graph_[id].operands[form.summed];
    const OpId maker = graph_[gradient].producer;
    Member member{id, {}, touched(graph_, id), fused};
    if (!maker || graph_[maker].name() != form.sums) return member;
    if (const Obstacle why = stays(maker, id)) {
      leave(maker, why);
      return member;
    }
    member.sum = maker;
    std::erase_if(member.touches,
                  [&](const Access& a) { return a.storage == graph_.root(gradient); });
    for (Access access : accesses(graph_, maker)) {
      if (access.reads) member.touches.push_back(access);
    }
    return member;
  }

  /// Nothing where the gradient is a sum of few rows that nobody else sees.
  Obstacle stays(OpId maker, OpId update) const {
    const Op& op = graph_[maker];
    const ValueId result = op.results[0];
    const Shape& rows = graph_[op.operands[0]].shape;
    if (const Obstacle why = readers_.only_for(result, update)) return why;
    if (!fills_storage(graph_, result) || graph_.root_storage(result).space != Space{} ||
        graph_[result].layout != Layout{} || graph_[op.operands[0]].layout != Layout{})
      return {.words = "%v is placed by hand", .value = result};
    if (rows.elements() > most_rows * graph_[result].shape.elements())
      return {.words = "it sums more than %n rows", .number = most_rows};
    return readers_.moved(maker, maker, update);
  }

  void join(const Member& member) {
    const Op& op = graph_[member.update];
    const std::size_t shared = member.fused->form->shared;
    const auto fits = [&](const Group& group) {
      const Op& first = graph_[group.members.front().update];
      return group.open && first.definition == op.definition && first.attributes == op.attributes &&
             first.phase == op.phase && first.lane == op.lane &&
             first.operands[shared] == op.operands[shared];
    };
    const auto group = std::ranges::find_if(groups_, fits);
    (group != groups_.end() ? *group : groups_.emplace_back()).members.push_back(member);
  }

  void settle(const Group& group) {
    std::size_t ops = group.members.size();
    for (const Member& member : group.members) ops += member.sum ? 1 : 0;
    if (ops < 2) {
      leave(group.members.front().update, {"no other update joins it"});
      return;
    }
    count_ += static_cast<int>(ops) - 1;
    for (const Member& member : group.members) {
      with_[member.update.index] = &group;
      if (member.sum) with_[member.sum.index] = &group;
    }
  }

  void tell(Remarks& remarks) {
    for (const Group& group : groups_) {
      std::vector<OpId> all;
      for (const Member& member : group.members) {
        if (member.sum) all.push_back(member.sum);
        all.push_back(member.update);
      }
      if (with_[all.back().index] == nullptr) continue;
      remarks.done.push_back({describe(graph_, all), group.members.back().fused->by->name});
    }
    const Nesting& nesting = readers_.nesting();
    std::ranges::sort(left_, {}, [&](const auto& one) { return nesting.position_of(one.first); });
    for (const auto& [id, why] : left_)
      remarks.left.push_back({describe(graph_, id), in_words(graph_, why)});
  }

  void add_group(const Group& group, std::vector<ValueId>& map, Builder& builder) const {
    const Op &first = graph_[group.members.front().update],
             &last = graph_[group.members.back().update];
    const Several& fused = *group.members.front().fused;
    std::vector<ValueId> operands{first.operands[fused.form->shared]};
    for (const Member& member : group.members) {
      const Op& update = graph_[member.update];
      for (std::size_t i = 0; i < update.definition->operands.size(); ++i) {
        if (i == fused.form->shared) continue;
        const bool summed = i == fused.form->summed && member.sum;
        operands.push_back(summed ? graph_[member.sum].operands[0] : operand_of(update, i));
      }
    }
    builder.context = {
        .phase = first.phase,
        .lane = first.lane,
        .where = first.where == last.where ? first.where : first.where + " … " + last.where};
    const auto made = builder.add(fused.by->name, mapped(operands, map), first.attributes);
    std::size_t next = 0;
    for (const Member& member : group.members) {
      for (const ValueId result : graph_[member.update].results)
        map[result.index] = made.at(next++);
    }
  }

  const Graph& graph_;
  const std::vector<Several> fused_;
  const Readers readers_;
  std::vector<Group> groups_;
  std::vector<const Group*> with_;  // by op: the group that it becomes a part of
  std::vector<std::pair<OpId, Obstacle>> left_;
  int count_ = 0;
};

}  // namespace

int group_updates(Graph& graph, const OperatorTable& table, Remarks* remarks) {
  expect_before_select(graph, "group_updates");
  return rewrite(graph, table, UpdateGrouper(graph, table, remarks));
}

}  // namespace arenite::graph
