#include "src/runtime/capture/timeline.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace arenite::runtime {
namespace {

constexpr std::int64_t ever = std::numeric_limits<std::int64_t>::max();

/// When every task of the program that ran was recorded: behind the step before the first one that
/// is kept, and ahead of those that were under way when the process ended.
Span known(const CapturedSet& set, const CapturedProgram& program) {
  Span span{-ever, ever};
  if (program.steps.front().number > 0)
    span.begin = duration(program.shape, program.steps.front()).begin;
  if (set.under_way) {
    const std::size_t count = program.steps.size();
    span.end = count < 2 ? -ever : duration(program.shape, program.steps[count - 2]).end;
  }
  return span;
}

class Known {
 public:
  explicit Known(const CapturedProcess& process) {
    if (process.forgotten > 0) all_.begin = process.forgotten_until;
    for (const CapturedSet& set : process.sets) {
      if (!set.on_devices.empty()) all_.begin = ever;
      for (const CapturedProgram& program : set.programs) {
        const Span span = of_[&program] = known(set, program);
        all_ = {std::max(all_.begin, span.begin), std::min(all_.end, span.end)};
      }
    }
  }

  /// No task that was not recorded ran between the two.
  bool between(const TimelineTask& before, const TimelineTask& after) const {
    const Span gap{before.run().time().end, after.run().time().begin};
    if (within(gap, all_)) return true;
    return before.program == after.program && within(gap, of_.at(after.program)) &&
           before.program->steps[before.step].turn == after.program->steps[after.step].turn;
  }

 private:
  static bool within(Span inner, Span outer) {
    return inner.begin >= outer.begin && inner.end <= outer.end;
  }

  Span all_{-ever, ever};
  std::map<const CapturedProgram*, Span> of_;
};

}  // namespace

std::vector<std::vector<TimelineTask>> timeline(const CapturedProcess& process) {
  std::vector<std::vector<TimelineTask>> workers;
  for (const CapturedSet& set : process.sets) {
    for (const CapturedProgram& program : set.programs) {
      workers.resize(std::max(workers.size(), program.shape.steps.workers));
      for (std::size_t s = 0; s < program.steps.size(); ++s) {
        const auto& runs = program.steps[s].runs;
        for (std::size_t t = 0; t < runs.size(); ++t)
          workers.at(static_cast<std::size_t>(runs[t].worker)).push_back({&set, &program, s, t});
      }
    }
  }
  const Known known(process);
  for (auto& tasks : workers) {
    std::ranges::sort(tasks, {}, [](const TimelineTask& t) { return t.run().time().begin; });
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const bool is_known = i > 0 && known.between(tasks[i - 1], tasks[i]);
      tasks[i].free_since = is_known ? tasks[i - 1].run().time().end : tasks[i].run().time().begin;
    }
  }
  return workers;
}

std::int64_t first_begin(const CapturedProcess& process) {
  std::int64_t first = ever;
  for (const CapturedSet& set : process.sets) {
    for (const CapturedProgram& program : set.programs) {
      for (const RecordedStep::Run& run : program.steps.front().runs)
        first = std::min(first, run.time().begin);
    }
  }
  return first == ever ? 0 : first;
}

}  // namespace arenite::runtime
