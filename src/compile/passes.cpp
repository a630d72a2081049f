#include "src/compile/compile.hpp"

#include <arenite/graph/regions.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "src/base/words.hpp"

#include <spdlog/fmt/fmt.h>

namespace arenite::compile {
namespace {

using graph::Remarks;

std::string never(const Lowering&) { return {}; }

/// What somebody selected is kept, and so is all that it was selected for.
std::string selected(const Lowering& l) {
  return l.selected ? "the graph has kernels or devices already" : "";
}

std::string not_fusing(const Lowering& l) {
  return l.options.fuse ? selected(l) : "fusing is turned off";
}

std::string not_training(const Lowering& l) {
  return l.graph.training ? "" : "nothing asks for them";
}

std::string not_trained(const Lowering& l) {
  return l.entry.train ? not_fusing(l) : "there are no gradients";
}

/// Caches that CPU workers do not share; and on a GPU ops that share no bytes run side by side.
std::string not_on_cpus(const Lowering& l) {
  return l.spaces == graph::Spaces{} ? selected(l) : "there are lanes on other devices than CPUs";
}

/// What lanes give each other never leaves a shard.
std::string not_in_lanes(const Lowering& l) {
  return l.cut.shards > 1 ? "shards share no work" : not_on_cpus(l);
}

std::string not_in_shards(const Lowering& l) {
  if (l.cut.shards < 2) return "the batch is one shard";
  // On GPUs `sum` adds its terms one behind the other.
  return l.at_once < l.cut.shards || l.spaces != graph::Spaces{} ? "" : "all shards run at once";
}

/// Where launches count.
std::string not_on_gpus(const Lowering& l) {
  return l.spaces.shared.device != DeviceKind::cpu ? not_fusing(l)
                                                   : "updates run on CPUs, where calls cost little";
}

int run_mode(Lowering& l, Remarks* remarks) {
  graph::Mode mode = l.entry.train ? graph::Mode::train : graph::Mode::evaluate;
  if (l.entry.of_graph) mode = l.graph.entries.at(0).mode;
  l.mode = graph::apply_mode(l.graph, operators(), mode, l.cut.shards, remarks);
  l.graph.entries.clear();
  return l.mode.ops;
}

int run_split(Lowering& l, Remarks* remarks) {
  Remarks own;
  Remarks& said = remarks ? *remarks : own;
  const graph::BatchCut wanted = std::exchange(l.cut, {});
  auto batch = graph::split_batch(l.graph, operators(), wanted, l.options.target, &said);
  if (!batch) {
    l.undivided = said.left.front().what + ": " + said.left.front().why;
    graph::apply_mode(l.graph, operators(), graph::Mode::train);  // what is of shards: there is one
    return 0;
  }
  const int lanes = static_cast<int>(batch->lanes.size());
  l.cut = batch->cut;
  l.one_shard = std::move(batch->one_shard);
  l.graph = std::move(batch->graph);
  l.pieces = std::move(batch->pieces);
  if (l.graph.training) l.losses = std::move(batch->losses);
  if (l.options.lanes == 1 && wanted.shards == 1)
    said.left.push_back({"the batch", "one lane was asked for"});
  if (!l.one_shard.empty()) {
    said.left.push_back(
        {"the batch", fmt::format("one shard instead of {}: {}", wanted.shards, l.one_shard)});
  }
  const bool has_no_more = std::ranges::all_of(
      batch->lanes, [](const graph::LaneRows& lane) { return lane.count == 1; });
  if (has_no_more && lanes < wanted.shards * wanted.lanes) {
    said.left.push_back(
        {"the batch", fmt::format("it has no more than {} for {}", counted(lanes, "sample"),
                                  to_string(wanted, wanted.shards))});
  }
  return lanes;
}

int run_line_up_shards(Lowering& l, Remarks* remarks) {
  return graph::line_up_shards(l.graph, operators(), l.cut, l.at_once, remarks);
}

int run_merge_sums(Lowering& l, Remarks* remarks) {
  // No kernel of a GPU adds in a tree.
  return graph::merge_sums(l.graph, operators(), l.cut, l.spaces == graph::Spaces{}, remarks);
}

int run_gradients(Lowering& l, Remarks* remarks) {
  const auto parameters = l.graph.training->parameters.size();
  if (l.losses.empty()) l.losses = {l.graph.training->loss};
  const int most = l.graph.training->accumulate;
  const auto unreached =
      graph::add_training(l.graph, operators(), l.losses, l.cut,
                          l.entry.part.value_or(graph::batch_of_update(most, most - 1, true)));
  for (const graph::ValueId id : unreached) {
    l.untrained.push_back(l.graph[id].name);
    if (remarks)
      remarks->left.push_back({"'" + l.graph[id].name + "'", "the loss does not depend on it"});
  }
  return static_cast<int>(parameters - unreached.size());
}

int run_select(Lowering& l, Remarks* remarks) {
  graph::select(l.graph, l.selector, remarks);
  return static_cast<int>(std::ranges::count_if(
      graph::nested_ops(l.graph), [&](graph::OpId op) { return !l.graph[op].kernel.empty(); }));
}

int run_coarsen(Lowering& l, Remarks*) {
  l.schedule = graph::coarsen(l.graph, l.options.target);
  return static_cast<int>(l.schedule.tasks.size());
}

/// A pass of the graph, with the process's operators.
template <int (*pass)(graph::Graph&, const graph::OperatorTable&, Remarks*)>
int run_on(Lowering& l, Remarks* remarks) {
  return pass(l.graph, operators(), remarks);
}
/// One that weighs what kernels cost.
template <int (*pass)(graph::Graph&, const graph::OperatorTable&, const graph::TargetProfile&,
                      Remarks*)>
int run_weighing(Lowering& l, Remarks* remarks) {
  return pass(l.graph, operators(), l.options.target, remarks);
}

int run_place(Lowering& l, Remarks* remarks) {
  return graph::place(l.graph, operators(), l.spaces, l.selector, remarks);
}

/// Planned by first fit, which is quick and close to the best, and as steps are unless somebody
/// asks for another layout or order: one program, however it is planned.
int run_order(Lowering& l, Remarks* remarks) {
  const auto planned = [&](graph::Graph trial) {
    graph::in_place(trial);
    plan::StateLayout state;
    const plan::StepPlan plan = plan::plan_step(
        trial, graph::coarsen(trial, l.options.target), state,
        {.in_flight = l.options.plan.in_flight, .solve = {.strategy = "first_fit_by_size"}});
    graph::PlannedBytes result{.bytes = {}, .least = {}, .microseconds = plan.critical_path};
    for (const plan::Plan& packing : plan.packings) {
      result.bytes.push_back(packing.peak);
      result.least.push_back(packing.lower_bound);
    }
    return result;
  };
  // In no lane tasks come as the data allows, unless only so many are under way.
  const auto in_lane = [&](graph::OpId id) { return l.graph[id].lane != graph::Op::shared_lane; };
  const plan::InFlight in_flight = l.options.plan.in_flight;
  const bool in_any_order = (in_flight.is_lanes() || in_flight.is_unlimited()) &&
                            std::ranges::none_of(l.graph[graph::Graph::body].ops, in_lane);
  std::function<graph::Schedule(const graph::Graph&)> free_tasks;
  if (in_any_order) {
    free_tasks = [&](const graph::Graph& ordered) {
      return graph::coarsen(ordered, l.options.target);
    };
  }
  return graph::order(l.graph, planned, free_tasks, remarks);
}

int run_in_place(Lowering& l, Remarks* remarks) { return graph::in_place(l.graph, remarks); }

/// In this order, whoever compiles.
constexpr std::array all{
    Pass{"mode", "makes ops what they are in training, or in an evaluation", "op", selected,
         run_mode},
    Pass{"tidy", "drops needless ops, and does others once, or more simply", "op", selected,
         run_on<graph::tidy>},
    Pass{"fuse", "does chains of ops in one go", "chain", not_fusing, run_on<graph::fuse>},
    Pass{"split_batch", "cuts the batch in shards, and those in lanes", "lane", selected,
         run_split},
    Pass{"gradients", "adds the backward pass, and an update of each parameter", "parameter",
         not_training, run_gradients},
    Pass{"fuse", "does chains of gradients in one go", "chain", not_trained, run_on<graph::fuse>},
    Pass{"merge_sums", "sums a gradient over lanes as it is made", "sum", selected, run_merge_sums},
    Pass{"line_up_shards", "lets shards follow others and take their bytes", "shard", not_in_shards,
         run_line_up_shards},
    Pass{"split_features", "gives each lane its part of large weights", "weight", not_in_lanes,
         run_weighing<graph::split_features>},
    Pass{"split_rows", "makes large gradients, and their updates, in parts", "gradient",
         not_on_cpus, run_weighing<graph::split_rows>},
    Pass{"group_updates", "does small updates together", "saved op", not_on_gpus,
         run_on<graph::group_updates>},
    Pass{"fuse_updates", "updates a weight while its gradient is made", "update", not_fusing,
         run_on<graph::fuse_updates>},
    Pass{"fuse_formulas", "computes formulas of formulas in one go", "op", not_fusing,
         run_on<graph::fuse_formulas>},
    Pass{"tidy", "tidies up behind the others", "op", selected, run_on<graph::tidy>},
    Pass{"keep_state", "lets new versions of what persists lie in the old ones' bytes", "version",
         never, run_on<graph::keep_state>},
    Pass{"place", "gives ops and values their devices", "copy", selected, run_place},
    Pass{"select", "gives each op its kernel, layouts and workspace", "kernel", selected,
         run_select},
    Pass{"order", "moves ops where the step then needs fewer bytes", "op", not_on_cpus, run_order},
    Pass{"in_place", "lets results overwrite operands that nobody needs", "result", never,
         run_in_place},
    Pass{"coarsen", "makes ops into tasks", "task", never, run_coarsen},
};

}  // namespace

std::span<const Pass> passes() { return all; }

std::size_t behind_select() {
  return static_cast<std::size_t>(std::ranges::find(all, "select", &Pass::name) - all.begin()) + 1;
}

void run(std::span<const Pass> passes, Lowering& lowering, Report& report) {
  const Options& options = lowering.options;
  if (options.graphs && report.graph.empty()) report.graph = graph::print(lowering.graph);
  std::string last = report.graph;
  for (const Pass& pass : passes) {
    PassReport& done = report.passes.emplace_back();
    done.name = pass.name;
    done.skipped = pass.skip(lowering);
    if (!done.skipped.empty()) continue;
    const int count = pass.run(lowering, options.remarks ? &done.remarks : nullptr);
    done.did = count == 0 ? "no " + std::string(pass.of_what) : counted(count, pass.of_what);
    if (!options.graphs || count == 0) continue;
    std::string now = graph::print(lowering.graph);
    if (now != last) done.graph = last = std::move(now);
  }
}

}  // namespace arenite::compile
