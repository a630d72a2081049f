#include "src/plan/search/conflicts.hpp"

#include <algorithm>
#include <numeric>

namespace arenite::plan {

Conflicts::Conflicts(const Instance& instance)
    : instance_(instance), items_(instance.items.size()) {
  std::iota(items_.begin(), items_.end(), std::size_t{0});
  if (instance.words != 0) return;
  const std::size_t n = items_.size();
  std::stable_sort(items_.begin(), items_.end(), [&](std::size_t a, std::size_t b) {
    return instance.items[a].begin < instance.items[b].begin;
  });
  for (const std::size_t item : items_) {
    begins_.push_back(instance.items[item].begin);
    ends_.push_back(instance.items[item].end);
  }
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto after = std::lower_bound(begins_.begin(), begins_.end(), ends_[i]);
    after_.push_back(static_cast<std::size_t>(after - begins_.begin()));
    pairs += after_[i] - i - 1;
  }
  // A group is as long as what it finds alive, so that all of these together are about n.
  stride_ = std::max<std::size_t>(16, n == 0 ? 0 : pairs / n);
  std::vector<Life> alive;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % stride_ == 0) {
      std::erase_if(alive, [&](const Life& life) { return life.end <= begins_[i]; });
      old_.push_back(alive);
    }
    alive.push_back({ends_[i], i});
  }
}

}  // namespace arenite::plan
