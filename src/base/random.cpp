#include <arenite/error.hpp>
#include <arenite/random.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace arenite {

float Philox::uniform(std::uint64_t index, float low, float high) const noexcept {
  if (!(low < high)) return low;
  // In double, because high - low may not fit a float; rounding back to float may still reach
  // `high`.
  const double value = low + (double{high} - low) * uniform(index);
  const float rounded = static_cast<float>(value);
  return rounded < high ? rounded : std::nextafter(high, low);
}

std::uint32_t Philox::below(std::uint64_t index, std::uint32_t bound) const noexcept {
  if (bound == 0) return 0;
  // D. Lemire, "Fast random integer generation in an interval", 2019: the product's high half is
  // the result; the few low halves that would favour some results are drawn again.
  const std::uint32_t threshold = (0u - bound) % bound;
  for (std::uint32_t attempt = 1;; ++attempt) {
    for (std::uint32_t word : draw(index, attempt)) {
      const std::uint64_t product = std::uint64_t{word} * bound;
      if (static_cast<std::uint32_t>(product) >= threshold)
        return static_cast<std::uint32_t>(product >> 32);
    }
  }
}

void permutation(std::span<std::int32_t> order, std::uint64_t seed, std::uint32_t epoch) {
  if (order.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    fail({.found = "a permutation of " + std::to_string(order.size()) + " elements",
          .expected = "at most 2^31-1 elements"});
  }
  const Philox random(seed, Purpose::shuffle, epoch);
  // Fisher–Yates, "inside out": element i joins the i before it at a random place.
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t j = random.below(i, static_cast<std::uint32_t>(i + 1));
    order[i] = static_cast<std::int32_t>(i);
    std::swap(order[i], order[j]);
  }
}

std::vector<std::int32_t> permutation(std::int64_t count, std::uint64_t seed, std::uint32_t epoch) {
  if (count < 0 || count > std::numeric_limits<std::int32_t>::max()) {
    fail({.found = "a permutation of " + std::to_string(count) + " elements",
          .expected = "between 0 and 2^31-1 elements"});
  }
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  permutation(std::span(order), seed, epoch);
  return order;
}

}  // namespace arenite
