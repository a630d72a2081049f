// What stamps of some steps say: each worker's time divided, and that of each op.
#include "src/runtime/profile_records.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace arenite::runtime {
namespace {

/// One execution of a task.
struct Run {
  Span time;
  std::int64_t ready = 0;  ///< all that it follows had ended
  std::size_t row = 0, task = 0;
};

/// A task that was ready and submitted, until its worker began it.
struct Wait {
  Span time;
  std::size_t worker = 0;
};

/// How much of `interval` a sorted list without overlaps covers.
std::int64_t covered(const Span& interval, const std::vector<Span>& list) {
  auto it = std::lower_bound(list.begin(), list.end(), interval.begin,
                             [](const Span& i, std::int64_t begin) { return i.end <= begin; });
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
  Span time_of(std::size_t row, std::size_t task) const {
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

  /// The window begins behind the first step's staging, since the staging of the step after the
  /// last runs within it: rows beyond the counted steps are there to see that.
  void collect(std::size_t rows) {
    window_ = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t task = 0; task < shape_.tasks.size(); ++task) {
        const Run run{time_of(row, task), ready(row, task), row, task};
        runs_.at(static_cast<std::size_t>(records_.worker(row, task))).push_back(run);
        if (row == 0 && !shape_.tasks[task].staging)
          window_.begin = std::min(window_.begin, run.time.begin);
        if (row < steps_) window_.end = std::max(window_.end, run.time.end);
      }
    }
    for (std::size_t worker = 0; worker < runs_.size(); ++worker) {
      auto& list = runs_[worker];
      std::sort(list.begin(), list.end(), [](const Run& a, const Run& b) {
        return std::pair(a.time.begin, a.time.end) < std::pair(b.time.begin, b.time.end);
      });
      for (const Run& run : list) {
        const std::int64_t from = std::max(run.ready, records_.submitted(run.row));
        const Span wait = Span{from, run.time.begin}.within(window_);
        if (wait.length() > 0) waits_.push_back({wait, worker});
      }
    }
    std::sort(waits_.begin(), waits_.end(),
              [](const Wait& a, const Wait& b) { return a.time.begin < b.time.begin; });
  }

  /// When any task waited that another worker than this one came to run: in time, overlaps made
  /// one.
  std::vector<Span> waits_beside(std::size_t worker) const {
    std::vector<Span> list;
    for (const Wait& wait : waits_) {
      if (wait.worker == worker) continue;
      if (!list.empty() && wait.time.begin <= list.back().end) {
        list.back().end = std::max(list.back().end, wait.time.end);
      } else {
        list.push_back(wait.time);
      }
    }
    return list;
  }

  /// Walks along a worker's runs; what lies between them is idle until the next is ready.
  void divide(std::size_t worker, TimeParts& parts, Profile& profile) {
    const std::vector<Span> waits = waits_beside(worker);
    std::int64_t at = window_.begin;
    const auto idle = [&](const Span& time) {
      parts.idle += time.length();
      profile.beside_ready += covered(time, waits);
    };
    for (const Run& run : runs_[worker]) {
      const Span gap = Span{at, run.time.begin}.within(window_);
      const std::int64_t ready = std::clamp(run.ready, gap.begin, std::max(gap.begin, gap.end));
      idle({gap.begin, ready});
      const Span late{ready, gap.end};
      parts.runtime += late.length();
      profile.unsubmitted += late.within({window_.begin, records_.submitted(run.row)}).length();
      const std::int64_t inside = run.time.within(window_).length();
      (shape_.tasks[run.task].staging ? parts.staging : parts.kernels) += inside;
      add_op_times(run);
      at = std::clamp(run.time.end, at, window_.end);
    }
    idle({at, window_.end});
  }

  /// Each op runs once in a step of its own, be it outside the window.
  void add_op_times(const Run& run) {
    if (run.row >= steps_) return;
    const std::int64_t* stamps = records_.stamps(run.row, run.task);
    const auto& ops = shape_.tasks[run.task].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) op_time_[ops[i]] += stamps[i + 1] - stamps[i];
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
    const auto inside = static_cast<double>(std::max<std::int64_t>(
        1, std::accumulate(op_time_.begin(), op_time_.end(), std::int64_t{0})));
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
  Span window_;
  std::vector<std::vector<Run>> runs_;  // by worker, in time
  std::vector<Wait> waits_;             // by begin
  std::vector<std::int64_t> op_time_;   // ns, by row of the shape, of the counted steps
};

}  // namespace

Profile analyse(const StepShape& shape, const StepRecords& records, std::size_t done) {
  return Analysis(shape, records, done).run();
}

}  // namespace arenite::runtime
