#include "src/plan/search/orders.hpp"

#include <arenite/random.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace arenite::plan {
namespace {

constexpr std::int32_t octave = 64;  // of the logarithms, straight lines in between

std::int32_t logarithm(std::int64_t value) {
  const auto v = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 1));
  const int power = std::bit_width(v) - 1;
  const std::uint64_t fraction = power >= 6 ? v >> (power - 6) : v << (6 - power);
  return power * octave + static_cast<std::int32_t>(fraction - octave);
}

// Items are compared by the first key, then by the next, …; larger is earlier.
using Keys = std::array<std::int32_t, 4>;

}  // namespace

Orders::Orders(const Instance& instance, const Sections& sections) {
  std::vector<std::int64_t> load(sections.count, 0);
  for (std::size_t i = 0; i < sections.items; ++i) {
    for (const auto s : sections.of(i)) {
      load[static_cast<std::size_t>(s)] += instance.items[i].bytes;
    }
  }
  for (std::size_t i = 0; i < sections.items; ++i) {
    std::int64_t tightest = 0;
    for (const auto s : sections.of(i)) {
      tightest = std::max(tightest, load[static_cast<std::size_t>(s)]);
    }
    features_.push_back({logarithm(instance.items[i].bytes), logarithm(instance.items[i].extent),
                         logarithm(static_cast<std::int64_t>(sections.of(i).size())),
                         logarithm(tightest)});
  }
}

std::vector<std::uint32_t> Orders::ranks(std::uint32_t number) const {
  const auto n = static_cast<std::uint32_t>(features_.size());
  std::vector<Keys> keys(n);
  constexpr std::uint32_t fixed_orders = 6;
  if (number < fixed_orders) {
    const bool by_sections = number >= fixed_orders / 2;
    for (std::size_t i = 0; i < n; ++i) {
      const Features& f = features_[i];
      const std::int32_t width = by_sections ? f.sections : f.lifetime;
      const std::int32_t area = width + f.bytes;
      keys[i] = number % 3 == 0   ? Keys{f.tightest, area, width, 0}
                : number % 3 == 1 ? Keys{width, area, f.tightest, 0}
                                  : Keys{f.tightest, width, area, 0};
    }
  } else {
    // Coarser keys leave more to the next one; noise mixes what is nearly equal.
    const Philox random(number, Purpose::planning);
    std::uint64_t drawn = 0;
    const auto draw = [&](std::uint32_t below) {
      return static_cast<std::int32_t>(random.bits(drawn++) % below);
    };
    std::array<std::size_t, 4> which{0, 1, 2, 3};
    for (std::size_t k = 0; k < 3; ++k) {
      std::swap(which[k],
                which[k + static_cast<std::size_t>(draw(static_cast<std::uint32_t>(4 - k)))]);
    }
    std::array<std::int32_t, 4> step{};
    std::array<std::uint32_t, 4> noise{};
    for (std::size_t k = 0; k < 4; ++k) {
      step[k] = draw(3) == 0 ? 1 : 1 + draw(octave * 3 / 2);
      noise[k] = draw(2) == 0 ? 1 : 1 + static_cast<std::uint32_t>(draw(octave));
    }
    const bool by_sections = draw(2) == 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Features& f = features_[i];
      const std::int32_t width = by_sections ? f.sections : f.lifetime;
      const Keys values{width, f.bytes, f.tightest, width + f.bytes};
      for (std::size_t k = 0; k < 4; ++k) {
        keys[i][k] = (values[which[k]] + draw(noise[k])) / step[k];
      }
    }
  }
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return keys[a] > keys[b]; });
  std::vector<std::uint32_t> rank(n);
  for (std::uint32_t r = 0; r < n; ++r) rank[order[r]] = r;
  return rank;
}

}  // namespace arenite::plan
