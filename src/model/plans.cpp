#include "src/model/plans.hpp"

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

std::string_view to_string(ModelPlans::Entry entry) noexcept {
  switch (entry) {
    case ModelPlans::Entry::train:
      return "train";
    case ModelPlans::Entry::evaluate:
      return "evaluate";
    case ModelPlans::Entry::averaged:
      return "averaged";
  }
  return "";
}

ModelPlans::ModelPlans(graph::Graph graph, std::string name, compile::Options how)
    : graph_(std::move(graph)), name_(std::move(name)), how_(std::move(how)) {
  for (const auto& [size, bound] : graph::run_time_sizes(graph_)) bounds_[size] = bound;
}

std::vector<ModelPlans::Entry> ModelPlans::entries() const {
  if (!graph_.training) return {Entry::evaluate};
  if (!graph_.training->averaging) return {Entry::train, Entry::evaluate};
  return {Entry::train, Entry::evaluate, Entry::averaged};
}

graph::Graph ModelPlans::graph_at(const graph::SizeValues& sizes) const {
  return graph::at_sizes(graph_, sizes);
}

compile::Entry ModelPlans::named(Entry entry, const graph::SizeValues& sizes) const {
  std::string name = name_;
  if (entry != Entry::evaluate) name += "." + std::string(to_string(entry));
  if (!sizes.empty()) name += " at " + text_of(sizes);
  return {.name = std::move(name),
          .train = entry == Entry::train,
          .averaged = entry == Entry::averaged};
}

compile::Compiled ModelPlans::largest(Entry entry) {
  compile::Compiled made = compile::compile(graph_, named(entry, {}), how_, state_);
  largest_.push_back({entry, made.cut, made.at_once});
  make_room(made.spec);
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

void ModelPlans::make_room(const runtime::ProgramSpec& spec) {
  const std::string& entry = spec.entry.empty() ? spec.name : spec.entry;
  for (const plan::BlockPlan& block : spec.plan.blocks) {
    const auto same =
        std::ranges::find_if(room_, [&](const auto& room) { return is_same(room, block, entry); });
    if (same == room_.end()) {
      room_.push_back({block, entry});
    } else {
      same->block.bytes = std::max(same->block.bytes, block.bytes);
    }
  }
}

ModelPlans::Sized ModelPlans::smaller(Entry entry, const graph::SizeValues& sizes,
                                      const graph::Graph& graph) {
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
  make_room(own.program.spec);
  own.fit = Fit::grown_blocks;
  return own;
}

}  // namespace arenite
