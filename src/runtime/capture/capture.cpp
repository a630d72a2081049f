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

/// The last steps of which all is known.
std::vector<RecordedStep> steps_in(const StepRecords& records) {
  std::vector<RecordedStep> steps;
  for (std::size_t row = 0; row < records.capacity(); ++row) {
    RecordedStep step;
    if (records.read(row, step)) steps.push_back(std::move(step));
  }
  std::ranges::sort(steps, {}, &RecordedStep::number);
  const auto gap =
      std::adjacent_find(steps.rbegin(), steps.rend(),
                         [](const auto& a, const auto& b) { return a.number != b.number + 1; });
  if (gap != steps.rend()) steps.erase(steps.begin(), gap.base() - 1);
  if (steps.size() > records.counted())
    steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(records.counted()));
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
  number_ = collector().begin(*this);
}

Capture::~Capture() {
  stop();
  collector().end(*this);
}

void Capture::stop() const {
  for (const Ring& ring : rings_) ring.source.record(nullptr);
}

CapturedSet Capture::result(bool under_way) const {
  CapturedSet result{.number = number_,
                     .under_way = under_way,
                     .on_devices = on_devices_,
                     .resident = status_bytes("VmRSS"),
                     .most_resident = status_bytes("VmHWM")};
  for (const Ring& ring : rings_) {
    std::vector<RecordedStep> steps = steps_in(ring.records);
    if (!steps.empty())
      result.programs.push_back({.shape = ring.source.shape, .steps = std::move(steps)});
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
