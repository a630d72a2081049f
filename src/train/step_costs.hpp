// Adds up what the process asked of the system while steps were under way.
#pragma once

#include <arenite/runtime/heap_calls.hpp>
#include <arenite/train/trainer.hpp>

#include <optional>

namespace arenite::train {

class CostMeter {
 public:
  /// Before the first step of a stretch, with no other under way. One that was never ended, since a
  /// step of it failed, is forgotten.
  void begin() noexcept {
    heap_before_ = runtime::heap_calls();
    maps_before_ = runtime::map_calls();
    runtime::count_as_steps(true);
  }

  /// When the last step of a stretch has ended.
  void end() noexcept {
    runtime::count_as_steps(false);
    add(costs_.heap_calls, heap_before_, runtime::heap_calls());
    add(costs_.map_calls, maps_before_, runtime::map_calls());
  }

  StepCosts& costs() noexcept { return costs_; }

 private:
  static void add(std::optional<long>& sum, std::optional<long> before,
                  std::optional<long> now) noexcept {
    if (before && now) sum = sum.value_or(0) + *now - *before;
  }

  StepCosts costs_;
  std::optional<long> heap_before_, maps_before_;
};

}  // namespace arenite::train
