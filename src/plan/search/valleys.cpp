#include "src/plan/search/valleys.hpp"

#include <algorithm>
#include <bit>

namespace arenite::plan {

Valleys::Valleys(std::size_t sections)
    : leaves_(std::bit_ceil(std::max<std::size_t>(sections, 1))),
      sections_(sections),
      begins_((sections + 63) / 64, 0),
      all_(2 * leaves_, none),
      valleys_(2 * leaves_, none) {
  for (std::size_t s = 0; s < sections; ++s) all_[leaves_ + s] = static_cast<Index>(s);
}

std::size_t Valleys::run_begin(std::size_t section) const noexcept {
  std::size_t w = section / 64;
  std::uint64_t bits = begins_[w] & (~std::uint64_t{0} >> (63 - section % 64));
  while (bits == 0) bits = begins_[--w];  // the first section begins a run
  return w * 64 + 63 - static_cast<std::size_t>(std::countl_zero(bits));
}

std::size_t Valleys::run_end(std::size_t section) const noexcept {
  const std::size_t next = section + 1;
  if (next >= sections_.size()) return sections_.size();
  std::size_t w = next / 64;
  std::uint64_t bits = begins_[w] & (~std::uint64_t{0} << (next % 64));
  while (bits == 0) {
    if (++w == begins_.size()) return sections_.size();
    bits = begins_[w];
  }
  return w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

/// What stands above leaves [first, last).
void Valleys::update(Tree& tree, std::size_t first, std::size_t last) const {
  for (std::size_t low = (leaves_ + first) / 2, high = (leaves_ + last - 1) / 2; low > 0;
       low /= 2, high /= 2) {
    for (std::size_t node = low; node <= high; ++node) {
      tree[node] = better(tree[2 * node], tree[2 * node + 1]);
    }
  }
}

Valleys::Index Valleys::least(const Tree& tree, std::size_t first, std::size_t last) const {
  Index left = none, right = none;
  for (std::size_t low = leaves_ + first, high = leaves_ + last; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) left = better(left, tree[low++]);
    if (high % 2 == 1) right = better(tree[--high], right);
  }
  return better(left, right);
}

void Valleys::change(std::size_t first, const std::vector<Section>& sections) {
  if (sections.empty()) return;
  const std::size_t count = sections_.size();
  const std::size_t last = first + sections.size();
  std::copy(sections.begin(), sections.end(),
            sections_.begin() + static_cast<std::ptrdiff_t>(first));
  update(all_, first, last);

  // Whether a section begins a run depends on the one before it, too; whether a run is a valley,
  // on those beside it.
  const std::size_t behind = std::min(last + 1, count);
  for (std::size_t s = first; s < behind; ++s) {
    begins_run(s) ? set_bit(begins_, s) : clear_bit(begins_, s);
    valleys_[leaves_ + s] = none;
  }
  const std::size_t begin = run_begin(first == 0 ? 0 : first - 1);
  for (std::size_t run = begin; run < behind;) {
    const std::size_t end = run_end(run);
    const std::int64_t floor = sections_[run].floor;
    const bool is_valley = (run == 0 || sections_[run - 1].floor > floor) &&
                           (end == count || sections_[end].floor > floor);
    valleys_[leaves_ + run] = is_valley ? least(all_, run, end) : none;
    run = end;
  }
  update(valleys_, begin, begin + 1);
  update(valleys_, first, behind);
}

std::size_t Valleys::least(std::size_t first, std::size_t last) const {
  // Beyond its ends the line may be lower: the runs there are looked at as they are cut.
  const std::size_t first_end = std::min(run_end(first), last);
  Index best = none;
  if (first_end == last || sections_[first_end].floor > sections_[first].floor) {
    best = least(all_, first, first_end);
  }
  if (first_end == last) return best;
  const std::size_t last_begin = run_begin(last - 1);
  best = better(best, least(valleys_, first_end, last_begin));
  if (sections_[last_begin - 1].floor > sections_[last_begin].floor) {
    best = better(best, least(all_, last_begin, last));
  }
  return best;
}

}  // namespace arenite::plan
