// Offsets without memory: an allocator that hands out places in one block of bytes that need not
// exist yet. Replay a program's allocations and frees through it, and peak() is the size that the
// block must have.
//
//   StaticAllocator arena;
//   std::int64_t a = arena.allocate(1000);   // 0
//   std::int64_t b = arena.allocate(300);    // 1024
//   arena.free(a, 1000);                     // the size that was asked for, not the rounded one
//   std::int64_t c = arena.allocate(700);    // 0 again: best fit
//   arena.peak();                            // 1536
//
// Best fit: the smallest free block that is large enough, the lowest of equals; the rest stays
// free. Neighbouring free blocks are always merged. A request that fits nowhere extends the free
// block at the tail, if there is one, instead of leaving it behind.
//
// A plain value owned by its user; not safe for concurrent modification. Both operations take
// O(log of the number of free blocks) and allocate a few small nodes on the heap.
#pragma once

#include <arenite/types.hpp>
#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

namespace arenite::plan {

class StaticAllocator {
 public:
  /// All figures are bytes or counts at one moment.
  struct Info {
    std::int64_t used = 0;          ///< rounded bytes of the live allocations
    std::int64_t peak = 0;          ///< highest end of any allocation so far; never shrinks
    std::int64_t free_bytes = 0;    ///< peak - used: what the block has and nobody holds
    std::int64_t largest_free = 0;  ///< largest request served without growing the block
    std::int64_t alignment = 0;
    std::size_t free_blocks = 0;
    std::size_t live_allocations = 0;  ///< including those of 0 bytes
  };

  /// Every offset is a multiple of `alignment` bytes, and every size is rounded up to one. Throws
  /// Error unless it is a power of two.
  explicit StaticAllocator(std::int64_t alignment = default_alignment);

  /// Returns the offset of `bytes` fresh bytes. Zero bytes are legal: they take no room, get offset
  /// 0, count as a live allocation and are to be freed like any other. Throws Error, and changes
  /// nothing, when `bytes` is negative or the block would pass 2^63 - 1 bytes.
  std::int64_t allocate(std::int64_t bytes);

  /// Gives back what allocate(bytes) returned. Throws Error, and changes nothing, on an offset that
  /// is not live (freed already, or never handed out) and on a size other than the one asked for.
  void free(std::int64_t offset, std::int64_t bytes);

  std::int64_t used() const noexcept { return used_; }
  std::int64_t peak() const noexcept { return peak_; }
  Info info() const noexcept;

 private:
  void add_free(std::int64_t start, std::int64_t size);
  void remove_free(std::int64_t start, std::int64_t size);
  [[noreturn]] void reject_free(std::int64_t offset, std::int64_t bytes) const;

  std::int64_t alignment_;
  std::int64_t used_ = 0;
  std::int64_t peak_ = 0;        // also the end of the block: the tail's free block ends here
  std::size_t live_zeroes_ = 0;  // allocations of 0 bytes share offset 0 with a real one

  std::set<std::pair<std::int64_t, std::int64_t>> free_by_size_;   // (size, start)
  std::unordered_map<std::int64_t, std::int64_t> free_by_start_;   // start -> size
  std::unordered_map<std::int64_t, std::int64_t> free_by_end_;     // end -> start
  std::unordered_map<std::int64_t, std::int64_t> live_by_offset_;  // offset -> bytes asked for
};

}  // namespace arenite::plan
