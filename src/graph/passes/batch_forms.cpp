#include "src/graph/passes/batch_forms.hpp"

#include <arenite/graph/dependencies.hpp>

#include "src/base/words.hpp"
#include "src/graph/passes/ask_share.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/versions.hpp"

#include <algorithm>
#include <set>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace arenite::graph {
namespace {

bool any_of(const std::vector<Split>& split) {
  return std::ranges::find(split, Split::rows) != split.end();
}

/// By value: made, or a parameter, in a block; empty where there are none.
std::vector<bool> inner_values(const Graph& graph) {
  if (graph.region_count() == 1) return {};
  std::vector<bool> inner(graph.value_count(), false);
  for (std::size_t i = 1; i < graph.region_count(); ++i) {
    const Region& region = graph[RegionId(i)];
    for (const ValueId parameter : region.parameters) inner[parameter.index] = true;
    for (const OpId op : region.ops) {
      for (const ValueId result : graph[op].results) inner[result.index] = true;
    }
  }
  return inner;
}

}  // namespace

std::vector<BatchAxis> batch_axes(const Graph& graph) {
  std::vector<BatchAxis> axes;
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    const ValueId id(i);
    const Value& value = graph[id];
    if (value.shape.rank() == 0 || value.shape[0] < 1) continue;
    if (value.batch.empty()) {
      const bool is_input =
          value.is_declared() && graph.root_storage(id).cls == StorageClass::input;
      // Of a single row nobody knows what it is of.
      if (is_input && value.shape[0] > 1)
        axes.push_back({.name = {}, .seeds = {id}, .rows = value.shape[0]});
      continue;
    }
    const auto known = std::ranges::find(axes, value.batch, &BatchAxis::name);
    if (known != axes.end()) {
      known->seeds.push_back(id);
    } else {
      axes.push_back({.name = value.batch, .seeds = {id}, .rows = value.shape[0]});
    }
  }
  return axes;
}

BatchForms::BatchForms(const Graph& graph, BatchAxis axis, const TargetProfile& target)
    : graph_(graph),
      axis_(std::move(axis)),
      inner_(inner_values(graph)),
      seed_(graph.value_count(), false),
      kept_(graph.op_count(), false) {
  for (const ValueId seed : axis_.seeds) seed_[seed.index] = true;
  settle();
  while (keep_whole()) settle();
  objection_ = weigh(target);
}

std::vector<Split> BatchForms::split_operands(OpId op) const {
  std::vector<Split> split;
  for (const ValueId operand : graph_[op].operands)
    split.push_back(by_rows(operand) ? Split::rows : Split::none);
  return split;
}

std::optional<OfShare> BatchForms::ask(OpId id, std::vector<Split> split, std::int64_t begin,
                                       std::int64_t rows) const {
  const Op& op = graph_[id];
  if (only_renews(op)) return std::nullopt;  // of what all lanes share
  auto share = ask_share(graph_, id, {.split = std::move(split), .begin = begin, .count = rows});
  if (share && (!share->name.empty() || !share->finish.empty())) return std::nullopt;
  // Rows of the batch are rows of all it has.
  for (std::size_t i = 0; share && i < op.results.size(); ++i) {
    const Shape& all = graph_[op.results[i]].shape;
    const Result result = share->results[i];
    if (result == Result::columns ||
        (result == Result::rows && (all.rank() == 0 || all[0] != axis_.rows)))
      return std::nullopt;
  }
  return share;
}

/// From the seeds through all ops; again from the start when one more value has joined them.
void BatchForms::settle() {
  for (bool settled = false; !settled;) {
    of_.assign(graph_.value_count(), std::nullopt);
    by_share_.assign(graph_.op_count(), false);
    refusals_.clear();
    for (std::size_t i = 0; i < seed_.size(); ++i) {
      if (seed_[i]) of_[i] = Result::rows;
    }
    settled = true;
    for (const OpId op : graph_[Graph::body].ops) settled = look_at(op) && settled;
  }
}

bool BatchForms::reads_rows(OpId op) const {
  if (graph_[op].regions.empty()) return any_of(split_operands(op));
  bool reads = false;
  for_each_read(op, [&](ValueId value) { reads = reads || by_rows(value); });
  return reads;
}

/// False when a value has joined the seeds.
bool BatchForms::look_at(OpId id) {
  const Op& op = graph_[id];
  std::vector<Split> split = split_operands(id);
  const bool reads = reads_rows(id);
  const bool makes =
      std::ranges::any_of(op.results, [&](ValueId result) { return seed_[result.index]; });
  if (!reads && !makes) return true;
  if (kept_[id.index]) {
    if (reads) refuse(id);
    return true;
  }
  if (const auto share = ask(id, split, 0, 1)) {
    by_share_[id.index] = true;
    for (std::size_t i = 0; i < op.results.size(); ++i)
      of_[op.results[i].index] = share->results[i];
    return true;
  }
  if (!reads) return true;  // makes all samples at once
  if (join(id)) return false;
  refuse(id);
  return true;
}

/// Lets what the op would need by rows, too, have them: its operands, or what these are made of by
/// the next few ops, as targets are negated.
bool BatchForms::join(OpId id) {
  constexpr std::size_t most = 8;
  std::vector<OpId> near{id};
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (join_operands(near[i])) return true;
    for (const ValueId operand : graph_[near[i]].operands) {
      if (!operand || of(operand) || !is_as_long(operand) || near.size() == most) continue;
      const OpId maker = producer(operand);
      if (maker && !kept_[maker.index] && graph_[maker].regions.empty() &&
          std::ranges::find(near, maker) == near.end())
        near.push_back(maker);
    }
  }
  return false;
}

bool BatchForms::join_operands(OpId id) {
  const auto& operands = graph_[id].operands;
  std::vector<Split> split = split_operands(id);
  std::vector<ValueId> joining;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (split[i] == Split::rows || !may_join(operands[i])) continue;
    split[i] = Split::rows;
    joining.push_back(operands[i]);
  }
  if (joining.empty() || !ask(id, std::move(split), 0, 1)) return false;
  for (const ValueId value : joining) seed_[value.index] = true;
  return true;
}

bool BatchForms::is_as_long(ValueId id) const {
  const Value& value = graph_[id];
  return value.batch.empty() && value.shape.rank() > 0 && value.shape[0] == axis_.rows;
}

/// As long as the batch, no other batch's, and no more bound to be whole than an input is.
bool BatchForms::may_join(ValueId id) const {
  if (!id || of(id) || !is_as_long(id)) return false;
  const Value& value = graph_[id];
  if (value.producer) return makes_rows(value.producer);
  const StorageClass cls = graph_.root_storage(id).cls;
  return value.is_declared() && (cls == StorageClass::input || cls == StorageClass::constant);
}

/// The op makes samples, or something for each of them, of values that have nothing to do with
/// them.
bool BatchForms::makes_rows(OpId id) const {
  const std::vector<Split> split = split_operands(id);
  if (any_of(split) || kept_[id.index]) return false;
  const auto share = ask(id, split, 0, 1);
  return share && std::ranges::count(share->results, Result::sum) == 0;
}

void BatchForms::refuse(OpId id) {
  const Op& op = graph_[id];
  std::set<std::string> names;
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    if (by_rows(op.operands[i])) names.insert("'" + op.definition->operand_schema(i).name + "'");
  const std::string all =
      fmt::format("it sees {}{}{} at once",
                  axis_.rows == 1 ? "the sample" : "all " + counted(axis_.rows, "sample"),
                  names.empty()       ? ""
                  : names.size() == 1 ? " of its operand "
                                      : " of its operands ",
                  fmt::join(names, ", "));
  refusals_.push_back({id, !op.regions.empty()        ? all + " in its blocks"
                           : kept_[id.index]          ? all + ": what it makes is needed as a whole"
                           : !op.definition->of_share ? all + ": the operator has no of_share"
                                                      : all});
}

/// What whole ops read of the batch has to be there: as a whole from the start, put together from
/// the shares' rows, or made of all samples at once. True when one op more does that.
bool BatchForms::keep_whole() {
  const auto needed = [&](ValueId value) {
    if (!by_rows(value) || is_there_whole(value)) return false;
    const OpId maker = producer(value);
    const bool joins = graph_[value].type == DType::float32;  // as `stack_columns` does
    if (kept_[maker.index] || (joins && any_of(split_operands(maker)))) return false;
    kept_[maker.index] = true;
    for (const ValueId result : graph_[maker].results) {
      if (by_rows(result)) seed_[result.index] = true;
    }
    return true;
  };
  bool more = false;
  for (const OpId id : graph_[Graph::body].ops) {
    if (!by_share(id)) for_each_read(id, [&](ValueId value) { more = needed(value) || more; });
  }
  return more;
}

/// Lanes pay where most of the work is done in them.
std::string BatchForms::weigh(const TargetProfile& target) const {
  const auto shared = [&](OpId id) { return by_share(id); };
  const bool any = std::ranges::any_of(graph_[Graph::body].ops, shared);
  if (any && 2 * estimate(graph_, target, shared) >= estimate(graph_, target)) return {};
  if (!refusals_.empty()) {
    return describe(graph_, refusals_.front().op) + " cannot work on a share of " +
           counted(axis_.rows, "sample") + ": " + refusals_.front().why;
  }
  if (!any) return "no op works on " + counted(axis_.rows, "sample");
  return "most of the work is not on its " + counted(axis_.rows, "sample");
}

}  // namespace arenite::graph
