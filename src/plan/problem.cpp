#include <arenite/plan/problem.hpp>

#include <bit>

#include "src/base/refuse.hpp"
#include "src/plan/alias.hpp"
#include "src/plan/bits.hpp"
#include "src/plan/overlap.hpp"
#include "src/plan/text.hpp"
#include "src/plan/topology.hpp"

namespace arenite::plan {
namespace {

bool is_power_of_two(std::int64_t number) {
  return number > 0 && std::has_single_bit(static_cast<std::uint64_t>(number));
}

void check_local(const Buffer& buffer, const std::string& where) {
  constexpr std::int64_t limit = Problem::limit;
  if (buffer.bytes < 0) {
    refuse("a size of " + digits(buffer.bytes) + " bytes", "at least 0", where);
  }
  const auto [begin, end] = buffer.lifetime;
  if (begin < -limit || begin > limit || end < -limit || end > limit) {
    refuse("lifetime " + lifetime_text(buffer.lifetime), "times within ±2^60", where);
  }
  if (begin >= end && buffer.lifetime != Lifetime{}) {
    refuse("lifetime " + lifetime_text(buffer.lifetime), "an end after the begin", where,
           "lifetimes are half-open: a buffer used at 3 only has {3, 4}");
  }
  std::int64_t piece = begin;  // where the one before a gap begins
  for (const Lifetime& gap : buffer.gaps) {
    if (gap.begin > piece && gap.end > gap.begin && gap.end < end) {
      piece = gap.end;
      continue;
    }
    refuse("the gap " + lifetime_text(gap) + " in the lifetime " + lifetime_text(buffer.lifetime),
           "gaps that are not empty, ascending, apart and none at either end", where);
  }
  if (!is_power_of_two(buffer.alignment)) {
    refuse("an alignment of " + digits(buffer.alignment), "a power of two", where);
  }
  if (buffer.space.capacity < 0) {
    refuse("space " + to_string(buffer.space) + " of capacity " + digits(buffer.space.capacity),
           "at least 0 bytes", where);
  }
  if (buffer.offset && (*buffer.offset < 0 || *buffer.offset % buffer.alignment != 0)) {
    refuse("a fixed offset of " + digits(*buffer.offset),
           "a multiple of the alignment " + digits(buffer.alignment) + ", at least 0", where);
  }
}

}  // namespace

std::vector<Lifetime> pieces(const Lifetime& lifetime, const std::vector<Lifetime>& gaps) {
  std::vector<Lifetime> result;
  std::int64_t begin = lifetime.begin;
  for (const Lifetime& gap : gaps) {
    result.push_back({begin, gap.begin});
    begin = gap.end;
  }
  result.push_back({begin, lifetime.end});
  return result;
}

std::vector<Lifetime> pieces(const Buffer& buffer) { return pieces(buffer.lifetime, buffer.gaps); }

std::size_t Problem::add(Buffer buffer) {
  if (buffer.name.empty()) {
    refuse("buffer " + std::to_string(size()) + " without a name", "a unique name",
           "plan::Problem::add",
           "names decide ties, so that a plan does not depend on the order of add");
  }
  const std::string where = "buffer '" + buffer.name + "'";
  if (const auto earlier = index_by_name_.find(buffer.name); earlier != index_by_name_.end()) {
    refuse("the name of buffer " + std::to_string(earlier->second) + " again", "a unique name",
           where);
  }
  check_local(buffer, where);

  // Each term is at most 2^63 - 1 and `total` at most 2^60: subtract rather than add.
  std::int64_t total = total_;
  for (const std::int64_t term : {buffer.bytes, buffer.alignment, buffer.offset.value_or(0)}) {
    if (term > limit - total) {
      refuse("sizes, alignments and fixed offsets that pass 2^60 bytes in sum",
             "a sum of at most 2^60", where, "a negative number taken as unsigned?");
    }
    total += term;
  }

  const std::string space_name = to_string(buffer.space);
  if (const auto known = space_by_name_.find(space_name);
      known != space_by_name_.end() && known->second != buffer.space) {
    refuse(
        "space " + space_name + " with a capacity of " + digits(buffer.space.capacity) + " bytes",
        digits(known->second.capacity) + " as for the buffers before", where);
  }

  space_by_name_.emplace(space_name, buffer.space);
  index_by_name_.emplace(buffer.name, buffers_.size());
  total_ = total;
  first_piece_.push_back(piece_count_);
  piece_count_ += 1 + buffer.gaps.size();
  buffers_.push_back(std::move(buffer));
  return buffers_.size() - 1;
}

void Problem::set_precedence(Precedence precedence) { precedence_ = std::move(precedence); }

void Problem::set_granule(std::int64_t bytes) {
  if (!is_power_of_two(bytes) || bytes > limit) {
    refuse("blocks in multiples of " + digits(bytes) + " bytes", "a power of two, at most 2^60",
           "plan::Problem");
  }
  granule_ = bytes;
}

bool Problem::pieces_meet(std::size_t i, std::size_t j) const noexcept {
  const Buffer &a = buffers_[i], &b = buffers_[j];
  if (precedence_) {
    for (std::size_t p = first_piece(i); p <= last_piece(i); ++p) {
      for (std::size_t q = first_piece(j); q <= last_piece(j); ++q) {
        if (!precedence_->before(p, q) && !precedence_->before(q, p)) return true;
      }
    }
    return false;
  }
  // The k-th piece of either, side by side.
  const auto piece = [](const Buffer& buffer, std::size_t k) {
    return Lifetime{k == 0 ? buffer.lifetime.begin : buffer.gaps[k - 1].end,
                    k == buffer.gaps.size() ? buffer.lifetime.end : buffer.gaps[k].begin};
  };
  std::size_t k = 0, l = 0;
  while (k <= a.gaps.size() && l <= b.gaps.size()) {
    const Lifetime p = piece(a, k), q = piece(b, l);
    if (p.end <= q.begin) {
      ++k;
    } else if (q.end <= p.begin) {
      ++l;
    } else {
      return true;
    }
  }
  return false;
}

void Problem::validate() const {
  if (precedence_) {
    validate_precedence();
  } else {
    validate_lifetimes();
  }
  validate_aliases();
  if (has_aliases(buffers_)) {
    merge(*this, AliasGroups(buffers_)).validate_fixed();
  } else {
    validate_fixed();
  }
}

void Problem::validate_aliases() const {
  std::unordered_map<std::string_view, std::size_t> first;
  std::unordered_map<std::string_view, std::size_t> fixed;
  for (std::size_t i = 0; i < size(); ++i) {
    const Buffer& buffer = buffers_[i];
    if (buffer.alias.empty()) continue;
    const Buffer& other = buffers_[first.try_emplace(buffer.alias, i).first->second];
    if (other.space != buffer.space) {
      refuse(quoted(other) + " in " + to_string(other.space) + " and " + quoted(buffer) + " in " +
                 to_string(buffer.space),
             "one space for all with the alias '" + buffer.alias + "'", "plan::Problem");
    }
    if (!buffer.offset) continue;
    const Buffer& placed = buffers_[fixed.try_emplace(buffer.alias, i).first->second];
    if (placed.offset != buffer.offset) {
      refuse(quoted(placed) + " fixed at " + digits(*placed.offset) + " and " + quoted(buffer) +
                 " fixed at " + digits(*buffer.offset),
             "one place for all with the alias '" + buffer.alias + "'", "plan::Problem");
    }
  }
}

void Problem::validate_lifetimes() const {
  for (const Buffer& buffer : buffers_) {
    if (buffer.lifetime == Lifetime{}) {
      refuse("no lifetime", "an end after the begin", "buffer '" + buffer.name + "'",
             "give .lifetime = {begin, end}, or set_precedence() for the whole problem");
    }
  }
  if (has_gaps() && size() > Precedence::max_size) {
    refuse("gaps in a problem of " + std::to_string(size()) + " buffers",
           "at most " + std::to_string(Precedence::max_size) + " with gaps", "plan::Problem");
  }
}

void Problem::validate_precedence() const {
  const std::string where = "plan::Precedence";
  const std::size_t n = piece_count();
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> owner;
  for (std::size_t i = 0; i < size(); ++i) {
    for (const Lifetime& piece : pieces(buffers_[i])) {
      lifetimes.push_back(piece);
      owner.push_back(i);
    }
  }
  const auto name = [&](std::size_t p) {
    const Buffer& buffer = buffers_[owner[p]];
    return "'" + buffer.name + "'" +
           (buffer.gaps.empty() ? "" : " in " + lifetime_text(lifetimes[p]));
  };
  const auto cycle = [&](std::size_t i, std::size_t j) {
    refuse(name(i) + " before " + name(j) + " and " + name(j) + " before " + name(i),
           "an order without cycles", where);
  };
  const auto not_transitive = [&](std::size_t i, std::size_t via, std::size_t j) {
    refuse(name(i) + " before " + name(via) + " and " + name(via) + " before " + name(j) +
               ", but not " + name(i) + " before " + name(j),
           "a transitive order", where, "call close() on it");
  };

  if (precedence_->size() != n) {
    refuse(
        "an order of " + std::to_string(precedence_->size()) +
            (has_gaps() ? " pieces" : " buffers"),
        std::to_string(n) + ", the number of " + (has_gaps() ? "the buffers' pieces" : "buffers"),
        where);
  }
  std::size_t with_lifetime = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (precedence_->before(i, i)) {
      refuse(name(i) + " before itself", "an order without cycles", where);
    }
    if (lifetimes[i] != Lifetime{}) ++with_lifetime;
    if (i > 0 && owner[i - 1] == owner[i] && !precedence_->before(i - 1, i)) {
      refuse(name(i - 1) + " not before " + name(i), "a buffer's pieces in their order", where);
    }
  }
  if (with_lifetime != 0 && with_lifetime != n) {
    refuse("lifetimes for " + std::to_string(with_lifetime) + " of " + std::to_string(n) +
               (has_gaps() ? " pieces" : " buffers"),
           "all or none when a precedence is set", where);
  }

  const Topology topology(*precedence_);
  const auto missing = [&](std::size_t i, std::size_t j) {  // some k after j that is not after i
    std::size_t k = 0;
    while (!precedence_->before(j, k) || precedence_->before(i, k)) ++k;
    return k;
  };
  for (std::size_t i = 0; i < n; ++i) {
    visit_bits(precedence_->row(i), [&](std::size_t j) {
      if (precedence_->before(j, i)) cycle(i, j);
      // j's successors are all i's too, and j itself is one more, if the order is sound.
      if (topology.successors[j] >= topology.successors[i]) not_transitive(i, j, missing(i, j));
      if (with_lifetime != 0 && lifetimes[i].end > lifetimes[j].begin) {
        refuse(name(i) + " before " + name(j) + ", but with lifetimes " +
                   lifetime_text(lifetimes[i]) + " and " + lifetime_text(lifetimes[j]),
               "lifetimes that follow the order, or none", where);
      }
    });
  }
  // Rows below a are known to be transitive, so that a's covering pairs are enough to look at.
  visit_covers(topology, [&](std::size_t a, std::size_t b) {
    const auto row = topology.order.row(a);
    const auto implied = topology.order.row(b);
    for (std::size_t w = 0; w < row.size(); ++w) {
      if (const std::uint64_t lost = implied[w] & ~row[w]; lost != 0) {
        const std::size_t c = w * 64 + static_cast<std::size_t>(std::countr_zero(lost));
        not_transitive(topology.buffer[a], topology.buffer[b], topology.buffer[c]);
      }
    }
  });
}

void Problem::validate_fixed() const {
  std::vector<Placed> fixed;
  for (std::size_t i = 0; i < size(); ++i) {
    if (buffers_[i].offset) fixed.push_back({i, *buffers_[i].offset});
  }
  if (const auto overlap = find_overlap(*this, fixed)) {
    const auto& [low, high] = *overlap;
    refuse(quoted(buffers_[low.buffer]) + " fixed at " + digits(low.offset) + " and " +
               quoted(buffers_[high.buffer]) + " fixed at " + digits(high.offset) +
               " overlap and may be alive together",
           "fixed offsets that leave each its bytes", "plan::Problem");
  }
}

Precedence::Precedence(std::size_t size) : size_(size), words_((size + 63) / 64) {
  if (size > max_size) {
    refuse("a partial order of " + std::to_string(size) + " buffers",
           "at most " + std::to_string(max_size), "plan::Precedence",
           "give lifetimes instead: intervals need no matrix");
  }
  bits_.resize(size_ * words_);
}

void Precedence::set_before(std::size_t i, std::size_t j) {
  if (i >= size_ || j >= size_) {
    refuse("index " + std::to_string(i >= size_ ? i : j), "an index below " + std::to_string(size_),
           "plan::Precedence::set_before");
  }
  bits_[i * words_ + j / 64] |= std::uint64_t{1} << (j % 64);
}

// Warshall's algorithm, 64 columns at a time.
void Precedence::close() {
  for (std::size_t via = 0; via < size_; ++via) {
    const std::uint64_t* successors = bits_.data() + via * words_;
    for (std::size_t i = 0; i < size_; ++i) {
      if (i == via || !before(i, via)) continue;
      std::uint64_t* row = bits_.data() + i * words_;
      for (std::size_t w = 0; w < words_; ++w) row[w] |= successors[w];
    }
  }
}

}  // namespace arenite::plan
