#include "src/plan/instance.hpp"

#include <algorithm>
#include <bit>
#include <compare>
#include <limits>
#include <map>
#include <numeric>

#include "src/plan/bits.hpp"

namespace arenite::plan {

std::vector<Lifetime> pieces(const Item& item) {
  return pieces(Lifetime{item.begin, item.end}, item.gaps);
}

std::size_t conflicts_of(const Instance& instance, std::size_t i) noexcept {
  std::size_t apart = 0;
  for (std::size_t w = 0; w < instance.words; ++w) {
    apart += static_cast<std::size_t>(std::popcount(instance.apart[i * instance.words + w]));
  }
  return instance.items.size() - apart;
}

Peaks::Peaks(const Instance& instance) : granule_(instance.granule) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> least;  // by alignment and rest
  for (const Item& item : instance.items) {
    const std::int64_t bytes = instance.counted(item);
    const auto [kind, added] = least.try_emplace({item.alignment, bytes % item.alignment}, bytes);
    if (!added) kind->second = std::min(kind->second, bytes);
  }
  for (const auto& [kind, bytes] : least) kinds_.emplace_back(kind.first, bytes);
}

std::int64_t Peaks::above(std::int64_t bytes) const noexcept {
  const std::int64_t block = bytes / granule_ * granule_;
  std::int64_t peak = std::numeric_limits<std::int64_t>::max();
  for (const auto& [alignment, least] : kinds_) {
    const std::int64_t steps = block < least ? 0 : (block - least) / alignment + 1;
    peak = std::min(peak, least + steps * alignment);
  }
  return round_up(peak, granule_);
}

std::int64_t Peaks::until(std::int64_t bytes) const noexcept {
  const std::int64_t block = bytes / granule_ * granule_;
  std::int64_t peak = 0;
  for (const auto& [alignment, least] : kinds_) {
    if (block < least) continue;
    peak = std::max(peak, least + (block - least) / alignment * alignment);
  }
  return round_up(peak, granule_);
}

namespace {

/// The rows of `apart`, all clear.
void clear(Instance& instance) {
  const std::size_t n = instance.items.size();
  instance.words = (n + 63) / 64;
  instance.apart.assign(n * instance.words, 0);
}

void set_apart(Instance& instance, std::size_t i, std::size_t j) {
  instance.apart[i * instance.words + j / 64] |= std::uint64_t{1} << (j % 64);
  instance.apart[j * instance.words + i / 64] |= std::uint64_t{1} << (i % 64);
}

/// What no precedence of whole buffers shows.
void fill_gaps(const Problem& problem, Instance& instance) {
  const std::size_t n = instance.items.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t a = instance.items[i].buffer;
    if (problem[a].gaps.empty()) continue;
    for (std::size_t j = 0; j < n; ++j) {
      if (i != j && !problem.conflict(a, instance.items[j].buffer)) set_apart(instance, i, j);
    }
  }
}

void fill_order(const Problem& problem, Instance& instance) {
  const std::size_t n = instance.items.size();
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::size_t> item(problem.piece_count(), none);  // by first piece
  for (std::size_t i = 0; i < n; ++i) item[problem.first_piece(instance.items[i].buffer)] = i;

  clear(instance);
  const bool timed = std::any_of(instance.items.begin(), instance.items.end(),
                                 [](const Item& i) { return i.end > i.begin; });
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t last = problem.last_piece(instance.items[i].buffer);
    visit_bits(problem.precedence()->row(last), [&](std::size_t piece) {
      const std::size_t j = item[piece];
      if (j == none) return;  // of another space, or no first piece
      set_apart(instance, i, j);
      if (!timed) ++instance.items[j].begin;
    });
  }
  if (problem.has_gaps()) fill_gaps(problem, instance);
  for (std::size_t i = 0; i < n; ++i) {
    instance.items[i].extent = static_cast<std::int64_t>(conflicts_of(instance, i));
  }
}

}  // namespace

// All are apart that are not alive together at some time.
void fill_rows(Instance& instance) {
  if (std::all_of(instance.items.begin(), instance.items.end(),
                  [](const Item& item) { return item.gaps.empty(); })) {
    return;
  }
  struct Change {
    std::int64_t time;
    bool begins;  // after what ends then
    std::size_t item;
    auto operator<=>(const Change&) const = default;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    for (const auto [begin, end] : pieces(instance.items[i])) {
      changes.push_back({begin, true, i});
      changes.push_back({end, false, i});
    }
  }
  std::sort(changes.begin(), changes.end());

  clear(instance);
  const std::size_t words = instance.words;
  std::vector<std::uint64_t>& met = instance.apart;  // until it is turned round
  std::vector<std::uint64_t> live(words, 0);
  for (const auto& [time, begins, i] : changes) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    live[i / 64] ^= bit;
    if (!begins) continue;
    for (std::size_t w = 0; w < words; ++w) {
      met[i * words + w] |= live[w];
      for (std::uint64_t bits = live[w]; bits != 0; bits &= bits - 1) {
        const std::size_t j = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        met[j * words + i / 64] |= bit;
      }
    }
  }
  for (std::uint64_t& word : met) word = ~word;
  const std::size_t rest = instance.items.size() % 64;
  if (rest == 0) return;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    met[i * words + words - 1] &= (std::uint64_t{1} << rest) - 1;
  }
}

std::vector<SpaceInstance> split_by_space(const Problem& problem) {
  std::vector<std::size_t> by_name(problem.size());
  std::iota(by_name.begin(), by_name.end(), std::size_t{0});
  std::sort(by_name.begin(), by_name.end(),
            [&](std::size_t a, std::size_t b) { return problem[a].name < problem[b].name; });

  std::map<Space, Instance> spaces;
  for (const std::size_t i : by_name) {
    const Buffer& buffer = problem[i];
    Instance& instance = spaces[buffer.space];
    if (buffer.bytes == 0) continue;
    const bool first = instance.items.empty();
    instance.alignment = first ? buffer.alignment : std::min(instance.alignment, buffer.alignment);
    instance.items.push_back({.bytes = buffer.bytes,
                              .alignment = buffer.alignment,
                              .begin = buffer.lifetime.begin,
                              .end = buffer.lifetime.end,
                              .fixed = buffer.offset.value_or(-1),
                              .extent = buffer.lifetime.end - buffer.lifetime.begin,
                              .buffer = i,
                              .gaps = buffer.gaps});
    for (const auto [begin, end] : buffer.gaps) instance.items.back().extent -= end - begin;
  }

  std::vector<SpaceInstance> result;
  for (auto& [space, instance] : spaces) {
    instance.line = problem.precedence() == nullptr;
    instance.granule = problem.granule();
    if (instance.line) {
      fill_rows(instance);
    } else {
      fill_order(problem, instance);
    }
    result.push_back({space, std::move(instance)});
  }
  return result;
}

}  // namespace arenite::plan
