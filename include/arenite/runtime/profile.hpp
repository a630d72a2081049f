// Where the time of a program's steps went.
//
//   program.start_profile(100);                    // allocates all it needs
//   for (…) program.submit();
//   std::cout << program.stop_profile();
//
// Each worker's time is divided in four, so that the parts of all workers add up to workers × wall
// time, to the nanosecond:
//   kernels   inside the ops of tasks that are no staging
//   staging   inside the ops of tasks that refill inputs for a later step
//   idle      before the worker's next task was ready: not all that it follows had ended
//   runtime   after that: a ready task waited for StarPU, or for the host to submit it
// A task follows its data and reuse edges, the step before it, and the last step of its task set.
//
// The wall time begins with the first step's first task that is no staging, and ends with the last
// step. The first step's own staging lies before it, and within it that of the step behind the
// last: N stagings in N steps, one less where no step follows. The times of ops are of the N steps'
// own.
//
// A profile takes at least 64 bytes a task and step, from start_profile to stop_profile.
//
// Any process that builds programs can be watched from outside, too, by its environment:
//   ARENITE_TRACE=FILE     a trace of each program's last steps for ui.perfetto.dev or
//                          chrome://tracing: tasks by worker, what they waited for, their ops with
//                          bytes and rates, the memory plan's tenants, live bytes as counters
//   ARENITE_MEMORY=FILE    an SVG picture of a step's memory: the plan, and what was used of it
//   ARENITE_TRACE_STEPS=N  how many of each program's last steps are kept: 20, at most 1000
// Files are written when the process ends, and before that when a program set does, unless writing
// them would take more than a twentieth of the time. Steps have the same bits and
// still allocate nothing; programs on GPUs are not recorded.
//
// Times are of std::chrono::steady_clock, one reading at a task's begin and one after each op. A
// Profile is plain data: safe to copy, read from any thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace arenite::runtime {

/// The most steps that one profile holds.
inline constexpr long max_profile_steps = 100'000;

/// Nanoseconds of workers.
struct TimeParts {
  std::int64_t kernels = 0, staging = 0, idle = 0, runtime = 0;

  std::int64_t total() const noexcept { return kernels + staging + idle + runtime; }
  TimeParts& operator+=(const TimeParts& other) noexcept;
};

/// One op of the network, over its lanes and all steps, each execution counted whole.
struct OpTime {
  std::string op, kernel, where;  ///< "conv2d", "xsmm", "conv1"
  double microseconds = 0;        ///< of workers, a step
  double share = 0;               ///< of the time inside ops, 0 to 1
  double gflops = 0;              ///< rate, by the definition's cost; 0 where that counts no flops
};

struct Profile {
  std::string program;
  long steps = 0;
  std::int64_t wall = 0;  ///< ns, from the first task that is no staging to the last one's end
  std::vector<TimeParts> workers;
  /// Of the runtime part: before the host began to submit the step. ns of workers.
  std::int64_t unsubmitted = 0;
  /// Of the idle part: while a task, ready and submitted, waited for another worker. ns of workers.
  std::int64_t beside_ready = 0;
  std::vector<OpTime> ops;  ///< longest first
  double clock = 0;         ///< ns that one reading of the clock took

  TimeParts all() const noexcept;  ///< sum over the workers
  /// Microseconds of one part a step, all workers together. 0 before the first step.
  double per_step(std::int64_t nanoseconds) const noexcept;
};

/// The parts by worker, then the ops.
std::ostream& operator<<(std::ostream& out, const Profile& profile);

/// {"program": "train", "steps": 100, "workers": 2, "wall_us": …, "clock_ns": …,
///  "us_per_step": {"kernels": …, "staging": …, "runtime": …, "idle": …, "unsubmitted": …,
///                  "beside_ready": …},
///  "ops": [{"op": "conv2d", "kernel": "xsmm", "where": "conv1", "us_per_step": …, "share": …,
///           "gflops": …}, …]}
std::string to_json(const Profile& profile);

}  // namespace arenite::runtime
