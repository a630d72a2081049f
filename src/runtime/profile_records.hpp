// What a profile is made from: stamps that steps leave behind, and the shape of a step's tasks.
#pragma once

#include <arenite/runtime/profile.hpp>

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

/// Times of some steps, in memory taken when it is made. The host stamps the steps it submits;
/// each worker writes what belongs to its task, to cache lines that no other task writes. Read it
/// when no step is under way.
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

  void submitting(long step) noexcept {
    if (const auto row = row_of(step); row < capacity_) submitted_[row] = now();
  }

  /// Where the task writes its begin and the end of each op; nullptr when all rows are taken.
  std::int64_t* begin(long step, std::size_t task, int worker) noexcept {
    const std::size_t row = row_of(step);
    if (row >= capacity_) return nullptr;
    std::int64_t* const mine = slots(row, task);
    *mine = worker;
    return mine + 1;
  }

  long first() const noexcept { return first_; }
  std::size_t counted() const noexcept { return counted_; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::int64_t submitted(std::size_t row) const noexcept { return submitted_[row]; }
  int worker(std::size_t row, std::size_t task) const noexcept {
    return static_cast<int>(*slots(row, task));
  }
  const std::int64_t* stamps(std::size_t row, std::size_t task) const noexcept {
    return slots(row, task) + 1;
  }

  /// Of a step that is kept.
  std::size_t row_of(long step) const noexcept {
    const auto row = static_cast<std::size_t>(step - first_);
    return around_ ? row % capacity_ : row;
  }

 private:
  struct Free {
    void operator()(std::int64_t* slots) const noexcept;
  };

  /// The task's worker, its begin, and the end of each op.
  std::int64_t* slots(std::size_t row, std::size_t task) const noexcept {
    return slots_.get() + row * stride_ + offsets_[task];
  }

  long first_;
  std::size_t counted_, capacity_;
  bool around_ = false;                          // rows are used again
  std::size_t stride_ = 0;                       // slots of a step
  std::vector<std::size_t> offsets_;             // by task, in its step's slots
  std::unique_ptr<std::int64_t[], Free> slots_;  // whole cache lines a task
  std::vector<std::int64_t> submitted_;
};

/// `done` steps were submitted, and have ended, since the records began.
Profile analyse(const StepShape& shape, const StepRecords& records, std::size_t done);

}  // namespace arenite::runtime
