// What a profile is made from: stamps that steps leave behind, and the shape of a step's tasks.
#pragma once

#include <arenite/runtime/profile.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace arenite::runtime {

/// A step's tasks as StarPU was told of them.
struct StepShape {
  struct Task {
    std::vector<std::size_t> before;  ///< tasks of the same step that it follows
    std::vector<std::size_t> ops;     ///< rows of `ops`, in running order
    bool staging = false;
    bool entry = false;  ///< follows the end of the step before
  };
  struct Row {
    std::string op, kernel, where;
    double flops = 0;  ///< of one execution in one lane
  };

  std::string program;
  std::vector<Task> tasks;
  std::vector<Row> ops;
  std::size_t end = 0;  ///< the task that follows all others
  std::size_t task_sets = 2;
  std::size_t workers = 1;
};

/// [begin, end), of nanoseconds of StepRecords::now() or of bytes.
struct Span {
  std::int64_t begin = 0, end = 0;

  std::int64_t length() const noexcept { return std::max<std::int64_t>(0, end - begin); }
  Span within(const Span& other) const noexcept {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};

/// What was recorded of a step.
struct RecordedStep {
  /// Of a task.
  struct Run {
    int worker = 0;
    std::vector<std::int64_t> stamps;  ///< its begin, and the end of each op

    Span time() const noexcept { return {stamps.front(), stamps.back()}; }
    Span of_op(std::size_t op) const { return {stamps.at(op), stamps.at(op + 1)}; }
  };

  long number = -1;  ///< from 0
  long turn = 0;     ///< the same as that of the step before: no other program ran between them
  std::int64_t submitted = 0;
  std::vector<Run> runs;  ///< by task
};

/// Times of some steps, in memory taken when it is made. Whoever submits a step stamps it; each
/// worker writes what belongs to its task, to cache lines that no other task writes. Read it when
/// no step is under way; `read` alone may be called at any time.
class StepRecords {
 public:
  /// `counted` steps from `first` on are analysed; those that may run beside the last of them are
  /// recorded, too.
  StepRecords(const StepShape& shape, long first, long counted);
  /// Of whatever steps there will be, the last `counted` ones are kept.
  static StepRecords last(const StepShape& shape, long counted);

  static std::int64_t now() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  /// `turn`: of take_turn.
  void submitting(long step, long turn = 0) noexcept;

  /// A task that runs: each call stamps, its begin first, then the end of each op; the end of this
  /// says that all are there. No records, or all rows taken: nothing happens.
  class Stamps {
   public:
    Stamps(StepRecords* records, long step, std::size_t task, int worker) noexcept;
    ~Stamps();
    Stamps(const Stamps&) = delete;
    Stamps& operator=(const Stamps&) = delete;

    bool recorded() const noexcept { return task_ != nullptr; }
    void operator()(std::int64_t time) noexcept {
      if (next_ != nullptr) Slot(*next_++).store(time, std::memory_order_release);
    }

   private:
    std::int64_t* task_ = nullptr;
    std::int64_t* next_ = nullptr;
    long step_ = 0;
  };

  /// Of one step all that there is, or false where some is not there yet or no longer.
  bool read(std::size_t row, RecordedStep& step) const;

  long first() const noexcept { return first_; }
  std::size_t counted() const noexcept { return counted_; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::int64_t submitted(std::size_t row) const noexcept {
    return rows_[row].submitted.load(std::memory_order_relaxed);
  }
  int worker(std::size_t row, std::size_t task) const noexcept {
    return static_cast<int>(slots(row, task)[1]);
  }
  const std::int64_t* stamps(std::size_t row, std::size_t task) const noexcept {
    return slots(row, task) + 2;
  }

 private:
  using Slot = std::atomic_ref<std::int64_t>;

  /// Of a step; `number` is -1 while the others are written.
  struct Row {
    std::atomic<long> number{-1}, turn{0};
    std::atomic<std::int64_t> submitted{0};
  };
  struct Free {
    void operator()(std::int64_t* slots) const noexcept;
  };

  std::size_t row_of(long step) const noexcept {
    const auto row = static_cast<std::size_t>(step - first_);
    return around_ ? row % capacity_ : row;
  }

  /// The number of the step that all is there of, plus 1; the task's worker, its begin, and the end
  /// of each op.
  std::int64_t* slots(std::size_t row, std::size_t task) const noexcept {
    return slots_.get() + row * stride_ + offsets_[task];
  }

  long first_;
  std::size_t counted_, capacity_;
  bool around_ = false;                          // rows are used again
  std::size_t stride_ = 0;                       // slots of a step
  std::vector<std::size_t> offsets_;             // by task, in its step's slots
  std::unique_ptr<std::int64_t[], Free> slots_;  // whole cache lines a task
  std::vector<std::size_t> stamps_;              // by task
  std::unique_ptr<Row[]> rows_;
};

/// To be called by each program whose steps are recorded, with itself, when it submits one: another
/// number than before where another program did so since.
long take_turn(const void* program) noexcept;

/// `done` steps were submitted, and have ended, since the records began.
Profile analyse(const StepShape& shape, const StepRecords& records, std::size_t done);

}  // namespace arenite::runtime
