#include "src/cli/plan_programs.hpp"

#include "src/base/words.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace arenite::cli {
namespace {

std::string text_of(const graph::SizeValues& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, digits(size));
  return text.empty() ? "-" : text;
}

std::int64_t bytes_in(const plan::StepPlan& plan, std::string_view block) {
  const auto found = std::ranges::find(plan.blocks, block, &plan::BlockPlan::name);
  return found == plan.blocks.end() ? 0 : found->bytes;
}

}  // namespace

ScriptPrograms::ScriptPrograms(const graph::Graph& graph, const graph::SizeValues& sizes,
                               const compile::Options& how) {
  ModelPlans plans(graph, "model", how);
  for (const Way& way : plans.ways()) {
    if (!way.is_rare) add(way.name, plans.bounds(), plans.largest(way).spec, Fit::own_plan);
  }
  if (!sizes.empty()) {
    graph::SizeValues all = plans.bounds();
    for (const auto& [name, size] : sizes) all[name] = size;
    for (const Way& way : plans.ways()) {
      if (way.is_rare) continue;
      const ModelPlans::Sized made = plans.smaller(way, all);
      plans.set_room(plans.room_with({&made.program.spec, 1}));
      add(way.name, all, made.program.spec, made.fit);
    }
  }
  room_ = plans.room();
}

void ScriptPrograms::add(const std::string& entry, const graph::SizeValues& sizes,
                         const runtime::ProgramSpec& spec, Fit fit) {
  task_sets_ = std::max(task_sets_, runtime::task_sets_of(spec.plan));
  rows_.push_back({.entry = entry,
                   .sizes = sizes,
                   .step = spec.plan.transient_bytes(),
                   .inputs = bytes_in(spec.plan, "input"),
                   .outputs = bytes_in(spec.plan, "output"),
                   .fit = to_string(fit)});
}

/// In all task sets.
std::int64_t ScriptPrograms::bytes_of(const runtime::BlockRoom& room) const {
  return room.block.bytes * (room.block.per_task_set ? task_sets_ : 1);
}

std::string ScriptPrograms::text() const {
  std::size_t width = 2, name = 8;
  for (const Row& row : rows_) {
    width = std::max(width, text_of(row.sizes).size());
    name = std::max(name, row.entry.size());
  }
  std::string text = "programs of a model, in bytes of blocks that they share:\n";
  text += fmt::format("  {:<{}}  {:<{}}  {:>13}  {:>11}  {:>11}  fits by\n", "entry", name, "at",
                      width, "step", "input", "output");
  for (const Row& row : rows_) {
    text += fmt::format("  {:<{}}  {:<{}}  {:>13}  {:>11}  {:>11}  {}\n", row.entry, name,
                        text_of(row.sizes), width, digits(row.step), digits(row.inputs),
                        digits(row.outputs), row.fit);
  }
  std::int64_t all = 0;
  for (const runtime::BlockRoom& room : room_) all += bytes_of(room);
  return text + fmt::format("all blocks, with {} task sets: {} bytes\n", task_sets_, digits(all));
}

void ScriptPrograms::add_to(Json& fields) const {
  for (const Row& row : rows_) {
    Json sizes = Json::object();
    for (const auto& [name, size] : row.sizes) sizes[name] = size;
    fields["programs"].push_back({{"entry", row.entry},
                                  {"sizes", sizes},
                                  {"step", row.step},
                                  {"input", row.inputs},
                                  {"output", row.outputs},
                                  {"fit", row.fit}});
  }
  for (const runtime::BlockRoom& room : room_) {
    fields["blocks"].push_back({{"block", room.block.name},
                                {"entry", room.block.per_task_set ? room.entry : ""},
                                {"bytes", bytes_of(room)}});
  }
}

}  // namespace arenite::cli
