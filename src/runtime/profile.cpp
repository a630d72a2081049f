#include <arenite/error.hpp>

#include "src/runtime/profile_records.hpp"
#include "src/runtime/program_impl.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace arenite::runtime {
namespace {

constexpr std::size_t stamps_per_line = 64 / sizeof(std::int64_t);

/// Nanoseconds [begin, end).
struct Interval {
  std::int64_t begin = 0, end = 0;

  std::int64_t length() const noexcept { return std::max<std::int64_t>(0, end - begin); }
  Interval within(const Interval& other) const noexcept {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};

/// One execution of a task.
struct Run {
  Interval time;
  std::int64_t ready = 0;  ///< all that it follows had ended
  std::size_t row = 0, task = 0;
};

/// Overlapping intervals made one.
std::vector<Interval> united(std::vector<Interval> list) {
  std::sort(list.begin(), list.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> result;
  for (const Interval& interval : list) {
    if (interval.length() == 0) continue;
    if (!result.empty() && interval.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, interval.end);
    } else {
      result.push_back(interval);
    }
  }
  return result;
}

/// How much of `interval` a sorted list without overlaps covers.
std::int64_t covered(const Interval& interval, const std::vector<Interval>& list) {
  auto it = std::lower_bound(list.begin(), list.end(), interval.begin,
                             [](const Interval& i, std::int64_t begin) { return i.end <= begin; });
  std::int64_t sum = 0;
  for (; it != list.end() && it->begin < interval.end; ++it) sum += it->within(interval).length();
  return sum;
}

class Analysis {
 public:
  Analysis(const StepShape& shape, const StepRecords& records, std::size_t done)
      : shape_(shape),
        records_(records),
        steps_(std::min(done, records.counted())),
        runs_(shape.workers),
        op_time_(shape.ops.size(), 0) {
    collect(std::min(done, records.capacity()));
  }

  Profile run() {
    Profile profile;
    profile.program = shape_.program;
    profile.steps = static_cast<long>(steps_);
    profile.workers.resize(shape_.workers);
    if (steps_ == 0) return profile;
    profile.wall = window_.length();
    for (std::size_t worker = 0; worker < shape_.workers; ++worker)
      divide(worker, profile.workers[worker], profile);
    add_ops(profile);
    return profile;
  }

 private:
  Interval time_of(std::size_t row, std::size_t task) const {
    const std::int64_t* stamps = records_.stamps(row, task);
    return {stamps[0], stamps[shape_.tasks[task].ops.size()]};
  }

  std::int64_t ready(std::size_t row, std::size_t task) const {
    std::int64_t latest = std::numeric_limits<std::int64_t>::min();
    for (std::size_t before : shape_.tasks[task].before)
      latest = std::max(latest, time_of(row, before).end);
    if (shape_.tasks[task].entry && row >= 1)
      latest = std::max(latest, time_of(row - 1, shape_.end).end);
    // A task set is submitted again when its last step has ended.
    if (row >= shape_.task_sets)
      latest = std::max(latest, time_of(row - shape_.task_sets, shape_.end).end);
    return latest;
  }

  /// Rows beyond the counted steps serve to see what ran ahead beside the last of them.
  void collect(std::size_t rows) {
    window_ = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t task = 0; task < shape_.tasks.size(); ++task) {
        const Run run{time_of(row, task), ready(row, task), row, task};
        runs_.at(static_cast<std::size_t>(records_.worker(row, task))).push_back(run);
        window_.begin = std::min(window_.begin, run.time.begin);
        if (row < steps_) window_.end = std::max(window_.end, run.time.end);
      }
    }
    std::vector<Interval> waits;
    for (auto& list : runs_) {
      std::sort(list.begin(), list.end(), [](const Run& a, const Run& b) {
        return std::pair(a.time.begin, a.time.end) < std::pair(b.time.begin, b.time.end);
      });
      for (const Run& run : list)
        waits.push_back(Interval{run.ready, run.time.begin}.within(window_));
    }
    waiting_ = united(std::move(waits));
  }

  /// Walks along a worker's runs; what lies between them is idle until the next is ready.
  void divide(std::size_t worker, TimeParts& parts, Profile& profile) {
    std::int64_t at = window_.begin;
    const auto idle = [&](const Interval& time) {
      parts.idle += time.length();
      profile.beside_ready += covered(time, waiting_);
    };
    for (const Run& run : runs_[worker]) {
      const Interval gap = Interval{at, run.time.begin}.within(window_);
      const std::int64_t ready = std::clamp(run.ready, gap.begin, std::max(gap.begin, gap.end));
      idle({gap.begin, ready});
      const Interval late{ready, gap.end};
      parts.runtime += late.length();
      profile.unsubmitted += late.within({window_.begin, records_.submitted(run.row)}).length();
      const std::int64_t inside = run.time.within(window_).length();
      (shape_.tasks[run.task].staging ? parts.staging : parts.kernels) += inside;
      add_op_times(run);
      at = std::clamp(run.time.end, at, window_.end);
    }
    idle({at, window_.end});
  }

  void add_op_times(const Run& run) {
    const std::int64_t* stamps = records_.stamps(run.row, run.task);
    const auto& ops = shape_.tasks[run.task].ops;
    for (std::size_t i = 0; i < ops.size(); ++i)
      op_time_[ops[i]] += Interval{stamps[i], stamps[i + 1]}.within(window_).length();
  }

  /// Lanes and repeated uses of one op are one row for people.
  void add_ops(Profile& profile) const {
    struct Sum {
      std::int64_t time = 0;
      double flops = 0;
    };
    std::map<std::tuple<std::string, std::string, std::string>, Sum> rows;
    for (std::size_t i = 0; i < shape_.ops.size(); ++i) {
      const StepShape::Row& row = shape_.ops[i];
      Sum& sum = rows[{row.op, row.kernel, row.where}];
      sum.time += op_time_[i];
      sum.flops += row.flops * static_cast<double>(steps_);
    }
    const TimeParts all = profile.all();
    const auto inside = static_cast<double>(std::max<std::int64_t>(1, all.kernels + all.staging));
    for (const auto& [name, sum] : rows) {
      const auto& [op, kernel, where] = name;
      profile.ops.push_back(
          {.op = op,
           .kernel = kernel,
           .where = where,
           .microseconds = profile.per_step(sum.time),
           .share = static_cast<double>(sum.time) / inside,
           .gflops = sum.time > 0 ? sum.flops / static_cast<double>(sum.time) : 0});
    }
    std::stable_sort(profile.ops.begin(), profile.ops.end(), [](const OpTime& a, const OpTime& b) {
      return a.microseconds > b.microseconds;
    });
  }

  const StepShape& shape_;
  const StepRecords& records_;
  const std::size_t steps_;
  Interval window_;
  std::vector<std::vector<Run>> runs_;  // by worker, in time
  std::vector<Interval> waiting_;       // while any ready task waited
  std::vector<std::int64_t> op_time_;   // ns, by row of the shape
};

double clock_cost() {
  constexpr int readings = 1000;
  const std::int64_t start = StepRecords::now();
  std::int64_t last = start;
  for (int i = 0; i < readings; ++i) last = StepRecords::now();
  return static_cast<double>(last - start) / readings;
}

}  // namespace

TimeParts& TimeParts::operator+=(const TimeParts& other) noexcept {
  kernels += other.kernels;
  staging += other.staging;
  idle += other.idle;
  runtime += other.runtime;
  return *this;
}

TimeParts Profile::all() const noexcept {
  TimeParts sum;
  for (const TimeParts& worker : workers) sum += worker;
  return sum;
}

double Profile::per_step(std::int64_t nanoseconds) const noexcept {
  return steps == 0 ? 0 : static_cast<double>(nanoseconds) * 1e-3 / static_cast<double>(steps);
}

StepRecords::StepRecords(const StepShape& shape, long first, long counted)
    : first_(first),
      counted_(static_cast<std::size_t>(counted)),
      // The task set of the step after these is free only when the last counted step has ended.
      capacity_(counted_ + shape.task_sets - 1),
      tasks_(shape.tasks.size()) {
  for (const StepShape::Task& task : shape.tasks) {
    offsets_.push_back(stride_);
    // Tasks that run side by side write to lines of their own.
    stride_ += (task.ops.size() + 1 + stamps_per_line - 1) / stamps_per_line * stamps_per_line;
  }
  stamps_.resize(capacity_ * stride_);
  submitted_.resize(capacity_);
  workers_.resize(capacity_ * tasks_);
}

Profile analyse(const StepShape& shape, const StepRecords& records, std::size_t done) {
  return Analysis(shape, records, done).run();
}

StepShape Program::Impl::shape() const {
  StepShape shape;
  shape.program = spec.name;
  shape.task_sets = sets.size();
  shape.workers = static_cast<std::size_t>(set.session.workers());
  const TaskSet& tasks = sets.front();
  const auto number = [&](const starpu_task* task) {
    return static_cast<std::size_t>(std::find(tasks.tasks.begin(), tasks.tasks.end(), task) -
                                    tasks.tasks.begin());
  };
  shape.end = number(tasks.end);
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
  for (const starpu_task* entry : tasks.entries) shape.tasks[number(entry)].entry = true;
  return shape;
}

void Program::start_profile(long count) {
  constexpr long most = 100'000;
  if (count < 1 || count > most) {
    fail({.found = "a profile of " + std::to_string(count) + " steps",
          .expected = "1 to " + std::to_string(most)});
  }
  wait();
  Impl& p = *impl_;
  StepShape shape = p.shape();
  StepRecords records(shape, p.steps, count);
  auto recording = std::make_unique<Recording>(Recording{std::move(shape), std::move(records)});
  p.recording = std::move(recording);
  p.flags.records = &p.recording->records;
}

Profile Program::stop_profile() {
  Impl& p = *impl_;
  if (!p.recording) {
    fail({.found = "no profile of program '" + p.spec.name + "' under way",
          .expected = "a call of start_profile first"});
  }
  p.drain();
  p.flags.records = nullptr;
  const std::unique_ptr<Recording> done = std::move(p.recording);
  Profile profile = analyse(done->shape, done->records,
                            static_cast<std::size_t>(p.steps - done->records.first()));
  profile.clock = clock_cost();
  return profile;
}

}  // namespace arenite::runtime
