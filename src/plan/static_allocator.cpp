#include <arenite/plan/static_allocator.hpp>
#include <bit>
#include <limits>
#include <string>

#include "src/base/refuse.hpp"

namespace arenite::plan {
namespace {

constexpr const char* where = "StaticAllocator";

std::string bytes_text(std::int64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

StaticAllocator::StaticAllocator(std::int64_t alignment) : alignment_(alignment) {
  if (alignment <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(alignment))) {
    refuse("an alignment of " + bytes_text(alignment), "a power of two", where);
  }
}

std::int64_t StaticAllocator::allocate(std::int64_t bytes) {
  if (bytes < 0) {
    refuse("a request of " + bytes_text(bytes), "at least 0 bytes", where);
  }
  if (bytes == 0) {
    ++live_zeroes_;
    return 0;
  }

  // Both sums below are checked before anything changes. peak_ is a multiple of the alignment, so
  // is the limit, and what lies between is the room for rounded sizes.
  const std::int64_t limit = std::numeric_limits<std::int64_t>::max() / alignment_ * alignment_;
  const auto tail = free_by_end_.find(peak_);
  const std::int64_t top = tail == free_by_end_.end() ? peak_ : tail->second;
  if (bytes > limit) {
    refuse("a request of " + bytes_text(bytes),
           "at most " + bytes_text(limit) + " after rounding up to the alignment", where);
  }
  const std::int64_t size = round_up(bytes, alignment_);

  std::int64_t offset = 0;
  if (const auto best = free_by_size_.lower_bound({size, 0}); best != free_by_size_.end()) {
    const auto [block, start] = *best;
    remove_free(start, block);
    if (block > size) add_free(start + size, block - size);
    offset = start;
  } else {
    if (size > limit - top) {
      refuse("a request of " + bytes_text(bytes) + " on top of " + bytes_text(top),
             "a block of at most " + bytes_text(limit), where);
    }
    if (top < peak_) remove_free(top, peak_ - top);
    offset = top;
    peak_ = top + size;
  }
  live_by_offset_.emplace(offset, bytes);
  used_ += size;
  return offset;
}

void StaticAllocator::free(std::int64_t offset, std::int64_t bytes) {
  if (bytes == 0 && offset == 0 && live_zeroes_ > 0) {
    --live_zeroes_;
    return;
  }
  const auto live = live_by_offset_.find(offset);
  if (live == live_by_offset_.end() || live->second != bytes) reject_free(offset, bytes);
  live_by_offset_.erase(live);

  std::int64_t start = offset;
  std::int64_t end = offset + round_up(bytes, alignment_);
  used_ -= end - start;
  if (const auto below = free_by_end_.find(start); below != free_by_end_.end()) {
    const std::int64_t first = below->second;
    remove_free(first, start - first);
    start = first;
  }
  if (const auto above = free_by_start_.find(end); above != free_by_start_.end()) {
    const std::int64_t last = end + above->second;
    remove_free(end, above->second);
    end = last;
  }
  add_free(start, end - start);
}

StaticAllocator::Info StaticAllocator::info() const noexcept {
  return {.used = used_,
          .peak = peak_,
          .free_bytes = peak_ - used_,
          .largest_free = free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first,
          .alignment = alignment_,
          .free_blocks = free_by_size_.size(),
          .live_allocations = live_by_offset_.size() + live_zeroes_};
}

void StaticAllocator::add_free(std::int64_t start, std::int64_t size) {
  free_by_size_.emplace(size, start);
  free_by_start_.emplace(start, size);
  free_by_end_.emplace(start + size, start);
}

// By value: callers pass what they found in the very maps that shrink here.
void StaticAllocator::remove_free(std::int64_t start, std::int64_t size) {
  free_by_size_.erase({size, start});
  free_by_start_.erase(start);
  free_by_end_.erase(start + size);
}

// Only the way to an exception leads here, so it may search for what the caller probably meant.
void StaticAllocator::reject_free(std::int64_t offset, std::int64_t bytes) const {
  const std::string call =
      "free(" + std::to_string(offset) + ", " + std::to_string(bytes) + ") of ";
  if (const auto live = live_by_offset_.find(offset); live != live_by_offset_.end()) {
    refuse(call + "an allocation of " + bytes_text(live->second),
           "the size that was asked for, unrounded", where);
  }
  for (const auto& [start, size] : live_by_offset_) {
    if (start < offset && offset < start + size) {
      refuse(call + "an offset inside the allocation of " + bytes_text(size) + " at offset " +
                 std::to_string(start),
             "an offset that allocate() returned", where);
    }
  }
  if (bytes == 0) {
    refuse(call + "no live allocation of 0 bytes", "one free for each allocate(0), at its offset 0",
           where);
  }
  for (const auto& [start, size] : free_by_start_) {
    if (start <= offset && offset < start + size) {
      refuse(call + "bytes that are free already",
             "an offset that allocate() returned and nobody freed since", where,
             "a double free, or an offset of another allocator");
    }
  }
  refuse(call + "an offset that was never handed out", "an offset that allocate() returned", where,
         "an offset of another allocator");
}

}  // namespace arenite::plan
