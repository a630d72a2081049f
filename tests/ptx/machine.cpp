#include "tests/ptx/machine.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

namespace ptx {
namespace {

constexpr std::uint64_t sector = 32;  ///< bytes of global memory that are moved together
constexpr std::uint64_t banks = 32;   ///< of shared memory, each of 4 bytes at a time

/// A word of a shadow takes eight times as much; of all memory that kernels touch it may be much.
constexpr std::size_t most_shadow = std::size_t{512} << 20;
constexpr Moment latest = Moment{1} << 31;

std::uint64_t widened(std::uint64_t value, std::size_t bytes) {
  const int shift = static_cast<int>(64 - 8 * bytes);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << shift) >> shift);
}

Mask lanes_of(const Warp& warp, Mask among, std::uint32_t next) {
  Mask found = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    if (is_in(among, lane) && warp.next[static_cast<std::size_t>(lane)] == next)
      found |= Mask{1} << lane;
  }
  return found;
}

void go_on(Warp& warp, Mask which, std::uint32_t next) {
  for (int lane = 0; lane < lanes; ++lane) {
    if (is_in(which, lane)) warp.next[static_cast<std::size_t>(lane)] = next;
  }
}

/// The first instruction that any of them comes to.
std::uint32_t first_of(const Warp& warp, Mask among) {
  std::uint32_t first = ~std::uint32_t{0};
  for (int lane = 0; lane < lanes; ++lane) {
    if (is_in(among, lane)) first = std::min(first, warp.next[static_cast<std::size_t>(lane)]);
  }
  return first;
}

/// Between a lane's registers and memory. Most have as many bytes in both: `same`, otherwise 0.
template <std::size_t same>
void move_elements(const Warp& warp, const Instruction& one, int lane, std::byte* memory) {
  const std::size_t bytes = same > 0 ? same : one.bytes,
                    register_bytes = same > 0 ? same : one.register_bytes;
  for (std::size_t i = 0; i < one.count; ++i, memory += bytes) {
    std::byte* const in_register =
        warp.file + one.elements[i] + static_cast<std::size_t>(lane) * register_bytes;
    if (one.kind == Instruction::Kind::store) {
      std::memcpy(memory, in_register, bytes);
    } else {
      std::uint64_t value = 0;
      std::memcpy(&value, memory, bytes);
      if (same == 0 && one.is_signed) value = widened(value, bytes);
      std::memcpy(in_register, &value, register_bytes);
    }
  }
}

/// Of the module, which kernels only read.
bool in_variables(const Entry& entry, std::uintptr_t at, std::size_t bytes) {
  return std::ranges::any_of(entry.variables, [&](const Range& one) {
    return at >= one.begin && at <= one.end && bytes <= one.end - at;
  });
}

}  // namespace

Counts Machine::run(const Grid& grid) {
  const Entry& entry = *grid.entry;
  if (grid.threads == 0 || grid.threads > entry.most_threads)
    throw Fault(entry.name + ": blocks of " + std::to_string(grid.threads) +
                " threads, of which it takes " + std::to_string(entry.most_threads));
  count_ = {};
  count_.grids = 1;
  count_.threads = std::uint64_t{grid.blocks} * grid.threads;
  forget();
  toucher_.grid = ++now_;
  recent_ = {};
  const std::size_t count = (grid.threads + lanes - 1) / lanes;
  shared_shadow_.resize(entry.shared_bytes);
  files_.resize(count * entry.register_bytes + vector_bytes);
  warps_.assign(count, Warp{});
  for (std::uint32_t i = 0; i < grid.blocks; ++i)
    run_block(grid, grid.from_the_last ? grid.blocks - 1 - i : i);
  return count_;
}

void Machine::forget() {
  // No grid asks for what those before it did.
  if (now_ < latest && global_shadow_.bytes() < most_shadow) return;
  global_shadow_.clear();
  shared_shadow_.clear();
  now_ = 1;
}

void Machine::start_block(const Grid& grid, std::uint32_t block) {
  const Entry& entry = *grid.entry;
  block_ = block;
  toucher_.block = toucher_.now = ++now_;
  // Nobody has cleared them.
  shared_.assign(entry.shared_bytes, std::byte{0xff});
  local_.assign(std::size_t{entry.local_bytes} * grid.threads, std::byte{0xff});
  auto* file = reinterpret_cast<std::byte*>(
      aligned<std::uintptr_t>(reinterpret_cast<std::uintptr_t>(files_.data()), vector_bytes));
  std::memset(file, 0xff, warps_.size() * entry.register_bytes);
  for (std::size_t i = 0; i < warps_.size(); ++i) {
    Warp& warp = warps_[i];
    const auto first = static_cast<std::uint32_t>(i * lanes);
    warp.index = static_cast<int>(i);
    warp.file = file + i * entry.register_bytes;
    const std::uint32_t there = std::min<std::uint32_t>(grid.threads - first, lanes);
    warp.alive = there == lanes ? all_lanes : (Mask{1} << there) - 1;
    warp.waiting = 0;
    warp.waited = grid.early ? 0 : all_lanes;
    warp.next = {};
    for (const Constant& constant : entry.constants) {
      const Mask mask = constant.value != 0 ? all_lanes : 0;
      if (constant.bytes == 0) std::memcpy(warp.file + constant.to, &mask, sizeof(mask));
      for (int lane = 0; lane < lanes; ++lane)
        std::memcpy(warp.file + constant.to + lane * constant.bytes, &constant.value,
                    constant.bytes);
    }
    for (const auto& [what, at] : entry.specials) {
      for (int lane = 0; lane < lanes; ++lane) {
        std::uint32_t& value = warp.lanes<std::uint32_t>(at)[lane];
        if (what == Special::thread) value = first + static_cast<std::uint32_t>(lane);
        if (what == Special::block) value = block;
        if (what == Special::threads) value = grid.threads;
        if (what == Special::blocks) value = grid.blocks;
      }
    }
  }
}

void Machine::run_block(const Grid& grid, std::uint32_t block) {
  start_block(grid, block);
  do {
    const bool from_the_first = now_ % 2 == 0;
    for (std::size_t i = 0; i < warps_.size(); ++i)
      run_warp(grid, warps_[from_the_first ? i : warps_.size() - 1 - i]);
  } while (pass_barrier(grid));
}

void Machine::run_warp(const Grid& grid, Warp& warp) {
  while (const Mask ready = warp.alive & ~warp.waiting) {
    const Mask together = lanes_of(warp, ready, first_of(warp, ready));
    run_together(grid, warp, together, first_of(warp, ready & ~together));
  }
}

void Machine::run_together(const Grid& grid, Warp& warp, Mask together, std::uint32_t others) {
  const std::vector<Instruction>& code = grid.entry->code;
  std::uint32_t next = first_of(warp, together);
  while (next < others) {
    const Instruction& one = code[next++];
    Mask on = together;
    if (one.guarded) on &= one.unless ? ~warp.predicate(one.guard) : warp.predicate(one.guard);
    if (counting_) {
      ++count_.instructions;
      count_.multiplications += one.multiplies ? 1 : 0;
    }
    if (on == 0) continue;
    warp.active = on;
    switch (one.kind) {
      case Instruction::Kind::compute:
        one.function(warp, one);
        break;
      case Instruction::Kind::load:
      case Instruction::Kind::store:
      case Instruction::Kind::compare:
        access(grid, warp, one);
        break;
      case Instruction::Kind::branch:
        if (on != together) {
          go_on(warp, together & ~on, next);
          go_on(warp, on, one.target);
          return;
        }
        next = one.target;
        break;
      case Instruction::Kind::earlier:
        warp.waited |= on;
        break;
      case Instruction::Kind::leave:
        warp.alive &= ~on;
        together &= ~on;
        if (together == 0) return;
        break;
      case Instruction::Kind::barrier:
      case Instruction::Kind::barrier_or:
        warp.waiting |= on;
        go_on(warp, on, next);
        together &= ~on;
        if (together == 0) return;
        break;
    }
  }
  go_on(warp, together, next);
}

bool Machine::pass_barrier(const Grid& grid) {
  std::set<std::uint32_t> waiting;
  std::uint32_t alive = 0;
  for (const Warp& warp : warps_) {
    alive += static_cast<std::uint32_t>(std::popcount(warp.alive));
    for (int lane = 0; lane < lanes; ++lane) {
      if (is_in(warp.alive, lane)) waiting.insert(warp.next[static_cast<std::size_t>(lane)]);
    }
  }
  if (waiting.empty()) return false;
  if (alive < grid.threads || waiting.size() > 1) fail_barrier(grid);
  const Instruction& barrier = grid.entry->code[*waiting.begin() - 1];
  bool any = false;
  if (barrier.kind == Instruction::Kind::barrier_or) {
    for (const Warp& warp : warps_)
      any = any || (warp.predicate(barrier.from[0]) & warp.alive) != 0;
    for (Warp& warp : warps_) {
      warp.active = warp.alive;
      warp.set_predicate(barrier.to, any ? all_lanes : 0);
    }
  }
  for (Warp& warp : warps_) warp.waiting = 0;
  toucher_.now = ++now_;
  return true;
}

bool Machine::in_global_memory(const Grid& grid, std::uintptr_t at, std::size_t bytes) {
  const auto holds = [&] {
    return at >= recent_.begin && at <= recent_.end && bytes <= recent_.end - at;
  };
  if (holds()) return true;
  const auto after = std::ranges::upper_bound(grid.memory, at, {}, &Range::begin);
  recent_ = after == grid.memory.begin() ? Range{} : *std::prev(after);
  return holds();
}

std::byte* Machine::memory_at(const Grid& grid, const Warp& warp, const Instruction& one,
                              int lane) {
  const std::uint64_t at = address_of(warp, one, lane);
  const std::size_t bytes = std::size_t{one.bytes} * one.count;
  const auto thread = static_cast<std::uint32_t>(warp.index * lanes + lane);
  const bool writes = one.kind != Instruction::Kind::load;
  const auto within = [&](std::size_t size) { return at <= size && bytes <= size - at; };
  if (at % bytes != 0) fail_access(grid, warp, one, lane, "which they are not aligned to");
  switch (one.space) {
    case Space::shared: {
      if (!within(shared_.size()))
        fail_beyond(grid, warp, one, lane, "shared memory", shared_.size());
      if (const auto other = shared_shadow_.touch(at, bytes, writes, thread, now_))
        fail_race(grid, warp, one, lane, {block_ * grid.threads + other->thread, other->writes});
      return shared_.data() + at;
    }
    case Space::global: {
      if (!writes && in_variables(*grid.entry, at, bytes)) return reinterpret_cast<std::byte*>(at);
      if (!in_global_memory(grid, at, bytes))
        fail_access(grid, warp, one, lane, "which are not in the device's memory");
      if (!is_in(warp.waited, lane))
        fail(grid, warp, one, lane,
             "memory that a grid before may not have written yet: no griddepcontrol.wait");
      toucher_.thread = block_ * grid.threads + thread;
      toucher_.writes = writes;
      toucher_.together = one.is_volatile || one.kind == Instruction::Kind::compare;
      if (const auto other = global_shadow_.touch(at, bytes, toucher_))
        fail_race(grid, warp, one, lane, *other);
      return reinterpret_cast<std::byte*>(at);
    }
    case Space::parameter:
      if (!within(grid.entry->parameter_bytes))
        fail_beyond(grid, warp, one, lane, "parameters", grid.entry->parameter_bytes);
      return const_cast<std::byte*>(grid.parameters) + at;
    case Space::local:
      if (!within(grid.entry->local_bytes))
        fail_beyond(grid, warp, one, lane, "local memory", grid.entry->local_bytes);
      return local_.data() + std::size_t{thread} * grid.entry->local_bytes + at;
  }
  return nullptr;
}

void Machine::access(const Grid& grid, const Warp& warp, const Instruction& one) {
  if (counting_) count_access(warp, one);
  for (int lane = 0; lane < lanes; ++lane) {
    if (!is_in(warp.active, lane)) continue;
    std::byte* const at = memory_at(grid, warp, one, lane);
    if (one.kind == Instruction::Kind::compare) {
      auto& word = *reinterpret_cast<std::uint64_t*>(at);
      std::uint64_t seen = warp.lanes<std::uint64_t>(one.from[1])[lane];
      __atomic_compare_exchange_n(&word, &seen, warp.lanes<std::uint64_t>(one.from[2])[lane], false,
                                  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      warp.lanes<std::uint64_t>(one.to)[lane] = seen;
    } else if (one.bytes == 4 && one.register_bytes == 4) {
      move_elements<4>(warp, one, lane, at);
    } else {
      move_elements<0>(warp, one, lane, at);
    }
  }
}

void Machine::count_access(const Warp& warp, const Instruction& one) {
  const std::uint64_t bytes = std::uint64_t{one.bytes} * one.count;
  std::vector<std::uint64_t> touched;
  const auto distinct = [&] {
    std::sort(touched.begin(), touched.end());
    return static_cast<std::uint64_t>(std::unique(touched.begin(), touched.end()) -
                                      touched.begin());
  };
  if (one.space == Space::global) {
    ++count_.global_accesses;
    for (int lane = 0; lane < lanes; ++lane) {
      if (is_in(warp.active, lane)) touched.push_back(address_of(warp, one, lane) / sector);
    }
    count_.sectors += distinct();
  } else if (one.space == Space::shared) {
    // As many threads at a time as take a word of each bank; further words of a bank take a turn
    // each.
    const int at_once = std::min(lanes, static_cast<int>(4 * banks / bytes));
    for (int first = 0; first < lanes; first += at_once) {
      touched.clear();
      for (int lane = first; lane < first + at_once; ++lane) {
        if (!is_in(warp.active, lane)) continue;
        for (std::uint64_t i = 0; i < bytes; i += 4)
          touched.push_back((address_of(warp, one, lane) + i) / 4);
      }
      touched.resize(distinct());
      if (touched.empty()) continue;
      ++count_.shared_turns;
      std::array<std::uint64_t, banks> words{};
      for (const std::uint64_t word : touched) ++words[word % banks];
      count_.wavefronts += *std::max_element(words.begin(), words.end());
    }
  }
}

}  // namespace ptx
