#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>

#include "src/graph/passes/ask_share.hpp"
#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/row_parts.hpp"
#include "src/graph/passes/sharing.hpp"
#include "src/graph/values.hpp"
#include "src/graph/versions.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

namespace arenite::graph {
namespace {

constexpr std::size_t samples_operand = 0, weight_operand = 1;

/// What an op that keeps samples [N, I] apart is on some rows of a weight [I, O]: on the samples'
/// columns for them, a term of the result, or on whole samples, columns of the result. None: it
/// needs the whole weight.
std::optional<OfShare> of_features(const Graph& graph, OpId id, const RowPart& part) {
  using enum OfShare::Result;
  const Op& op = graph[id];
  const auto is_matrix = [&](ValueId value) {
    return value && graph[value].type == DType::float32 && graph[value].shape.rank() == 2;
  };
  if (op.operands.size() <= weight_operand || op.results.size() != 1 ||
      !is_matrix(op.operands[samples_operand]) || !is_matrix(op.results[0]))
    return std::nullopt;
  Share share{.split = std::vector(op.operands.size(), Split::none), .begin = 0, .count = 1};
  share.split[samples_operand] = Split::rows;
  const auto apart = ask_share(graph, id, share);
  if (!apart || apart->results != std::vector{rows}) return std::nullopt;
  share = {.split = std::move(share.split), .begin = part.begin, .count = part.end - part.begin};
  share.split[weight_operand] = Split::rows;
  for (const auto& [samples, result] : {std::pair{Split::columns, sum}, {Split::none, columns}}) {
    share.split[samples_operand] = samples;
    auto made = ask_share(graph, id, share);
    if (made && made->results == std::vector{result}) return made;
  }
  return std::nullopt;
}

/// The operands that what follows the sum of the parts takes, in its order.
std::vector<ValueId> finishing(const Op& op, const OfShare& part) {
  std::vector<ValueId> all;
  for (const OfShare::Finish& finish : part.finish) {
    for (const std::size_t i : finish.operands) all.push_back(op.operands[i]);
  }
  return all;
}

/// The same op in each lane, on that lane's samples and the whole weight.
struct Group {
  struct Part {
    RowPart rows;
    OfShare of;  ///< what the first op is on it
  };
  std::vector<OpId> ops;  ///< by lane
  std::vector<Part> parts;
};

class Groups {
 public:
  Groups(const Graph& graph, const TargetProfile& target, Remarks* remarks)
      : graph_(graph), target_(target), readers_(graph), lanes_(lane_count(graph)) {
    if (lanes_ < 2) return;
    for (const ValueId weight : declared_values(graph)) {
      const Obstacle why = add_groups_of(weight);
      note(
          remarks, graph_, why, [&] { return name_of(graph_, weight); },
          [&] { return std::to_string(lanes_) + " parts, one a lane"; });
    }
  }

  const std::vector<Group>& all() const noexcept { return groups_; }
  int weights() const noexcept { return weights_; }

 private:
  /// Unless somebody reads the weight otherwise: then all of it has to go from worker to worker
  /// anyway.
  Obstacle add_groups_of(ValueId weight) {
    const Value& value = graph_[weight];
    const auto meant = [&](const Readers::Reader& reader) {
      return of_part(reader.op, weight).has_value();
    };
    if (std::ranges::none_of(readers_.of(weight), meant)) return not_meant;
    const auto readers = static_cast<std::int64_t>(readers_.of(weight).size());
    if (!is_persistent(graph_.storage(value.storage).cls) || value.type != DType::float32 ||
        value.shape.rank() != 2 || value.layout != Layout{})
      return {.words = "%v is no float32 matrix that lasts", .value = weight};
    if (readers <= lanes_)
      return {.words = "no more than %n ops read %v", .value = weight, .number = readers};
    std::map<std::pair<std::string, std::vector<ValueId>>, Group> found;
    bool updated = false;
    for (const auto& [id, in_block] : readers_.of(weight)) {
      if (in_block) return {.words = "%v is read in a block of %o", .value = weight, .op = id};
      if (updates(id, weight)) {
        updated = true;
      } else if (const auto part = splittable(id, weight)) {
        const Op& op = graph_[id];
        Group& group = found[{std::string(op.name()), finishing(op, *part)}];
        if (static_cast<std::int64_t>(found.size()) * lanes_ >= readers)
          return {.words = "%v is not read alike in all lanes", .value = weight};
        group.ops.resize(static_cast<std::size_t>(lanes_));
        OpId& mine = group.ops[static_cast<std::size_t>(op.lane)];
        if (mine) return {.words = "%o is not alone in its lane", .op = id};
        mine = id;
      } else {
        return {.words = "%o takes all of it", .op = id};
      }
    }
    if (!updated || found.empty()) return {.words = "%v is not updated", .value = weight};
    for (const auto& [key, group] : found) {
      if (!complete(group)) return {.words = "%v is not read alike in all lanes", .value = weight};
      if (const Obstacle why = costs(group, weight)) return why;
    }
    for (auto& [key, group] : found) {
      const OpId first = group.ops.front();
      for (const RowPart& rows : row_parts(value.shape[0], lanes_, lanes_)) {
        auto of = of_features(graph_, first, rows);
        if (!of) return {.words = "%o takes all of it", .op = first};
        group.parts.push_back({rows, std::move(*of)});
      }
    }
    ++weights_;
    for (auto& [key, group] : found) groups_.push_back(std::move(group));
    return {};
  }

  bool updates(OpId id, ValueId weight) const {
    const Op& op = graph_[id];
    bool found = false;
    for_each_renewed(op, [&](std::size_t, std::size_t i) { found |= op.operands[i] == weight; });
    return found;
  }

  /// What the op is on a row of the weight.
  std::optional<OfShare> of_part(OpId id, ValueId weight) const {
    const Op& op = graph_[id];
    if (operand_of(op, weight_operand) != weight) return std::nullopt;
    return of_features(graph_, id, {.begin = 0, .end = 1});
  }

  /// The same where nothing else is in the way of parts: all operands are the samples, the weight,
  /// or for what follows.
  std::optional<OfShare> splittable(OpId id, ValueId weight) const {
    const Op& op = graph_[id];
    auto part = of_part(id, weight);
    if (!part || op.lane < 0 || std::ranges::count(op.operands, weight) != 1 ||
        !as_made(graph_, op.results[0]))
      return std::nullopt;
    const auto others = std::count_if(op.operands.begin() + 2, op.operands.end(),
                                      [](ValueId operand) { return bool(operand); });
    return std::ssize(finishing(op, *part)) == others ? part : std::nullopt;
  }

  bool complete(const Group& group) const {
    const Op* first = group.ops.front() ? &graph_[group.ops.front()] : nullptr;
    return first && std::all_of(group.ops.begin(), group.ops.end(), [&](OpId id) {
             return id && graph_[id].phase == first->phase &&
                    graph_[id].attributes == first->attributes;
           });
  }

  /// Each lane would read what the others have updated of the weight, once for all its ops on it,
  /// and instead meets them before and after the op. Asked of each op of the weight: what forward
  /// spares, backward must not cost.
  Obstacle costs(const Group& group, ValueId weight) const {
    const Shape& shape = graph_[weight].shape;
    std::int64_t samples = 0;
    for (OpId id : group.ops) samples += graph_[graph_[id].operands[samples_operand]].shape[0];
    const auto others = static_cast<double>(lanes_ - 1) / static_cast<double>(lanes_);
    const double bytes = others * sizeof(float) * static_cast<double>(shape.elements());
    if (shape[0] < lanes_ * row_granule(lanes_))
      return {.words = "the lanes' weight is of %n rows: too few for all of them",
              .number = shape[0]};
    if (bytes * 1e-3 / target_.handover_gigabytes < 2 * target_.meeting_microseconds) {
      return {.words =
                  "the lanes' weight is of %n elements: handing it over costs less than two "
                  "meetings",
              .number = shape.elements()};
    }
    if (2.0 * static_cast<double>(samples) > others * static_cast<double>(shape[1])) {
      return {.words = "the lanes' %n samples cost more to hand over than the weight",
              .number = samples};
    }
    return {};
  }

  const Graph& graph_;
  const TargetProfile& target_;
  const Readers readers_;
  const std::int64_t lanes_;
  std::vector<Group> groups_;
  int weights_ = 0;
};

/// Ops in an order in which those of a group stand side by side; empty when there is none.
class Order {
 public:
  Order(const Graph& graph, const std::vector<Group>& groups)
      : graph_(graph), stands_for_(graph.op_count()) {
    for (std::size_t i = 0; i < graph.op_count(); ++i) stands_for_[i] = OpId(i);
    for (const Group& group : groups) {
      for (OpId id : group.ops) stands_for_[id.index] = group.ops.front();
    }
  }

  std::vector<OpId> sorted() const {
    const auto& ops = graph_[Graph::body].ops;
    const Dependencies before = dependencies(graph_);
    const Nesting nesting(graph_);
    std::map<StorageId, std::vector<OpId>> readers;
    std::vector<std::vector<OpId>> behind(graph_.op_count());
    std::vector<std::size_t> waits(graph_.op_count(), 0), place(graph_.op_count(), 0);
    const auto follow = [&](OpId id, OpId first) {
      const OpId a = stands_for_[first.index], b = stands_for_[id.index];
      if (a == b) return;
      behind[a.index].push_back(b);
      ++waits[b.index];
    };
    for (std::size_t i = 0; i < ops.size(); ++i) {
      place[ops[i].index] = i;
      for (OpId p : before.of(ops[i])) follow(ops[i], p);
      for_each_named(graph_, ops[i], [&](ValueId value) {
        const OpId maker = graph_[value].producer;
        if (maker && nesting.region_of(maker) == Graph::body) follow(ops[i], maker);
      });
      // A new version stays behind all that reads any part of the old one.
      for (const Access& access : touched(graph_, ops[i])) {
        if (access.writes) {
          for (OpId reader : readers[access.storage]) follow(ops[i], reader);
        } else {
          readers[access.storage].push_back(ops[i]);
        }
      }
    }
    const auto later = [&](OpId a, OpId b) { return place[a.index] > place[b.index]; };
    std::priority_queue<OpId, std::vector<OpId>, decltype(later)> ready(later);
    const auto add = [&](OpId id) {
      if (waits[id.index] == 0 && stands_for_[id.index] == id) ready.push(id);
    };
    for (OpId id : ops) add(id);
    std::vector<OpId> order;
    while (!ready.empty()) {
      const OpId id = ready.top();
      ready.pop();
      order.push_back(id);
      for (OpId next : behind[id.index]) {
        if (--waits[next.index] == 0) ready.push(next);
      }
    }
    const bool all =
        std::all_of(ops.begin(), ops.end(), [&](OpId id) { return waits[id.index] == 0; });
    return all ? order : std::vector<OpId>{};
  }

 private:
  const Graph& graph_;
  std::vector<OpId> stands_for_;  // by op: the first of its group
};

/// Appends what a group becomes.
class Emitter {
 public:
  Emitter(const Graph& source, const Group& group, std::vector<ValueId>& map, Builder& builder)
      : source_(source), group_(group), map_(map), builder_(builder) {}

  void add() {
    const OfShare& of = group_.parts.front().of;
    std::vector<ValueId> made;
    for (const Group::Part& part : group_.parts) made.push_back(add_part(part));
    std::int64_t begin = 0;
    for (OpId id : group_.ops) {
      const Op& op = source_[id];
      const std::int64_t end = begin + source_[op.operands[samples_operand]].shape[0];
      enter(op, op.lane);
      const ValueId result =
          adds_up(of) ? add_up(of, op, made, begin, end)
                      : builder_.add1("join_columns", made, {{"rows", List{begin, end}}});
      map_[op.results[0].index] = result;
      builder_.graph()[result].name = source_[op.results[0]].name;
      begin = end;
    }
  }

 private:
  using List = std::vector<std::int64_t>;

  const Op& first() const { return source_[group_.ops.front()]; }

  void enter(const Op& op, int lane) {
    builder_.context = {.phase = op.phase, .lane = lane, .where = op.where};
  }

  static bool adds_up(const OfShare& of) { return of.results.front() == OfShare::Result::sum; }

  ValueId add_part(const Group::Part& part) {
    const std::int64_t begin = part.rows.begin, end = part.rows.end;
    enter(first(), part.rows.lane);
    std::vector<ValueId> samples;
    for (OpId id : group_.ops) samples.push_back(map_[source_[id].operands[samples_operand].index]);
    const List columns = adds_up(part.of) ? List{begin, end} : List{};
    const ValueId all = builder_.add1("stack_columns", samples, {{"columns", columns}}),
                  rows = builder_.add1("slice", {map_[first().operands[weight_operand].index]},
                                       {{"begin", begin}, {"end", end}});
    const std::string& name = part.of.name;
    const ValueId made = builder_.add(name.empty() ? first().definition : builder_.table().at(name),
                                      {all, rows}, part.of.attributes)[0];
    check_part(part, made);
    return made;
  }

  /// Of the samples of all lanes.
  void check_part(const Group::Part& part, ValueId made) const {
    const Shape &one = source_[first().results[0]].shape, &all = builder_.graph()[made].shape;
    check_share(source_, group_.ops.front(), 0, part.of.results.front(),
                part.rows.end - part.rows.begin, all.rank() > 0 ? all.with(0, one[0]) : all);
  }

  ValueId add_up(const OfShare& of, const Op& op, const std::vector<ValueId>& parts,
                 std::int64_t begin, std::int64_t end) {
    std::vector<ValueId> terms;
    for (ValueId part : parts)
      terms.push_back(builder_.add1("slice", {part}, {{"begin", begin}, {"end", end}}));
    ValueId sum = builder_.add1("sum", terms);
    for (const OfShare::Finish& finish : of.finish) {
      std::vector<ValueId> operands{sum};
      for (const std::size_t i : finish.operands) operands.push_back(map_[op.operands[i].index]);
      sum = builder_.add1(finish.name, operands);
    }
    return sum;
  }

  const Graph& source_;
  const Group& group_;
  std::vector<ValueId>& map_;
  Builder& builder_;
};

/// Where there is no order for them, what was to be split stays.
void add(const Remarks& split, bool no_order, Remarks& remarks) {
  for (const auto& [what, how] : split.done) {
    if (no_order) {
      remarks.left.push_back({what, "the lanes' ops on weights depend on each other"});
    } else {
      remarks.done.push_back({what, how});
    }
  }
  remarks.left.insert(remarks.left.end(), split.left.begin(), split.left.end());
}

}  // namespace

int split_features(Graph& graph, const OperatorTable& table, const TargetProfile& target,
                   Remarks* remarks) {
  expect_before_select(graph, "split_features");
  check(target);
  Remarks split;
  const Groups groups(graph, target, remarks != nullptr ? &split : nullptr);
  std::vector<OpId> order;
  if (!groups.all().empty()) order = Order(graph, groups.all()).sorted();
  if (remarks != nullptr) add(split, order.empty(), *remarks);
  if (order.empty()) return 0;
  std::map<OpId, const Group*> first;
  for (const Group& group : groups.all()) first.emplace(group.ops.front(), &group);
  graph = rebuild(graph, table, order, [&](OpId id, std::vector<ValueId>& map, Builder& builder) {
    const auto group = first.find(id);
    if (group == first.end()) return false;
    Emitter(graph, *group->second, map, builder).add();
    return true;
  });
  return groups.weights();
}

}  // namespace arenite::graph
