#include <arenite/plan/problem.hpp>

#include <arenite/error.hpp>

#include <algorithm>
#include <bit>

#include "src/plan/alias.hpp"
#include "src/plan/overlap.hpp"
#include "src/plan/text.hpp"
#include "src/plan/topology.hpp"

namespace arenite::plan {
namespace {

void check_local(const Buffer& buffer, const std::string& where) {
  constexpr std::int64_t limit = Problem::limit;
  if (buffer.bytes < 0) {
    fail({.found = "a size of " + digits(buffer.bytes) + " bytes",
          .expected = "at least 0",
          .where = where});
  }
  const auto [begin, end] = buffer.lifetime;
  if (begin < -limit || begin > limit || end < -limit || end > limit) {
    fail({.found = "lifetime " + lifetime_text(buffer.lifetime),
          .expected = "times within ±2^60",
          .where = where});
  }
  if (begin >= end && buffer.lifetime != Lifetime{}) {
    fail({.found = "lifetime " + lifetime_text(buffer.lifetime),
          .expected = "an end after the begin",
          .where = where,
          .hint = "lifetimes are half-open: a buffer used at 3 only has {3, 4}"});
  }
  if (buffer.alignment <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(buffer.alignment))) {
    fail({.found = "an alignment of " + digits(buffer.alignment),
          .expected = "a power of two",
          .where = where});
  }
  if (buffer.space.capacity < 0) {
    fail({.found =
              "space " + to_string(buffer.space) + " of capacity " + digits(buffer.space.capacity),
          .expected = "at least 0 bytes",
          .where = where});
  }
  if (buffer.offset && (*buffer.offset < 0 || *buffer.offset % buffer.alignment != 0)) {
    fail({.found = "a fixed offset of " + digits(*buffer.offset),
          .expected = "a multiple of the alignment " + digits(buffer.alignment) + ", at least 0",
          .where = where});
  }
}

}  // namespace

std::size_t Problem::add(Buffer buffer) {
  if (buffer.name.empty()) {
    fail({.found = "buffer " + std::to_string(size()) + " without a name",
          .expected = "a unique name",
          .where = "plan::Problem::add",
          .hint = "names decide ties, so that a plan does not depend on the order of add"});
  }
  const std::string where = "buffer '" + buffer.name + "'";
  if (const auto earlier = index_by_name_.find(buffer.name); earlier != index_by_name_.end()) {
    fail({.found = "the name of buffer " + std::to_string(earlier->second) + " again",
          .expected = "a unique name",
          .where = where});
  }
  check_local(buffer, where);

  // Each term is at most 2^63 - 1 and `total` at most 2^60: subtract rather than add.
  std::int64_t total = total_;
  for (const std::int64_t term : {buffer.bytes, buffer.alignment, buffer.offset.value_or(0)}) {
    if (term > limit - total) {
      fail({.found = "sizes, alignments and fixed offsets that pass 2^60 bytes in sum",
            .expected = "a sum of at most 2^60",
            .where = where,
            .hint = "a negative number taken as unsigned?"});
    }
    total += term;
  }

  const std::string space_name = to_string(buffer.space);
  if (const auto known = space_by_name_.find(space_name);
      known != space_by_name_.end() && known->second != buffer.space) {
    fail({.found = "space " + space_name + " with a capacity of " + digits(buffer.space.capacity) +
                   " bytes",
          .expected = digits(known->second.capacity) + " as for the buffers before",
          .where = where});
  }

  space_by_name_.emplace(space_name, buffer.space);
  index_by_name_.emplace(buffer.name, buffers_.size());
  total_ = total;
  buffers_.push_back(std::move(buffer));
  return buffers_.size() - 1;
}

void Problem::set_precedence(Precedence precedence) { precedence_ = std::move(precedence); }

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
      fail({.found = quoted(other) + " in " + to_string(other.space) + " and " + quoted(buffer) +
                     " in " + to_string(buffer.space),
            .expected = "one space for all with the alias '" + buffer.alias + "'",
            .where = "plan::Problem"});
    }
    if (!buffer.offset) continue;
    const Buffer& placed = buffers_[fixed.try_emplace(buffer.alias, i).first->second];
    if (placed.offset != buffer.offset) {
      fail({.found = quoted(placed) + " fixed at " + digits(*placed.offset) + " and " +
                     quoted(buffer) + " fixed at " + digits(*buffer.offset),
            .expected = "one place for all with the alias '" + buffer.alias + "'",
            .where = "plan::Problem"});
    }
  }
}

void Problem::validate_lifetimes() const {
  for (const Buffer& buffer : buffers_) {
    if (buffer.lifetime == Lifetime{}) {
      fail({.found = "no lifetime",
            .expected = "an end after the begin",
            .where = "buffer '" + buffer.name + "'",
            .hint = "give .lifetime = {begin, end}, or set_precedence() for the whole problem"});
    }
  }
}

void Problem::validate_precedence() const {
  const std::string where = "plan::Precedence";
  const std::size_t n = size();
  const auto name = [&](std::size_t i) { return "'" + buffers_[i].name + "'"; };
  const auto cycle = [&](std::size_t i, std::size_t j) {
    fail({.found = name(i) + " before " + name(j) + " and " + name(j) + " before " + name(i),
          .expected = "an order without cycles",
          .where = where});
  };
  const auto not_transitive = [&](std::size_t i, std::size_t via, std::size_t j) {
    fail({.found = name(i) + " before " + name(via) + " and " + name(via) + " before " + name(j) +
                   ", but not " + name(i) + " before " + name(j),
          .expected = "a transitive order",
          .where = where,
          .hint = "call close() on it"});
  };

  if (precedence_->size() != n) {
    fail({.found = "an order of " + std::to_string(precedence_->size()) + " buffers",
          .expected = std::to_string(n) + ", the number of buffers",
          .where = where});
  }
  std::size_t with_lifetime = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (precedence_->before(i, i)) {
      fail({.found = name(i) + " before itself",
            .expected = "an order without cycles",
            .where = where});
    }
    if (buffers_[i].lifetime != Lifetime{}) ++with_lifetime;
  }
  if (with_lifetime != 0 && with_lifetime != n) {
    fail({.found = "lifetimes for " + std::to_string(with_lifetime) + " of " + std::to_string(n) +
                   " buffers",
          .expected = "all or none when a precedence is set",
          .where = where});
  }

  const Topology topology(*precedence_);
  const auto missing = [&](std::size_t i, std::size_t j) {  // some k after j that is not after i
    std::size_t k = 0;
    while (!precedence_->before(j, k) || precedence_->before(i, k)) ++k;
    return k;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = precedence_->row(i);
    for (std::size_t w = 0; w < row.size(); ++w) {
      for (std::uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
        const std::size_t j = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        if (precedence_->before(j, i)) cycle(i, j);
        // j's successors are all i's too, and j itself is one more, if the order is sound.
        if (topology.successors[j] >= topology.successors[i]) not_transitive(i, j, missing(i, j));
        if (with_lifetime != 0 && buffers_[i].lifetime.end > buffers_[j].lifetime.begin) {
          fail({.found = name(i) + " before " + name(j) + ", but with lifetimes " +
                         lifetime_text(buffers_[i].lifetime) + " and " +
                         lifetime_text(buffers_[j].lifetime),
                .expected = "lifetimes that follow the order, or none",
                .where = where});
        }
      }
    }
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
    fail({.found = quoted(buffers_[low.buffer]) + " fixed at " + digits(low.offset) + " and " +
                   quoted(buffers_[high.buffer]) + " fixed at " + digits(high.offset) +
                   " overlap and may be alive together",
          .expected = "fixed offsets that leave each its bytes",
          .where = "plan::Problem"});
  }
}

}  // namespace arenite::plan
