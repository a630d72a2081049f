#include "src/runtime/capture/capture.hpp"

#include "src/runtime/capture/collector.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <span>
#include <utility>

namespace arenite::runtime {
namespace {

constexpr std::int64_t line_bytes = 64;

std::span<std::uint64_t> words_of(Block& block) {
  return {reinterpret_cast<std::uint64_t*>(block.data()),
          static_cast<std::size_t>(block.bytes()) / sizeof(std::uint64_t)};
}

/// Of one word: no other has the same, and none is a number that kernels make.
std::uint64_t mark(std::size_t word) { return 0xfff5'a5a5'0000'0000u ^ word; }

void mark(Block& block) {
  const auto words = words_of(block);
  for (std::size_t w = 0; w < words.size(); ++w) words[w] = mark(w);
}

/// Lines that no longer hold their marks.
void find_touched(Block& block, CapturedBlock& use) {
  const auto words = words_of(block);
  constexpr std::size_t in_line = line_bytes / sizeof(std::uint64_t);
  use.touched = 0;
  for (std::size_t w = 0; w < words.size(); w += in_line) {
    const std::size_t end = std::min(words.size(), w + in_line);
    bool whole = true;
    for (std::size_t i = w; i < end; ++i) whole = whole && words[i] == mark(i);
    const auto bytes = static_cast<std::int64_t>((end - w) * sizeof(std::uint64_t));
    const auto at = static_cast<std::int64_t>(w * sizeof(std::uint64_t));
    if (!whole) {
      use.touched += bytes;
    } else if (!use.untouched.empty() && use.untouched.back().end == at) {
      use.untouched.back().end += bytes;
    } else {
      use.untouched.push_back({at, at + bytes});
    }
  }
}

std::int64_t resident_bytes(Block& block) {
  if (!block.allocated() || block.bytes() == 0) return 0;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(block.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(block.data() + block.bytes());
  std::vector<unsigned char> pages((end - begin + page - 1) / page);
  if (mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()) != 0) return 0;
  return std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1) != 0; }) *
         static_cast<std::int64_t>(page);
}

/// A line of /proc/self/status, in bytes; 0 where there is none.
std::int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::atoll(line.c_str() + name.size() + 1) * 1024;
  }
  return 0;
}

/// Steps that are in the ring still, without those that may be under way.
std::vector<CapturedStep> steps_in(const StepShape& shape, const StepRecords& records, long ended) {
  std::vector<CapturedStep> steps;
  const long kept = static_cast<long>(records.counted());
  for (long number = std::max(0L, ended - kept); number < ended; ++number) {
    const std::size_t row = records.row_of(number);
    CapturedStep step{.number = number, .submitted = records.submitted(row), .runs = {}};
    for (std::size_t t = 0; t < shape.tasks.size(); ++t) {
      const std::int64_t* stamps = records.stamps(row, t);
      step.runs.push_back({.worker = records.worker(row, t),
                           .stamps = {stamps, stamps + shape.tasks[t].ops.size() + 1}});
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

Capture::Capture(CaptureRequest request, std::vector<CaptureSource> programs,
                 std::vector<std::string> on_devices, std::vector<Block>& blocks,
                 std::vector<bool> used_again)
    : request_(std::move(request)),
      on_devices_(std::move(on_devices)),
      blocks_(blocks),
      marked_(std::move(used_again)) {
  for (CaptureSource& source : programs) {
    StepRecords records = StepRecords::last(source.shape.steps, request_.steps);
    rings_.push_back({std::move(source), std::move(records)});
    Ring& ring = rings_.back();
    ring.source.record(&ring.records);
  }
  for (std::size_t b = 0; b < marked_.size(); ++b) {
    if (marked_[b]) mark(blocks_[b]);
  }
  collector().begin(*this);
}

Capture::~Capture() {
  for (const Ring& ring : rings_) ring.source.record(nullptr);
  collector().end(*this);
}

CapturedSet Capture::result(bool under_way) const {
  CapturedSet result{.programs = {},
                     .on_devices = on_devices_,
                     .blocks = {},
                     .resident = status_bytes("VmRSS"),
                     .most_resident = status_bytes("VmHWM")};
  for (const Ring& ring : rings_) {
    const StepShape& shape = ring.source.shape.steps;
    const long in_flight = under_way ? static_cast<long>(shape.task_sets) : 0;
    auto steps = steps_in(shape, ring.records, ring.source.steps() - in_flight);
    if (steps.empty()) continue;
    const long before = steps.front().number;
    result.programs.push_back(
        {.shape = ring.source.shape, .steps = std::move(steps), .before = before});
  }
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    CapturedBlock& use = result.blocks.emplace_back();
    use.name = block.name();
    use.bytes = block.bytes();
    if (block.space().device != DeviceKind::cpu) continue;
    use.resident = resident_bytes(block);
    if (marked_[b]) find_touched(block, use);
  }
  return result;
}

}  // namespace arenite::runtime
