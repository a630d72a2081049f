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
    const std::size_t slots = 1 + 1 + task.ops.size();
    stride_ += (slots + slots_per_line - 1) / slots_per_line * slots_per_line;
  }
  // Zeros, so that no step is the first to touch a page.
  slots_.reset(new (std::align_val_t(line_bytes)) std::int64_t[capacity_ * stride_]());
  submitted_.resize(capacity_);
}

StepRecords StepRecords::last(const StepShape& shape, long counted) {
  // Those under way beside the last ones have rows of their own.
  StepRecords records(shape, 0, counted + 1);
  records.around_ = true;
  --records.counted_;
  return records;
}

void StepRecords::Free::operator()(std::int64_t* slots) const noexcept {
  ::operator delete[](slots, std::align_val_t(line_bytes));
}

}  // namespace arenite::runtime
