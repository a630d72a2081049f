#include "src/runtime/profile_records.hpp"

#include <new>

namespace arenite::runtime {
namespace {

constexpr std::size_t line_bytes = 64, slots_per_line = line_bytes / sizeof(std::int64_t);

}  // namespace

StepRecords::StepRecords(const StepShape& shape, long first, long counted)
    : first_(first),
      counted_(static_cast<std::size_t>(counted)),
      // The task set of the step after these is free only when the last counted step has ended.
      capacity_(counted_ + shape.task_sets - 1) {
  for (const StepShape::Task& task : shape.tasks) {
    offsets_.push_back(stride_);
    stamps_.push_back(1 + task.ops.size());
    const std::size_t slots = 1 + 1 + stamps_.back();
    stride_ += (slots + slots_per_line - 1) / slots_per_line * slots_per_line;
  }
  // Zeros, so that no step is the first to touch a page.
  slots_.reset(new (std::align_val_t(line_bytes)) std::int64_t[capacity_ * stride_]());
  rows_ = std::make_unique<Row[]>(capacity_);
}

StepRecords StepRecords::last(const StepShape& shape, long counted) {
  // Those under way beside the last ones have rows of their own.
  StepRecords records(shape, 0, counted + 1);
  records.around_ = true;
  --records.counted_;
  return records;
}

// As a sequence lock: what is read between two looks at one number belongs to that step. Who reads
// a value of the next step, stored with release, sees in the second look that the number has gone.

void StepRecords::submitting(long step, long turn) noexcept {
  const std::size_t number = row_of(step);
  if (number >= capacity_) return;
  Row& row = rows_[number];
  row.number.store(-1, std::memory_order_relaxed);
  row.turn.store(turn, std::memory_order_release);
  row.submitted.store(now(), std::memory_order_release);
  row.number.store(step, std::memory_order_release);
}

StepRecords::Stamps::Stamps(StepRecords* records, long step, std::size_t task, int worker) noexcept
    : step_(step) {
  if (records == nullptr) return;
  const std::size_t row = records->row_of(step);
  if (row >= records->capacity_) return;
  task_ = records->slots(row, task);
  Slot(task_[0]).store(0, std::memory_order_relaxed);
  Slot(task_[1]).store(worker, std::memory_order_release);
  next_ = task_ + 2;
}

StepRecords::Stamps::~Stamps() {
  if (task_ != nullptr) Slot(task_[0]).store(step_ + 1, std::memory_order_release);
}

bool StepRecords::read(std::size_t number, RecordedStep& step) const {
  const Row& row = rows_[number];
  step.number = row.number.load(std::memory_order_acquire);
  if (step.number < 0) return false;
  step.turn = row.turn.load(std::memory_order_acquire);
  step.submitted = row.submitted.load(std::memory_order_acquire);
  step.runs.assign(stamps_.size(), {});
  for (std::size_t t = 0; t < stamps_.size(); ++t) {
    std::int64_t* const task = slots(number, t);
    if (Slot(task[0]).load(std::memory_order_acquire) != step.number + 1) return false;
    step.runs[t].worker = static_cast<int>(Slot(task[1]).load(std::memory_order_acquire));
    for (std::size_t i = 0; i < stamps_[t]; ++i)
      step.runs[t].stamps.push_back(Slot(task[2 + i]).load(std::memory_order_acquire));
    if (Slot(task[0]).load(std::memory_order_relaxed) != step.number + 1) return false;
  }
  return row.number.load(std::memory_order_relaxed) == step.number;
}

long take_turn(const void* program) noexcept {
  // Two programs at once take turns at random: then their steps do not follow one another.
  static std::atomic<const void*> last{nullptr};
  static std::atomic<long> turn{0};
  if (last.load(std::memory_order_relaxed) != program) {
    last.store(program, std::memory_order_relaxed);
    return turn.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return turn.load(std::memory_order_relaxed);
}

void StepRecords::Free::operator()(std::int64_t* slots) const noexcept {
  ::operator delete[](slots, std::align_val_t(line_bytes));
}

}  // namespace arenite::runtime
