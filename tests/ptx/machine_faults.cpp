// What a machine says of kernels' mistakes.
#include "tests/ptx/machine.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ptx {
namespace {

std::string hexadecimal(std::uint64_t address) {
  char text[19];
  std::snprintf(text, sizeof(text), "%#lx", address);
  return text;
}

/// What stands in a line of the module.
std::string text_of(const Entry& entry, std::uint32_t line) {
  std::size_t begin = 0;
  for (std::uint32_t at = entry.first_line; at < line; ++at) {
    begin = entry.text.find('\n', begin);
    if (begin == entry.text.npos) return "its end";
    ++begin;
  }
  begin = std::min(entry.text.find_first_not_of("\t ", begin), entry.text.size());
  return entry.text.substr(begin, entry.text.find('\n', begin) - begin);
}

}  // namespace

void Machine::fail_access(const Grid& grid, const Warp& warp, const Instruction& one, int lane,
                          const char* what) const {
  fail(grid, warp, one, lane,
       std::to_string(one.bytes * one.count) + " bytes at " +
           hexadecimal(address_of(warp, one, lane)) + ", " + what);
}

void Machine::fail_beyond(const Grid& grid, const Warp& warp, const Instruction& one, int lane,
                          const char* what, std::size_t size) const {
  const std::uint64_t at = address_of(warp, one, lane);
  fail(grid, warp, one, lane,
       "bytes " + std::to_string(at) + " to " +
           std::to_string(at + std::uint64_t{one.bytes} * one.count) + " of " +
           std::to_string(size) + " of " + what);
}

void Machine::fail_race(const Grid& grid, const Warp& warp, const Instruction& one, int lane,
                        Other other) const {
  fail(grid, warp, one, lane,
       std::string(one.kind == Instruction::Kind::load ? "reads" : "writes") +
           (one.space == Space::shared ? " shared" : " global") + " memory at " +
           hexadecimal(address_of(warp, one, lane)) + ", which thread " +
           std::to_string(other.thread % grid.threads) + " of block " +
           std::to_string(other.thread / grid.threads) + (other.writes ? " writes" : " reads") +
           " at the same time");
}

void Machine::fail_barrier(const Grid& grid) const {
  const auto name = [&](const Warp& warp, int lane) {
    return "thread " + std::to_string(warp.index * lanes + lane);
  };
  const Warp* at = nullptr;  // of the first one that waits
  int first = 0;
  std::string other;
  for (const Warp& warp : warps_) {
    const std::uint32_t there = grid.threads - static_cast<std::uint32_t>(warp.index) * lanes;
    for (int lane = 0; lane < lanes && static_cast<std::uint32_t>(lane) < there; ++lane) {
      const std::uint32_t next = warp.next[static_cast<std::size_t>(lane)];
      if (!is_in(warp.alive, lane)) {
        other = "a barrier that " + name(warp, lane) + " of the block left before";
      } else if (at == nullptr) {
        at = &warp;
        first = lane;
      } else if (other.empty() && next != at->next[static_cast<std::size_t>(first)]) {
        other = "a barrier, while " + name(warp, lane) +
                " of the block waits at another one, line " +
                std::to_string(grid.entry->code[next - 1].line);
      }
    }
  }
  fail(grid, *at, grid.entry->code[at->next[static_cast<std::size_t>(first)] - 1], first, other);
}

void Machine::fail(const Grid& grid, const Warp& warp, const Instruction& one, int lane,
                   const std::string& what) const {
  throw Fault(grid.entry->name + ": line " + std::to_string(one.line) + ", thread " +
              std::to_string(warp.index * lanes + lane) + " of block " + std::to_string(block_) +
              ": " + what + ": " + text_of(*grid.entry, one.line));
}

}  // namespace ptx
