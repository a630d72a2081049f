#include "src/model/plans.hpp"

#include <arenite/graph/entries.hpp>
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

ModelPlans::ModelPlans(graph::Graph graph, std::string name, compile::Options how)
    : graph_(std::move(graph)), name_(std::move(name)), how_(std::move(how)) {
  for (const auto& [size, bound] : graph::run_time_sizes(graph_)) bounds_[size] = bound;
  if (graph_.training) entries_.emplace_back("train");
  entries_.emplace_back("evaluate");
  if (graph_.training && graph_.training->averaging) entries_.emplace_back("averaged");
  for (const graph::Entry& own : graph_.entries) entries_.push_back(own.name);
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
  // What other ways to run it need may not hold at these sizes.
  graph::Graph all = is_own(entry) ? graph::at_entry(graph_, operators(), entry) : graph_;
  return sizes.empty() ? all : graph::at_sizes(all, sizes);
}

compile::Entry ModelPlans::named(const std::string& entry, const graph::SizeValues& sizes) const {
  std::string name = entry == "evaluate" ? name_ : name_ + "." + entry;
  if (!sizes.empty()) name += " at " + text_of(sizes);
  return {.name = std::move(name),
          .train = entry == "train",
          .averaged = entry == "averaged",
          .of_graph = is_own(entry)};
}

compile::Compiled ModelPlans::largest(const std::string& entry) {
  compile::Compiled made = compile::compile(graph_of(entry, {}), named(entry, {}), how_, state_);
  largest_.push_back({entry, made.cut, made.at_once});
  set_room(room_with(made.spec));
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

std::vector<runtime::BlockRoom> ModelPlans::room_with(const runtime::ProgramSpec& spec) const {
  std::vector<runtime::BlockRoom> all = room_;
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
  return all;
}

ModelPlans::Sized ModelPlans::smaller(const std::string& entry, const graph::SizeValues& sizes) {
  const graph::Graph graph = graph_of(entry, sizes);
  const compile::Entry how_named = named(entry, sizes);
  const auto compiled = [&](const compile::Options& how, Fit fit) {
    Sized made{compile::compile(graph, how_named, how, state_), fit};
    made.program.spec.entry = named(entry, {}).name;
    return made;
  };
  Sized own = compiled(how_, Fit::own_plan);
  if (fits(own.program.spec)) return own;
  const Largest& largest = *std::ranges::find(largest_, entry, &Largest::entry);
  if (own.program.cut != largest.cut || own.program.at_once != largest.at_once) {
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

}  // namespace arenite
