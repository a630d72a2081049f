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
using Moment = std::uint64_t;

/// Who asks, and when.
struct Toucher {
  std::uint32_t thread = 0;             ///< in the grid
  Moment now = 0, block = 0, grid = 0;  ///< now, and since when the block and the grid run
};

struct Touch {
  Moment when = 0;
  std::uint32_t thread = 0;

  /// Whether nothing stands between: a barrier of the block does, and the grid's begin.
  bool races(const Toucher& with) const {
    return when >= with.grid && thread != with.thread && (when < with.block || when == with.now);
  }
};

/// Of global memory.
class Shadow {
 public:
  /// Of `bytes` from `address` on, a power of two that it is aligned to: the thread that this races
  /// with, if there is one.
  std::optional<std::uint32_t> touch(std::uintptr_t address, std::size_t bytes, bool writes,
                                     const Toucher& by) {
    Page& page = page_of(address);
    // Most memory is only touched in words: a cell for each of these does, until it is not.
    if (bytes < word && page.words) page.split();
    const std::size_t unit = page.words ? word : 1;
    Cell* const first = &page.cells[address % page_bytes / unit];
    std::optional<std::uint32_t> other;
    for (Cell* cell = first; cell != first + bytes / unit; ++cell) {
      if (const auto found = cell->touch(writes, by)) other = found;
    }
    return other;
  }

 private:
  static constexpr std::size_t word = 4, page_bytes = 4096;

  struct Cell {
    Touch written, read, read_before;  ///< the last ones; of reads, by two threads

    std::optional<std::uint32_t> touch(bool writes, const Toucher& by) {
      std::optional<std::uint32_t> other;
      if (written.races(by)) other = written.thread;
      const Touch mine{by.now, by.thread};
      if (!writes) {
        if (read.thread != by.thread) read_before = read;
        read = mine;
        return other;
      }
      for (const Touch& one : {read, read_before}) {
        if (one.races(by)) other = one.thread;
      }
      written = mine;
      return other;
    }
  };

  struct Page {
    bool words = true;
    std::unique_ptr<Cell[]> cells = std::make_unique<Cell[]>(page_bytes / word);

    void split() {
      auto all = std::make_unique<Cell[]>(page_bytes);
      for (std::size_t i = 0; i < page_bytes; ++i) all[i] = cells[i / word];
      cells = std::move(all);
      words = false;
    }
  };

  Page& page_of(std::uintptr_t address) {
    const std::uintptr_t number = address / page_bytes;
    auto& [known, page] = recent_[number % recent_.size()];
    if (page == nullptr || known != number) {
      known = number;
      page = &pages_[number];
    }
    return *page;
  }

  std::unordered_map<std::uintptr_t, Page> pages_;
  std::array<std::pair<std::uintptr_t, Page*>, 64> recent_{};
};

/// Of a block's shared memory, which is touched in words.
class SharedShadow {
 public:
  static constexpr std::size_t word = 4;

  void resize(std::size_t bytes) {
    cells_.resize(std::max(cells_.size(), (bytes + word - 1) / word));
  }

  std::optional<std::uint32_t> touch(std::size_t address, std::size_t bytes, bool writes,
                                     std::uint32_t thread, Moment now) {
    std::optional<std::uint32_t> other;
    Cell* const first = &cells_[address / word];
    for (Cell* cell = first; cell != first + bytes / word; ++cell) {
      if (cell->written == now && cell->writer != thread) other = cell->writer;
      if (writes) {
        if (cell->read == now && cell->reader != thread) other = cell->reader;
        if (cell->read == now && cell->another != thread) other = cell->another;
        cell->written = now;
        cell->writer = thread;
      } else {
        // Any two of those that read it are enough.
        if (cell->read != now) cell->another = thread;
        cell->read = now;
        cell->reader = thread;
      }
    }
    return other;
  }

 private:
  struct Cell {
    Moment written = 0, read = 0;
    std::uint32_t writer = 0, reader = 0, another = 0;
  };
  std::vector<Cell> cells_;
};

}  // namespace ptx
