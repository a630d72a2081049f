#include "src/compile/compile.hpp"

#include <arenite/error.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/verify.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include "src/base/words.hpp"

#include <spdlog/fmt/fmt.h>

namespace arenite::compile {
namespace {

/// Of all shards: more would only cost sums.
constexpr int most_lanes = 64;

/// Passes over one graph, in lanes and on devices that are still to be chosen.
class Compiler {
 public:
  Compiler(const graph::Graph& graph, const Entry& entry, const Options& options)
      : graph_(graph),
        entry_(entry),
        options_(options),
        selector_(runtime::kernel_selector(kernels(), options.kernels)) {}

  Compiled run() {
    graph::verify(graph_);
    check_cut();
    check_given_kernels();
    if (options_.spaces != std::vector{Space{}}) return on_devices();
    if (options_.lanes > 0 || options_.shards > 1) return finished(begun(given_cut(), {}));
    Trial one = begun({}, {});
    if (one.lowering.selected || !one.lowering.undivided.empty()) return finished(std::move(one));
    const double work = work_of(one);
    graph::BatchCut cut = options_.target.cut(work);
    if (options_.shards == 1) cut = {.lanes = cut.shards * cut.lanes};
    Trial taken = cut != graph::BatchCut{} ? begun(cut, {}) : std::move(one);
    if (options_.remarks) explain_cut(work, cut, taken);
    return finished(std::move(taken));
  }

 private:
  /// Kernels that somebody chose must run, and be all: nobody chooses those for the rest.
  void check_given_kernels() const {
    const std::vector<graph::OpId> ops = graph::nested_ops(graph_);
    const auto given =
        std::ranges::find_if(ops, [&](graph::OpId id) { return !graph_[id].kernel.empty(); });
    if (given == ops.end()) return;
    const graph::OpId left = graph::without_kernel(graph_);
    if (left || (entry_.train && graph_.training)) {
      fail({.found = "a kernel for " + describe(graph_, *given) + ", and none for " +
                     (left ? describe(graph_, left) : "its gradients"),
            .expected = "kernels for all ops, or for none",
            .hint = "without notes of kernels all are chosen"});
    }
    graph::check_kernels(graph_, *selector_);
  }

  /// A lowering whose ops have their kernels.
  struct Trial {
    Lowering lowering;
    Report report;
  };

  graph::BatchCut given_cut() const {
    return {.shards = std::max(options_.shards, 1), .lanes = std::max(options_.lanes, 1)};
  }

  bool on_cpus() const { return options_.spaces == std::vector{Space{}}; }

  /// Unless it is given no more than make the step shorter.
  int at_once(const graph::BatchCut& cut) const {
    if (options_.at_once > 0) return std::min(options_.at_once, cut.shards);
    if (options_.workers < 1 || !on_cpus()) return cut.shards;
    const int lines = std::min((options_.workers - 1) / cut.lanes + 1, cut.shards);
    const int turns = (cut.shards - 1) / lines + 1;
    return (cut.shards - 1) / turns + 1;
  }

  void check_cut() const {
    const auto check = [](int number, const std::string& of) {
      if (number >= 0 && number <= most_lanes) return;
      fail({.found = std::to_string(number) + " " + of,
            .expected = "1 to " + std::to_string(most_lanes) + ", or 0 to choose"});
    };
    check(options_.shards, "shards");
    check(options_.lanes, "lanes");
    check(options_.at_once, "shards at once");
    const graph::BatchCut cut = given_cut();
    if (cut.shards * cut.lanes > most_lanes) {
      fail({.found = to_string(cut, cut.shards),
            .expected = "at most " + std::to_string(most_lanes) + " lanes in all"});
    }
    if (options_.at_once > 0 && options_.at_once < cut.shards && options_.spaces.size() > 1) {
      fail({.found = to_string(cut, options_.at_once) + ", on several devices",
            .expected = "all at once, or one device",
            .hint = "which device a shard is on shows in its bits"});
    }
  }

  Trial begun(const graph::BatchCut& cut, graph::Spaces spaces) const {
    const bool selected = graph::is_selected(graph_);
    Trial trial{.lowering = {.entry = entry_,
                             .options = options_,
                             .selector = *selector_,
                             .spaces = std::move(spaces),
                             .selected = selected,
                             .cut = selected ? graph::BatchCut{} : cut,
                             .at_once = at_once(cut),
                             .graph = graph_,
                             .one_shard = {},
                             .losses = {},
                             .pieces = std::vector<std::size_t>(graph_.outputs.size(), 1),
                             .schedule = {},
                             .undivided = {},
                             .untrained = {},
                             .mode = {}},
                .report = {}};
    Lowering& lowering = trial.lowering;
    if (entry_.averaged) graph::use_averages(lowering.graph, operators());
    if (!entry_.train) lowering.graph.training.reset();
    if (!entry_.of_graph) lowering.graph.entries.clear();
    graph::fix_attributes(lowering.graph);
    compile::run(passes().first(behind_select()), lowering, trial.report);
    lowering.graph.entries.clear();
    refuse_lost_shards(lowering);
    return trial;
  }

  /// Shards were asked for so that a step fits, or for the bits that it gives elsewhere. Layers
  /// that are of the whole batch by their meaning have lanes instead, as the report says.
  void refuse_lost_shards(const Lowering& lowering) const {
    if (options_.shards < 2 || lowering.one_shard.empty()) return;
    if (!lowering.mode.of_shard.empty()) {
      fail({.found = lowering.mode.of_shard + " of each of " + counted(options_.shards, "shard") +
                     ", where " + lowering.one_shard,
            .expected = "a batch whose shards need nothing of each other, or one shard",
            .where = "program '" + entry_.name + "'"});
    }
    if (!entry_.train) return;
    if (lowering.mode.needs_whole_batch) return;
    fail({.found = counted(options_.shards, "shard") + ", where " + lowering.one_shard,
          .expected = "a batch whose shards need nothing of each other, or one shard",
          .where = "program '" + entry_.name + "'"});
  }

  /// What the work decides.
  void explain_cut(double work, const graph::BatchCut& cut, Trial& trial) const {
    const auto pass = std::ranges::find(trial.report.passes, "split_batch", &PassReport::name);
    const graph::TargetProfile& target = options_.target;
    const bool cuts = trial.lowering.cut != graph::BatchCut{};
    // Of one lane it is said what there could be next.
    const graph::BatchCut next{.lanes = 2}, meant = cut == graph::BatchCut{} ? next : cut;
    (cuts ? pass->remarks.done : pass->remarks.left)
        .push_back({fmt::format("a step estimated at {:.0f} µs in one lane", work),
                    fmt::format("{}{} pay from {:.0f} µs on", to_string(meant, meant.shards),
                                cuts ? ", which" : "",
                                meant == next ? target.two_lanes_microseconds
                                              : target.four_shards_microseconds)});
  }

  double work_of(const Trial& trial) const {
    return graph::estimate(trial.lowering.graph, options_.target);
  }

  Compiled on_devices() const {
    const graph::BatchCut given = given_cut();
    const int lanes = given.shards > 1 ? at_once(given) * given.lanes : options_.lanes;
    const auto dealt = graph::deal_out(options_.spaces, lanes, [&](const Space& space) {
      return work_of(begun({}, {.shared = space, .lanes = {}}));
    });
    return finished(begun(
        given.shards > 1 ? given : graph::BatchCut{.lanes = static_cast<int>(dealt.lanes.size())},
        dealt));
  }

  Compiled finished(Trial trial) const {
    graph::verify(trial.lowering.graph);
    compile::run(passes().subspan(behind_select()), trial.lowering, trial.report);
    graph::verify(trial.lowering.graph);
    Compiled made;
    made.spec.name = entry_.name;
    made.spec.target = options_.target;
    made.spec.schedule = std::move(trial.lowering.schedule);
    made.spec.graph = std::move(trial.lowering.graph);
    made.pieces = std::move(trial.lowering.pieces);
    made.cut = trial.lowering.cut;
    made.at_once = std::min(trial.lowering.at_once, made.cut.shards);
    made.untrained = std::move(trial.lowering.untrained);
    made.position = std::move(trial.lowering.mode.position);
    made.samples = trial.lowering.mode.samples;
    made.report = std::move(trial.report);
    made.report.undivided = std::move(trial.lowering.undivided);
    return made;
  }

  const graph::Graph& graph_;
  const Entry& entry_;
  const Options& options_;
  const std::unique_ptr<graph::KernelSelector> selector_;
};

}  // namespace

Compiled lower(const graph::Graph& graph, const Entry& entry, const Options& options) {
  return Compiler(graph, entry, options).run();
}

void begin_averages(runtime::ProgramSet& set, const graph::Graph& graph) {
  using enum graph::StorageClass;
  for (const graph::ValueId id : graph.declared(parameter)) {
    const std::string& name = graph[id].name;
    if (!graph.find(optimizer_state, graph::average_name(name))) continue;
    std::ranges::copy(set.state<std::byte>(parameter, name),
                      set.state<std::byte>(optimizer_state, graph::average_name(name)).begin());
  }
}

Compiled compile(const graph::Graph& graph, const Entry& entry, const Options& options,
                 plan::StateLayout& state) {
  Compiled made = lower(graph, entry, options);
  made.spec.plan = plan::plan_step(made.spec.graph, made.spec.schedule, state, options.plan);
  return made;
}

}  // namespace arenite::compile
