// What was recorded of a program's last steps, as plain data: who ran what and when, and which
// bytes it touched. Traces and pictures are made from this alone.
#pragma once

#include <arenite/types.hpp>

#include "src/runtime/profile_records.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace arenite::runtime {

/// What a step's tasks are, beside what StepShape says of them.
struct CaptureShape {
  struct Task {
    std::string name;  ///< "backward conv1, pool1 (lane 0)"
    Phase phase = Phase::forward;
    int lane = -1;            ///< -1: of no lane
    double microseconds = 0;  ///< that the schedule was made with
    /// Of an edge that is there only because bytes are used again: from which task, and whose
    /// bytes.
    struct Reuse {
      std::size_t before = 0;
      std::string bytes;  ///< "'b' takes bytes of 'a'"
    };
    std::vector<Reuse> reuse;
  };
  /// Bytes that an op touches, those that it reads and writes in both.
  struct Traffic {
    std::int64_t read = 0, written = 0;
  };
  /// An op of a task: row `op` of its StepShape::Task::ops.
  struct Touch {
    std::size_t task = 0, op = 0;
  };
  /// A value with bytes of a block that others use before and after it.
  struct Tenant {
    std::string name, label;  ///< "conv1.out", "saved"
    Phase phase = Phase::forward;
    std::size_t block = 0;  ///< of `blocks`
    std::int64_t offset = 0, bytes = 0;
    std::vector<Touch> touches;
  };
  /// What tenants live in.
  struct Block {
    std::string name;
    std::int64_t peak = 0, lower_bound = 0;  ///< bytes, of this program
    bool optimal = false;
  };

  StepShape steps;
  std::vector<Task> tasks;       ///< as `steps.tasks`
  std::vector<Traffic> traffic;  ///< as `steps.ops`
  std::vector<Tenant> tenants;
  std::vector<Block> blocks;
};

struct CapturedProgram {
  CaptureShape shape;
  std::vector<RecordedStep> steps;  ///< one after another, without a gap; at least one
};

/// A block of any kind, and what became of it.
struct CapturedBlock {
  std::string name;
  std::int64_t bytes = 0;     ///< planned
  std::int64_t resident = 0;  ///< in memory now, in whole pages
  /// Written since the beginning, in lines of 64 bytes; -1: not observed.
  std::int64_t touched = -1;
  std::vector<Span> untouched;  ///< where observed: the other lines, ascending
};

/// What one program set leaves behind.
struct CapturedSet {
  std::size_t number = 1;                 ///< in the order in which the process built them
  bool under_way = false;                 ///< steps may be that are not here
  std::vector<CapturedProgram> programs;  ///< that ran at least one step
  std::vector<std::string> on_devices;    ///< programs that run on GPUs: not recorded
  std::vector<CapturedBlock> blocks;
  std::int64_t resident = 0, most_resident = 0;  ///< bytes of the whole process, now and at most
};

/// What all program sets of the process left.
struct CapturedProcess {
  std::deque<CapturedSet> sets;
  std::size_t forgotten = 0;         ///< sets before these
  std::int64_t forgotten_until = 0;  ///< the end of their last step
};

/// What a task waited for last, until it was ready.
struct Wait {
  enum class For : std::uint8_t {
    nothing,     ///< known: the first recorded step
    data,        ///< another task of its step, whose values it needs
    reuse,       ///< another task of its step, whose bytes it takes
    step,        ///< the step before
    task_set,    ///< the last step of its task set
    submission,  ///< the host
  };

  For reason = For::nothing;
  std::size_t task = 0;    ///< with data and reuse
  std::int64_t ready = 0;  ///< when
};

/// `steps[index]` must be there, and its task.
Wait wait_of(const CapturedProgram& program, std::size_t index, std::size_t task);

/// From the first op that touches the tenant's bytes to the last one, in one step.
Span lifetime(const CaptureShape& shape, const RecordedStep& step, std::size_t tenant);

/// From the first task that is no staging to the end of the last one.
Span duration(const CaptureShape& shape, const RecordedStep& step);

/// How often two tenants of one byte were alive at the same time, in all steps: 0, or the plan's
/// edges were not kept.
std::size_t clashes(const CapturedProgram& program);

}  // namespace arenite::runtime
