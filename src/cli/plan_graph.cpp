// Graph scripts and models, as `arenite plan` reads them: the memory of one step.
#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/csv.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/session.hpp>
#include <arenite/train/trainer.hpp>

#include "src/base/refuse.hpp"
#include "src/base/words.hpp"
#include "src/cli/plan_arguments.hpp"
#include "src/cli/plan_input.hpp"
#include "src/cli/plan_programs.hpp"
#include "src/cli/plan_subject.hpp"
#include "src/compile/compile.hpp"
#include "src/plan/json_field.hpp"
#include "src/train/compiled_step.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

namespace arenite::cli {
namespace {

using plan::ArenaLayout;

/// Microseconds that so many workers are estimated to take for the tasks, each of which the next
/// worker to be free begins as soon as its predecessors are done.
double estimated_time(const graph::Schedule& schedule, const plan::StepPlan& plan, int workers) {
  std::vector<std::vector<std::size_t>> before(schedule.tasks.size());
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    for (const graph::TaskId p : schedule.tasks[t].predecessors) before[t].push_back(p.index);
  }
  for (const plan::TaskEdge& edge : plan.reuse_edges)
    before[edge.after.index].push_back(edge.before.index);
  std::vector<double> free(static_cast<std::size_t>(workers), 0), done(schedule.tasks.size(), 0);
  double end = 0;
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    double ready = 0;
    for (const std::size_t p : before[t]) ready = std::max(ready, done[p]);
    const auto worker = std::ranges::min_element(free);
    const double microseconds = schedule.tasks[t].staging ? 0 : schedule.tasks[t].microseconds;
    done[t] = *worker = std::max(*worker, ready) + microseconds;
    end = std::max(end, done[t]);
  }
  return end;
}

plan::InFlight in_flight(const PlanArguments& arguments) {
  return arguments.in_flight.value_or(plan::InFlight::lanes());
}

int workers_of(const PlanArguments& arguments) {
  return arguments.workers > 0 ? arguments.workers : runtime::cpu_workers();
}

/// As training compiles, with what is said.
compile::Options options_of(const PlanArguments& arguments) {
  return {.shards = arguments.cut.shards,
          .lanes = arguments.cut.lanes,
          .at_once = arguments.cut.at_once,
          .workers = workers_of(arguments),
          .plan = {.in_flight = in_flight(arguments), .solve = {}},
          .graphs = arguments.graphs,
          .remarks = arguments.passes};
}

class StepSubject : public PlanSubject {
 public:
  StepSubject(std::string_view kind, compile::Compiled step, std::string title,
              const PlanArguments& arguments, std::optional<ScriptPrograms> programs = {})
      : kind_(kind),
        graph_(std::move(step.spec.graph)),
        schedule_(std::move(step.spec.schedule)),
        report_(std::move(step.report)),
        cut_(step.cut),
        at_once_(step.at_once),
        title_(std::move(title)),
        programs_(std::move(programs)),
        arguments_(arguments),
        options_{.in_flight = in_flight(arguments),
                 .solve = {.strategy = arguments.strategy, .effort = arguments.effort}},
        workers_(workers_of(arguments)),
        problem_(plan::whole_problem(plan::step_problems(graph_, schedule_, options_))),
        copies_(graph::inserted_copies(graph_)) {
    for (const graph::Task& task : schedule_.tasks) ops_ += std::ssize(task.ops);
  }

  const plan::Problem& problem() const override { return problem_; }
  plan::Plan solve() override {
    overlay_ = solve_layout(ArenaLayout::overlay);
    // Without backward values their block would be empty, and the other one the same.
    const bool backward = std::ranges::any_of(overlay_.arenas, [](const plan::ArenaPlan& arena) {
      return arena.phase == Phase::backward && arena.separate > 0;
    });
    two_ = backward ? solve_layout(ArenaLayout::two) : overlay_;
    return plan::whole_plan(overlay_);
  }

  std::string csv(const plan::Plan& plan) const override { return plan::write_csv(plan); }
  std::string title() const override {
    return fmt::format("{}\n{} in {}; in flight: {}\n", title_, counted(ops_, "op"),
                       counted(std::ssize(schedule_.tasks), "task"),
                       plan::to_string(options_.in_flight));
  }

  std::string_view kind() const noexcept override { return kind_; }

  std::string report() const override {
    std::string text;
    for (const plan::ArenaPlan& arena : overlay_.arenas) {
      if (arena.separate == 0) continue;
      text +=
          fmt::format("{} values: {} bytes of block {}, separately {}\n", to_string(arena.phase),
                      digits(arena.peak), arena.block, digits(arena.separate));
    }
    text += fmt::format("forward and backward in blocks of their own: {} bytes{}\n",
                        digits(two_.transient_bytes()), two_.optimal ? ", optimal: proved" : "");
    text += fmt::format(
        "reuse adds {} between tasks: critical path {:.0f} µs, {:.1f} % longer (estimated)\n",
        counted(std::ssize(overlay_.reuse_edges), "edge"), overlay_.critical_path, 100 * growth());
    std::string apart;
    for_each_block_apart([&](const plan::BlockPlan& block) {
      apart += fmt::format("{}{} {}{}", apart.empty() ? "" : ", ", block.name, digits(block.bytes),
                           block.per_task_set ? " a task set" : "");
    });
    if (!apart.empty()) text += "blocks apart from these, in bytes: " + apart + "\n";
    for (const graph::InsertedCopy& copy : copies_)
      text += fmt::format("copied: {}: {}\n", describe(graph_, copy.op), copy.reason);
    text += fmt::format("about {:.0f} µs a step with {} (estimated)\n",
                        estimated_time(schedule_, overlay_, workers_), counted(workers_, "worker"));
    if (programs_) text += programs_->text();
    std::ostringstream more;
    if (arguments_.passes) more << "passes:\n" << report_;
    if (arguments_.graphs) compile::print_graphs(more << '\n', report_);
    return text + more.str();
  }

  Json fields() const override {
    const plan::InFlight in_flight = options_.in_flight;
    Json fields{{"shards", cut_.shards},
                {"lanes", cut_.lanes},
                {"at_once", at_once_},
                {"ops", ops_},
                {"tasks", schedule_.tasks.size()}};
    for (const auto& [name, bound] : graph::run_time_sizes(graph_)) fields["bounds"][name] = bound;
    fields["in_flight"] = plan::to_string(in_flight);
    if (!in_flight.is_lanes() && !in_flight.is_unlimited()) fields["in_flight"] = in_flight.tasks();
    fields["separate"] = overlay_.separate;
    fields["two_arenas"] = two_.transient_bytes();
    fields["two_arenas_optimal"] = two_.optimal;
    fields["added_edges"] = overlay_.reuse_edges.size();
    fields["critical_path"] = overlay_.critical_path;
    fields["critical_path_without"] = overlay_.critical_path_without;
    fields["workers"] = workers_;
    fields["step_time"] = estimated_time(schedule_, overlay_, workers_);
    for (const plan::ArenaPlan& arena : overlay_.arenas) {
      fields["arenas"].push_back(plan::json_of(arena));
    }
    for_each_block_apart([&](const plan::BlockPlan& block) {
      fields["blocks_apart"].push_back(
          {{"block", block.name}, {"bytes", block.bytes}, {"per_task_set", block.per_task_set}});
    });
    for (const graph::InsertedCopy& copy : copies_)
      fields["copies"].push_back({{"op", describe(graph_, copy.op)}, {"reason", copy.reason}});
    if (programs_) programs_->add_to(fields);
    for (const compile::PassReport& pass : report_.passes) {
      if (!arguments_.passes) break;
      fields["passes"].push_back(
          {{"pass", pass.name}, {"did", pass.did}, {"not_asked", pass.skipped}});
      Json& said = fields["passes"].back();
      for (const auto& [what, why] : pass.remarks.done)
        said["done"].push_back(Json::list(what, why));
      for (const auto& [what, why] : pass.remarks.left)
        said["left"].push_back(Json::list(what, why));
    }
    if (arguments_.graphs) {
      const auto add = [&](const std::string& after, const std::string& graph) {
        fields["graphs"].push_back({{"after", after}, {"graph", graph}});
      };
      add("", report_.graph);
      for (const compile::PassReport& pass : report_.passes)
        if (!pass.graph.empty()) add(pass.name, pass.graph);
    }
    return fields;
  }

 private:
  /// Of the estimated critical path, by the edges that reuse needs.
  double growth() const {
    const double without = overlay_.critical_path_without;
    return without > 0 ? overlay_.critical_path / without - 1 : 0;
  }

  /// Blocks that no plan can make smaller.
  template <class F>
  void for_each_block_apart(F f) const {
    for (const plan::BlockPlan& block : overlay_.blocks) {
      if (block.bytes > 0 && (block.persistent || block.per_task_set)) f(block);
    }
  }

  plan::StepPlan solve_layout(ArenaLayout layout) const {
    plan::StepOptions options = options_;
    options.layout = layout;
    plan::StateLayout state;
    plan::StepPlan plan = plan::plan_step(graph_, schedule_, state, options);
    plan::verify_step(graph_, schedule_, plan);
    return plan;
  }

  const std::string_view kind_;
  const graph::Graph graph_;
  const graph::Schedule schedule_;
  const compile::Report report_;
  const graph::BatchCut cut_;
  const int at_once_;
  const std::string title_;
  const std::optional<ScriptPrograms> programs_;
  const PlanArguments& arguments_;
  const plan::StepOptions options_;
  const int workers_;
  const plan::Problem problem_;
  const std::vector<graph::InsertedCopy> copies_;
  std::int64_t ops_ = 0;
  plan::StepPlan overlay_, two_;
};

/// ", at rows=40, tokens<=512"
std::string sizes_text(const graph::Graph& graph, const graph::SizeValues& given) {
  std::string text;
  const auto add = [&](const std::string& name, const char* is, std::int64_t size) {
    text += (text.empty() ? ", at " : ", ") + name + is + digits(size);
  };
  for (const auto& [name, size] : given) add(name, "=", size);
  for (const auto& [name, bound] : graph::run_time_sizes(graph)) add(name, "<=", bound);
  return text;
}

void refuse_alignment(const PlanArguments& arguments) {
  if (!arguments.alignment) return;
  refuse(fmt::format("--align {} for a script or a model", *arguments.alignment), "a table",
         "'" + arguments.input + "'",
         fmt::format("the buffers of a step are aligned to {} bytes", default_alignment));
}

}  // namespace

std::unique_ptr<PlanSubject> script_subject(const std::string& text,
                                            const PlanArguments& arguments) {
  const std::string where = "'" + arguments.input + "'";
  if (std::ssize(text) > max_script_bytes) {
    refuse("a graph script of more than " + digits(max_script_bytes) + " bytes", "at most as many",
           where);
  }
  refuse_alignment(arguments);
  graph::Graph graph = graph::parse(text, operators(), arguments.input);
  if (const auto ops = static_cast<std::int64_t>(graph.op_count()); ops > max_script_ops) {
    refuse("a graph script of " + digits(ops) + " ops", "at most " + digits(max_script_ops), where);
  }
  const std::optional<graph::Graph> open = arguments.programs ? std::optional(graph) : std::nullopt;
  if (!arguments.sizes.empty()) {
    try {
      graph = graph::at_sizes(graph, arguments.sizes);
    } catch (const Error& error) {
      ErrorText said = error.text();
      said.where = where + (said.where.empty() ? "" : ", " + said.where);
      throw Error(said);
    }
  }
  const bool trained = graph.training.has_value();
  std::string title = std::string(trained ? "training step of " : "") + "graph script " +
                      arguments.input + sizes_text(graph, arguments.sizes);
  compile::Compiled step =
      compile::lower(graph, {.name = "step", .train = trained}, options_of(arguments));
  if (step.cut.shards > 1) title += " in " + to_string(step.cut, step.at_once);
  std::optional<ScriptPrograms> programs;
  if (open) programs.emplace(*open, arguments.sizes, options_of(arguments));
  return std::make_unique<StepSubject>("script", std::move(step), title, arguments,
                                       std::move(programs));
}

std::unique_ptr<PlanSubject> model_subject(const PlanArguments& arguments) {
  const ModelRequest wanted = parse_model(arguments.input);
  refuse_alignment(arguments);
  // What `arenite train` takes for what is not said.
  const train::TrainerOptions defaults;
  const nn::NamedModel& model = *wanted.model;
  compile::Compiled step = train::compile_step(model.layers, defaults.loss, defaults.optimizer,
                                               {.name = wanted.training ? "train" : "evaluate",
                                                .batch = wanted.batch,
                                                .dataset = wanted.batch,
                                                .image = model.image,
                                                .training = wanted.training,
                                                .how = options_of(arguments)});
  const std::string title =
      fmt::format("{} step of model {}, batch {} in {}", wanted.training ? "training" : "inference",
                  model.name, digits(wanted.batch), to_string(step.cut, step.at_once));
  return std::make_unique<StepSubject>("model", std::move(step), title, arguments);
}

}  // namespace arenite::cli
