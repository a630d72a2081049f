// A program's part in profiles: its tasks as the analysis knows them, and when records are kept.
#include <arenite/error.hpp>

#include "src/runtime/program_impl.hpp"

#include <utility>

namespace arenite::runtime {
namespace {

double clock_cost() {
  constexpr int readings = 1000;
  const std::int64_t start = StepRecords::now();
  std::int64_t last = start;
  for (int i = 0; i < readings; ++i) last = StepRecords::now();
  return static_cast<double>(last - start) / readings;
}

}  // namespace

StepShape Program::Impl::shape() const {
  StepShape shape;
  shape.program = spec.name;
  shape.task_sets = sets.size();
  shape.workers = static_cast<std::size_t>(set.session.workers());
  const TaskSet& tasks = sets.front();
  shape.end = body_of(tasks.end).number;
  shape.tasks.resize(tasks.tasks.size());
  for (std::size_t t = 0; t < shape.tasks.size(); ++t) {
    StepShape::Task& task = shape.tasks[t];
    task.before = tasks.predecessors[t];
    if (t >= spec.schedule.tasks.size()) continue;  // the end of a step, when it needs its own task
    task.staging = spec.schedule.tasks[t].staging;
    for (graph::OpId id : spec.schedule.tasks[t].ops) {
      const graph::Op& op = spec.graph[id];
      const auto& cost = op.definition->cost;
      task.ops.push_back(shape.ops.size());
      shape.ops.push_back({.op = std::string(op.name()),
                           .kernel = op.kernel,
                           .where = op.where,
                           .flops = cost ? cost({spec.graph, op}).flops : 0});
    }
  }
  for (const starpu_task* entry : tasks.entries) shape.tasks[body_of(entry).number].entry = true;
  return shape;
}

void Program::start_profile(long count) {
  if (count < 1 || count > max_profile_steps) {
    fail({.found = "a profile of " + std::to_string(count) + " steps",
          .expected = "1 to " + std::to_string(max_profile_steps)});
  }
  wait();
  Impl& p = *impl_;
  if (!p.device_status.empty()) {
    fail({.found = "a profile of program '" + p.spec.name + "', which runs on " +
                   p.device_status.front().device().description(),
          .expected = "a program that runs on the CPU",
          .hint = "the GPU's own profilers see each kernel"});
  }
  StepShape shape = p.shape();
  StepRecords records(shape, p.steps, count);
  p.open_profile = std::make_unique<OpenProfile>(OpenProfile{std::move(shape), std::move(records)});
  p.flags.records = &p.open_profile->records;
}

Profile Program::stop_profile() {
  Impl& p = *impl_;
  if (!p.open_profile) {
    fail({.found = "no profile of program '" + p.spec.name + "' under way",
          .expected = "a call of start_profile first"});
  }
  p.drain();
  p.flags.records = nullptr;
  const std::unique_ptr<OpenProfile> done =
      std::move(p.open_profile);  // ends here, whatever follows
  Profile profile = analyse(done->shape, done->records,
                            static_cast<std::size_t>(p.steps - done->records.first()));
  profile.clock = clock_cost();
  return profile;
}

void Program::drop_profile() noexcept {
  Impl& p = *impl_;
  p.drain();
  p.flags.records = nullptr;
  p.open_profile.reset();
}

}  // namespace arenite::runtime
