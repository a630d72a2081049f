#include "src/model/plans.hpp"

#include <arenite/graph/entries.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <utility>

namespace arenite {
namespace {

/// "rows=40, tokens=7"
std::string text_of(const graph::SizeValues& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes)
    text += (text.empty() ? "" : ", ") + name + "=" + std::to_string(size);
  return text;
}

}  // namespace

std::string_view to_string(Fit fit) noexcept {
  switch (fit) {
    case Fit::own_plan:
      return "own plan";
    case Fit::cut_of_largest:
      return "cut of the largest";
    case Fit::grown_blocks:
      return "grown blocks";
  }
  return "";
}

ModelPlans::ModelPlans(graph::Graph graph, std::string name, compile::Options how, GraphAt at)
    : graph_(std::move(graph)), name_(std::move(name)), how_(std::move(how)), at_(std::move(at)) {
  for (const auto& [size, bound] : graph::run_time_sizes(graph_)) bounds_[size] = bound;
  if (graph_.training) add_update();
  add_entry("evaluate");
  if (graph_.training && graph_.training->averaging) add_entry("averaged");
  for (const graph::Entry& own : graph_.entries) add_entry(own.name);
}

void ModelPlans::add_entry(std::string name) {
  ways_.push_back({name, entries_.size()});
  entries_.push_back(std::move(name));
}

/// The first program is of an update for as many batches as there may be, which has all states.
void ModelPlans::add_update() {
  const int most = graph_.training->accumulate;
  graph::check_accumulated(most);
  add_entry("train");
  if (most == 1) return;
  ways_[0].part = graph::batch_of_update(most, most - 1, true);
  entries_.emplace_back("accumulate");
  for (int before = 0; before < most - 1; ++before) {
    const graph::BatchOfUpdate part = graph::batch_of_update(most, before, false);
    if (std::ranges::find(ways_, std::optional(part), &Way::part) != ways_.end()) continue;
    ways_.push_back({entries_[1] + (before == 0 ? "" : "." + std::to_string(before + 1)), 1, part});
  }
  for (int before = 0; before < most - 1; ++before) {
    ways_.push_back({"train." + std::to_string(before + 1), 0,
                     graph::batch_of_update(most, before, true), true});
  }
}

std::size_t ModelPlans::way(std::size_t entry, std::int64_t accumulated) const {
  const auto of_entry = [&](const Way& way) { return way.entry == entry; };
  auto found = std::ranges::find_if(ways_, of_entry);
  if (found->part) {
    const std::optional part = graph::batch_of_update(
        graph_.training->accumulate, static_cast<int>(accumulated), found->part->batches > 0);
    found = std::ranges::find_if(ways_,
                                 [&](const Way& way) { return of_entry(way) && way.part == part; });
  }
  return static_cast<std::size_t>(found - ways_.begin());
}

bool ModelPlans::is_own(std::string_view entry) const {
  return std::ranges::find(graph_.entries, entry, &graph::Entry::name) != graph_.entries.end();
}

bool ModelPlans::is_averaged(std::string_view entry) const {
  return entry == "averaged" || std::ranges::any_of(graph_.entries, [&](const graph::Entry& own) {
           return own.name == entry && own.averaged;
         });
}

graph::Graph ModelPlans::graph_of(const std::string& entry, const graph::SizeValues& sizes) const {
  const auto chosen = [&](const graph::Graph& all) {
    return is_own(entry) ? graph::at_entry(all, operators(), entry) : all;
  };
  if (at_) return chosen(at_(entry, sizes));
  // What other ways to run it need may not hold at these sizes.
  const graph::Graph all = chosen(graph_);
  return sizes.empty() ? all : graph::at_sizes(all, sizes);
}

compile::Entry ModelPlans::named(const Way& way, const graph::SizeValues& sizes) const {
  const std::string& entry = entries_[way.entry];
  const bool is_own = this->is_own(entry);
  // No entry of the graph's own has the name of a second program of another one.
  std::string name = name_;
  if (entry != "evaluate") name += (way.name == entry ? "." : "/") + way.name;
  if (!sizes.empty()) name += " at " + text_of(sizes);
  return {.name = std::move(name),
          .train = !is_own && (entry == "train" || entry == "accumulate"),
          .averaged = entry == "averaged",
          .of_graph = is_own,
          .part = way.part};
}

std::string ModelPlans::program_of(std::size_t entry) const {
  return named(*std::ranges::find(ways_, entry, &Way::entry), {}).name;
}

/// What a part of an update is estimated to take is no reason to cut its batch otherwise.
compile::Options ModelPlans::how_at(const Way& way, const graph::SizeValues& sizes) {
  compile::Options how = how_;
  if (!way.part || way.name == ways_[0].name) return how;
  auto known = updates_.find(sizes);
  if (known == updates_.end()) {
    const compile::Compiled last =
        compile::lower(graph_of(entries_[0], sizes), named(ways_[0], sizes), how_);
    known = updates_.emplace(sizes, Largest{0, last.cut, last.at_once}).first;
  }
  how.shards = known->second.cut.shards;
  how.lanes = known->second.cut.lanes;
  how.at_once = known->second.at_once;
  return how;
}

compile::Compiled ModelPlans::largest(const Way& way) {
  compile::Compiled made =
      compile::compile(graph_of(entries_[way.entry], {}), named(way, {}), how_at(way, {}), state_);
  if (ways_[0].part && way.name == ways_[0].name) updates_[{}] = {0, made.cut, made.at_once};
  made.spec.entry = program_of(way.entry);
  largest_.push_back({way.entry, made.cut, made.at_once});
  set_room(room_with({&made.spec, 1}));
  return made;
}

namespace {

bool is_same(const runtime::BlockRoom& room, const plan::BlockPlan& block,
             const std::string& entry) {
  return room.block.name == block.name && (!block.per_task_set || room.entry == entry);
}

}  // namespace

bool ModelPlans::fits(const runtime::ProgramSpec& spec) const {
  return std::ranges::all_of(spec.plan.blocks, [&](const plan::BlockPlan& block) {
    const auto same = std::ranges::find_if(
        room_, [&](const auto& room) { return is_same(room, block, spec.entry); });
    return block.bytes <= (same == room_.end() ? 0 : same->block.bytes);
  });
}

std::vector<runtime::BlockRoom> ModelPlans::room_with(
    std::span<const runtime::ProgramSpec> specs) const {
  std::vector<runtime::BlockRoom> all = room_;
  for (const runtime::ProgramSpec& spec : specs) {
    const std::string& entry = spec.entry.empty() ? spec.name : spec.entry;
    for (const plan::BlockPlan& block : spec.plan.blocks) {
      const auto same =
          std::ranges::find_if(all, [&](const auto& room) { return is_same(room, block, entry); });
      if (same == all.end()) {
        all.push_back({block, entry});
      } else {
        same->block.bytes = std::max(same->block.bytes, block.bytes);
      }
    }
  }
  return all;
}

ModelPlans::Sized ModelPlans::smaller(const Way& way, const graph::SizeValues& sizes) {
  const graph::Graph graph = graph_of(entries_[way.entry], sizes);
  const compile::Entry how_named = named(way, sizes);
  const auto compiled = [&](const compile::Options& how, Fit fit) {
    Sized made{compile::compile(graph, how_named, how, state_), fit};
    made.program.spec.entry = program_of(way.entry);
    return made;
  };
  Sized own = compiled(how_at(way, sizes), Fit::own_plan);
  if (fits(own.program.spec)) return own;
  const Largest& largest = *std::ranges::find(largest_, way.entry, &Largest::entry);
  // Other parts of an update would be cut otherwise.
  if (!way.part && (own.program.cut != largest.cut || own.program.at_once != largest.at_once)) {
    compile::Options how = how_;
    how.shards = largest.cut.shards;
    how.lanes = largest.cut.lanes;
    how.at_once = largest.at_once;
    Sized cut = compiled(how, Fit::cut_of_largest);
    if (fits(cut.program.spec)) return cut;
  }
  own.fit = Fit::grown_blocks;
  return own;
}

compile::Compiled ModelPlans::sweeping(const SweepProgram& program) {
  return swept(program, how_, state_);
}

compile::Compiled ModelPlans::sweeping_alone(const SweepProgram& program, bool remarks) const {
  compile::Options how = how_;
  how.remarks = remarks;
  plan::StateLayout own;
  return swept(program, how, own);
}

compile::Compiled ModelPlans::swept(const SweepProgram& program, const compile::Options& how,
                                    plan::StateLayout& state) const {
  const Way& way = ways_.at(program.way);
  const graph::Graph graph =
      graph::swept(graph_of(entries_[way.entry], program.sizes), operators(), program.sweep);
  compile::Entry entry = named(way, program.sizes);
  entry.name = program.name;
  compile::Compiled made = compile::compile(graph, entry, how, state);
  made.spec.entry = program.entry;
  return made;
}

}  // namespace arenite
