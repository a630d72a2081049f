#include <arenite/error.hpp>
#include <arenite/graph/spaces.hpp>
#include <arenite/plan/step_plan.hpp>

#include <algorithm>
#include <iterator>

#include "src/base/names.hpp"
#include "src/plan/overlap.hpp"
#include "src/plan/piece_reuse.hpp"
#include "src/plan/step_problems.hpp"
#include "src/plan/step_usage.hpp"
#include "src/plan/task_order.hpp"

namespace arenite::plan {
namespace {

using graph::Graph;
using graph::Schedule;
using graph::StorageClass;
using graph::StorageId;

constexpr Names<ArenaLayout, 3> layout_names{
    {{ArenaLayout::overlay, "overlay"}, {ArenaLayout::two, "two"}, {ArenaLayout::reset, "reset"}}};

class StepPlanner {
 public:
  StepPlanner(const Graph& graph, const Schedule& schedule, StateLayout& state,
              const StepOptions& options)
      : graph_(graph),
        schedule_(schedule),
        state_(state),
        options_(options),
        usage_(usages(graph, schedule)),
        data_order_(schedule),
        spaces_(spaces_of(graph)) {}

  StepPlan run() {
    plan_.layout = options_.layout;
    const std::vector<StepProblem> problems = step_problems(graph_, schedule_, usage_, options_);
    for (const Space& space : spaces_) place_state(space);
    for (const Space& space : spaces_) {
      place_apart("input", space, [this](StorageId id) { return is_input(id); });
    }
    for (const Space& space : spaces_) {
      place_apart("output", space, [this](StorageId id) { return is_output(id); });
    }
    for (const StepProblem& problem : problems) pack(problem);
    plan_.reuse_edges = necessary_edges(schedule_, std::move(needed_));
    std::sort(plan_.placements.begin(), plan_.placements.end(),
              [](const Placement& a, const Placement& b) { return a.storage < b.storage; });
    measure_arenas();
    plan_.critical_path_without = critical_path(false);
    plan_.critical_path = critical_path(true);
    return std::move(plan_);
  }

 private:
  Placement describe(StorageId id) const {
    const graph::Storage& storage = graph_.storage(id);
    const Usage& usage = usage_[id.index];
    return {.storage = id,
            .name = storage.name,
            .bytes = storage.bytes,
            .cls = storage.cls,
            .phase = usage.first_phase.value_or(Phase::init),
            .saved = is_saved(storage, usage)};
  }

  void place_state(const Space& space) {
    const std::string name = "state" + block_suffix(space);
    bool any = is_default(space);
    for_each_root(graph_, [&](StorageId id, const graph::Storage& storage) {
      if (storage.space != space) return;
      Placement place = describe(id);
      const bool constant = storage.cls == StorageClass::constant;
      if (is_persistent(storage.cls) || (constant && space.device != DeviceKind::cpu)) {
        place.block = plan_.blocks.size();
        place.offset = state_.place(storage.cls, storage.name, storage.bytes, space);
        any = true;
      } else if (constant) {
        place.external = true;
      } else {
        return;
      }
      plan_.placements.push_back(std::move(place));
    });
    if (!any) return;
    plan_.blocks.push_back(
        {.name = name, .space = space, .bytes = state_.bytes(space), .persistent = true});
  }

  /// One after another, in a block that every task set has for itself.
  template <class Chosen>
  void place_apart(const std::string& name, const Space& space, Chosen chosen) {
    std::int64_t end = 0;
    bool any = is_default(space) && name == "input";
    for_each_root(graph_, [&](StorageId id, const graph::Storage& storage) {
      if (storage.space != space || !chosen(id)) return;
      Placement place = describe(id);
      place.block = plan_.blocks.size();
      place.offset = end;
      end = round_up(end + storage.bytes, default_alignment);
      plan_.placements.push_back(std::move(place));
      any = true;
    });
    if (!any) return;
    plan_.blocks.push_back(
        {.name = name + block_suffix(space), .space = space, .bytes = end, .per_task_set = true});
  }

  void pack(const StepProblem& step) {
    Plan packing = solve(step.problem, options_.solve);
    const std::size_t block = plan_.blocks.size();
    plan_.blocks.push_back({.name = step.block,
                            .space = step.space,
                            .bytes = round_up(packing.peak, default_alignment)});
    for (std::size_t i = 0; i < step.storages.size(); ++i) {
      Placement place = describe(step.storages[i]);
      place.block = block;
      place.offset = packing.offsets[i];
      plan_.separate += round_up(place.bytes, default_alignment);
      plan_.placements.push_back(std::move(place));
    }
    const auto uses = [&](const BufferPiece& piece) {
      return usage_[step.storages[piece.buffer].index].pieces()[piece.piece];
    };
    for (const auto& [next, previous] : find_piece_reuse(packing))
      need_edges(uses(previous), uses(next));
    plan_.lower_bound += packing.lower_bound;
    plan_.packings.push_back(std::move(packing));
  }

  /// Each user of the old tenant → each user of the new one, where no path leads there yet.
  void need_edges(std::span<const TaskUse> old_tenant, std::span<const TaskUse> new_tenant) {
    for (const TaskUse& p : old_tenant) {
      for (const TaskUse& q : new_tenant) {
        if (p.task == q.task || data_order_.before(p.task, q.task)) continue;
        needed_.push_back({graph::TaskId(p.task), graph::TaskId(q.task)});
      }
    }
  }

  void measure_arenas() {
    for (std::size_t b = 0; b < plan_.blocks.size(); ++b) {
      const BlockPlan& block = plan_.blocks[b];
      if (block.persistent || block.per_task_set) continue;
      for (Phase phase : {Phase::forward, Phase::backward}) {
        const std::string own = std::string(to_string(phase)) + block_suffix(block.space);
        if (plan_.layout == ArenaLayout::two && block.name != own) continue;
        measure_arena(b, phase);
      }
    }
    plan_.optimal = std::all_of(plan_.packings.begin(), plan_.packings.end(),
                                [](const Plan& p) { return p.optimal; });
  }

  void measure_arena(std::size_t block, Phase phase) {
    ArenaPlan arena{.phase = phase, .block = plan_.blocks[block].name};
    std::vector<ByteRange> ranges;
    for (const Placement& place : plan_.placements) {
      if (place.external || place.block != block) continue;
      if (late(place.storage) != (phase == Phase::backward)) continue;
      const std::int64_t bytes = round_up(place.bytes, default_alignment);
      ranges.push_back({place.offset, place.offset + bytes});
      arena.separate += bytes;
    }
    arena.peak = bytes_covered(std::move(ranges));
    plan_.arenas.push_back(std::move(arena));
  }

  double critical_path(bool with_reuse) const {
    std::vector<std::vector<std::size_t>> edges(schedule_.tasks.size());
    for (std::size_t t = 0; t < edges.size(); ++t) {
      for (graph::TaskId p : schedule_.tasks[t].predecessors) edges[t].push_back(p.index);
    }
    if (with_reuse) {
      for (const TaskEdge& edge : plan_.reuse_edges)
        edges[edge.after.index].push_back(edge.before.index);
    }
    std::vector<double> finish(edges.size(), 0);
    double longest = 0;
    for (std::size_t t = 0; t < edges.size(); ++t) {
      for (std::size_t p : edges[t]) finish[t] = std::max(finish[t], finish[p]);
      finish[t] += schedule_.tasks[t].microseconds;
      longest = std::max(longest, finish[t]);
    }
    return longest;
  }

  bool late(StorageId id) const { return usage_[id.index].in_backward_arena(); }
  bool is_input(StorageId id) const { return graph_.storage(id).cls == StorageClass::input; }
  bool is_output(StorageId id) const {
    return usage_[id.index].output && is_transient(graph_.storage(id).cls);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  StateLayout& state_;
  const StepOptions& options_;
  const std::vector<Usage> usage_;
  const TaskOrder data_order_;
  const std::vector<Space> spaces_;
  std::vector<TaskEdge> needed_;
  StepPlan plan_;
};

}  // namespace

std::string_view to_string(ArenaLayout layout) noexcept { return name_of(layout, layout_names); }

ArenaLayout parse_arena_layout(std::string_view text) {
  if (const auto layout = find_name(text, layout_names)) return *layout;
  fail({.found = "unknown arena layout '" + std::string(text) + "'", .expected = "overlay or two"});
}

InFlight::InFlight(std::size_t tasks) : tasks_(tasks) {
  if (tasks == 0) {
    fail({.found = "0 tasks in flight",
          .expected = "at least 1",
          .hint = "InFlight::unlimited() adds no order"});
  }
}

std::string to_string(InFlight in_flight) {
  if (in_flight.is_lanes()) return "lanes";
  return in_flight.is_unlimited() ? "unlimited" : std::to_string(in_flight.tasks());
}

std::string block_suffix(const Space& space) {
  return is_default(space) ? "" : graph::suffix(space);
}

const Placement& StepPlan::placement(graph::StorageId root) const {
  auto it =
      std::lower_bound(placements.begin(), placements.end(), root,
                       [](const Placement& p, graph::StorageId id) { return p.storage < id; });
  if (it == placements.end() || it->storage != root) {
    fail({.found = "storage " + std::to_string(root.index) + " has no place",
          .expected = "a storage the step uses"});
  }
  return *it;
}

std::int64_t StepPlan::transient_bytes() const noexcept {
  std::int64_t bytes = 0;
  for (const BlockPlan& block : blocks) {
    if (!block.persistent && !block.per_task_set) bytes += block.bytes;
  }
  return bytes;
}

StepPlan plan_step(const graph::Graph& graph, const graph::Schedule& schedule, StateLayout& state,
                   const StepOptions& options) {
  return StepPlanner(graph, schedule, state, options).run();
}

/// The first hole that is large enough, or the end.
std::int64_t StateLayout::Block::take(std::int64_t size) {
  const auto hole =
      std::ranges::find_if(holes, [&](const auto& one) { return size > 0 && one.second >= size; });
  if (hole == holes.end()) {
    const auto last = holes.empty() ? holes.end() : std::prev(holes.end());
    const bool grows = size > 0 && last != holes.end() && last->first + last->second == bytes;
    const std::int64_t begin = grows ? last->first : bytes;
    if (grows) holes.erase(last);
    bytes = begin + size;
    return begin;
  }
  const auto [begin, had] = *hole;
  holes.erase(hole);
  if (had > size) holes[begin + size] = had - size;
  return begin;
}

void StateLayout::release(graph::StorageClass cls, const std::string& name, const Space& space) {
  const auto block = blocks_.find(to_string(space));
  if (block == blocks_.end()) return;
  auto& [places, holes, bytes] = block->second;
  const auto known = places.find({cls, name});
  if (known == places.end()) return;
  auto [begin, size] = known->second;
  places.erase(known);
  size = round_up(size, default_alignment);
  if (size == 0) return;
  auto next = holes.lower_bound(begin);
  if (next != holes.end() && next->first == begin + size) {
    size += next->second;
    next = holes.erase(next);
  }
  if (next != holes.begin() && std::prev(next)->first + std::prev(next)->second == begin) {
    std::prev(next)->second += size;
  } else {
    holes[begin] = size;
  }
}

std::int64_t StateLayout::place(graph::StorageClass cls, const std::string& name,
                                std::int64_t bytes, const Space& space) {
  Block& block = blocks_[to_string(space)];
  auto [it, added] = block.places.try_emplace({cls, name}, 0, bytes);
  if (added) {
    it->second.first = block.take(round_up(bytes, default_alignment));
  } else if (it->second.second != bytes) {
    fail({.found = "persistent storage '" + name + "' of " + std::to_string(bytes) + " bytes",
          .expected = std::to_string(it->second.second) + " bytes, as in an earlier program"});
  }
  return it->second.first;
}

std::int64_t StateLayout::offset(graph::StorageClass cls, const std::string& name,
                                 const Space& space) const {
  if (const auto block = blocks_.find(to_string(space)); block != blocks_.end()) {
    const auto it = block->second.places.find({cls, name});
    if (it != block->second.places.end()) return it->second.first;
  }
  fail({.found = "no persistent storage '" + name + "' in " + to_string(space),
        .expected = "a name of this model"});
}

std::int64_t StateLayout::bytes(const Space& space) const {
  const auto block = blocks_.find(to_string(space));
  return block == blocks_.end() ? 0 : block->second.bytes;
}

}  // namespace arenite::plan
