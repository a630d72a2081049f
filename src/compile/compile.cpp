#include "src/compile/compile.hpp"

#include <arenite/error.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include "src/compile/passes.hpp"

#include <spdlog/fmt/fmt.h>

namespace arenite::compile {
namespace {

/// Passes over one graph, in lanes and on devices that are still to be chosen.
class Compiler {
 public:
  Compiler(const graph::Graph& graph, const Entry& entry, const Options& options)
      : graph_(graph),
        entry_(entry),
        options_(options),
        selector_(runtime::kernel_selector(kernels(), options.kernels)) {}

  Compiled run() {
    check_given_kernels();
    if (options_.spaces != std::vector{Space{}}) return on_devices();
    if (options_.lanes > 0) return finished(begun(options_.lanes, {}));
    Trial one = begun(1, {});
    if (one.lowering.selected || !one.lowering.undivided.empty()) return finished(std::move(one));
    const double work = work_of(one);
    const int lanes = options_.target.lanes(work);
    Trial taken = lanes > 1 ? begun(lanes, {}) : std::move(one);
    if (options_.remarks) explain_lanes(work, taken);
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

  Trial begun(int lanes, graph::Spaces spaces) const {
    Trial trial{.lowering = {.entry = entry_,
                             .options = options_,
                             .selector = *selector_,
                             .spaces = std::move(spaces),
                             .selected = graph::is_selected(graph_),
                             .lanes = lanes,
                             .split = 1,
                             .graph = graph_,
                             .losses = {},
                             .pieces = std::vector<std::size_t>(graph_.outputs.size(), 1),
                             .schedule = {},
                             .undivided = {}},
                .report = {}};
    Lowering& lowering = trial.lowering;
    if (!entry_.train) lowering.graph.training.reset();
    compile::run(passes().first(behind_select()), lowering, trial.report);
    return trial;
  }

  /// Lanes that the work decides.
  void explain_lanes(double work, Trial& trial) const {
    const auto pass = std::ranges::find(trial.report.passes, "split_batch", &PassReport::name);
    const bool split = trial.lowering.split > 1, four = trial.lowering.lanes > 2;
    const double from =
        four ? options_.target.four_lanes_microseconds : options_.target.two_lanes_microseconds;
    (split ? pass->remarks.done : pass->remarks.left)
        .push_back({fmt::format("a step estimated at {:.0f} µs in one lane", work),
                    fmt::format("{} lanes{} pay from {:.0f} µs on", four ? 4 : 2,
                                split ? ", which" : "", from)});
  }

  double work_of(const Trial& trial) const {
    return graph::estimate(trial.lowering.graph, options_.target);
  }

  Compiled on_devices() const {
    const auto dealt = graph::deal_out(options_.spaces, options_.lanes, [&](const Space& space) {
      return work_of(begun(1, {.shared = space, .lanes = {}}));
    });
    return finished(begun(static_cast<int>(dealt.lanes.size()), dealt));
  }

  Compiled finished(Trial trial) const {
    compile::run(passes().subspan(behind_select()), trial.lowering, trial.report);
    Compiled made;
    made.spec.name = entry_.name;
    made.spec.target = options_.target;
    made.spec.schedule = std::move(trial.lowering.schedule);
    made.spec.graph = std::move(trial.lowering.graph);
    made.pieces = std::move(trial.lowering.pieces);
    made.lanes = trial.lowering.split;
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

Compiled compile(const graph::Graph& graph, const Entry& entry, const Options& options,
                 plan::StateLayout& state) {
  Compiled made = lower(graph, entry, options);
  made.spec.plan = plan::plan_step(made.spec.graph, made.spec.schedule, state, options.plan);
  return made;
}

}  // namespace arenite::compile
