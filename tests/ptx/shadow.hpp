// Who touched which bytes of a memory last, so that threads that do so at once are found: one of
// them writing what another one reads or writes, with nothing between that orders them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ptx {

/// Time of a machine: grows with each barrier of a block, and with each block.
using Moment = std::uint32_t;

/// What a thread does, and when.
struct Toucher {
  std::uint32_t thread = 0;             ///< in the grid
  Moment now = 0, block = 0, grid = 0;  ///< now, and since when the block and the grid run
  bool writes = false;
  /// Volatile or atomic: others of these may be there at the same time.
  bool together = false;
};

/// The one that it races with.
struct Other {
  std::uint32_t thread = 0;
  bool writes = false;
};

struct Touch {
  Moment when = 0;
  std::uint32_t thread : 31 = 0;
  std::uint32_t together : 1 = 0;

  static Touch of(const Toucher& by) {
    Touch mine;
    mine.when = by.now;
    mine.thread = by.thread & 0x7fffffff;
    mine.together = by.together ? 1 : 0;
    return mine;
  }
  /// Whether nothing stands between: a barrier of the block does, and the grid's begin.
  bool races(const Toucher& with) const {
    return when >= with.grid && thread != with.thread && (when < with.block || when == with.now) &&
           !(together != 0 && with.together);
  }
};

/// Of global memory.
class Shadow {
 public:
  /// Of `bytes` from `address` on, a power of two that it is aligned to.
  std::optional<Other> touch(std::uintptr_t address, std::size_t bytes, const Toucher& by) {
    Page& page = page_of(address);
    // Most memory is only touched in words: a cell for each of these does, until it is not.
    if (bytes < word && page.words) split(page);
    const std::size_t unit = page.words ? word : 1;
    Cell* const first = &page.cells[address % page_bytes / unit];
    std::optional<Other> other;
    for (Cell* cell = first; cell != first + bytes / unit; ++cell) {
      if (const auto found = cell->touch(by)) other = found;
    }
    return other;
  }

  /// That it takes itself.
  std::size_t bytes() const { return cells_ * sizeof(Cell); }
  void clear() {
    pages_.clear();
    recent_ = {};
    cells_ = 0;
  }

 private:
  static constexpr std::size_t word = 4, page_bytes = 4096;

  struct Cell {
    /// The last ones: of reads by two threads, and by another block than the last one's.
    Touch written, read, read_before, read_elsewhere;

    std::optional<Other> touch(const Toucher& by) {
      std::optional<Other> other;
      if (written.races(by)) other = {written.thread, true};
      if (!by.writes) {
        if (read.thread != by.thread) read_before = read;
        if (read.when < by.block) read_elsewhere = read;
        read = Touch::of(by);
        return other;
      }
      for (const Touch& one : {read, read_before, read_elsewhere}) {
        if (one.races(by)) other = {one.thread, false};
      }
      written = Touch::of(by);
      return other;
    }
  };

  struct Page {
    bool words = true;
    std::unique_ptr<Cell[]> cells;
  };

  void split(Page& page) {
    auto all = std::make_unique<Cell[]>(page_bytes);
    for (std::size_t i = 0; i < page_bytes; ++i) all[i] = page.cells[i / word];
    page.cells = std::move(all);
    page.words = false;
    cells_ += page_bytes - page_bytes / word;
  }

  Page& page_of(std::uintptr_t address) {
    const std::uintptr_t number = address / page_bytes;
    auto& [known, page] = recent_[number % recent_.size()];
    if (page == nullptr || known != number) {
      known = number;
      page = &pages_[number];
    }
    if (page->cells == nullptr) {
      page->cells = std::make_unique<Cell[]>(page_bytes / word);
      cells_ += page_bytes / word;
    }
    return *page;
  }

  std::unordered_map<std::uintptr_t, Page> pages_;
  std::array<std::pair<std::uintptr_t, Page*>, 64> recent_{};
  std::size_t cells_ = 0;
};

/// Of a block's shared memory, which is touched in words.
class SharedShadow {
 public:
  static constexpr std::size_t word = 4;

  void resize(std::size_t bytes) {
    cells_.resize(std::max(cells_.size(), (bytes + word - 1) / word));
  }
  void clear() { std::ranges::fill(cells_, Cell()); }

  std::optional<Other> touch(std::size_t address, std::size_t bytes, bool writes,
                             std::uint32_t thread, Moment now) {
    std::optional<Other> other;
    Cell* const first = &cells_[address / word];
    for (Cell* cell = first; cell != first + bytes / word; ++cell) {
      if (cell->written == now && cell->writer != thread) other = {cell->writer, true};
      if (writes) {
        for (const std::uint32_t reader : {cell->reader, cell->another}) {
          if (cell->read == now && reader != thread) other = {reader, false};
        }
        cell->written = now;
        cell->writer = thread;
      } else if (cell->read != now) {
        cell->read = now;
        cell->reader = cell->another = thread;
      } else if (cell->reader != thread) {
        cell->another = std::exchange(cell->reader, thread);
      }
    }
    return other;
  }

 private:
  /// Of readers since the last barrier any two are enough.
  struct Cell {
    Moment written = 0, read = 0;
    std::uint32_t writer = 0, reader = 0, another = 0;
  };
  std::vector<Cell> cells_;
};

}  // namespace ptx
