#include "tests/cuda_stand_in/kernels.hpp"
#include "tests/ptx/machine.hpp"
#include "tests/ptx/parser.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cuda_stand_in {

struct Binary {
  std::string_view bytes;
  std::once_flag once;
  ptx::Module module;
};

namespace {

/// The architecture that it was compiled for: 90 of sm_90 and of sm_90a; 0 of none.
int architecture_of(std::string_view ptx) {
  constexpr std::string_view before = "\n.target sm_";
  const std::size_t begin = ptx.find(before);
  int number = 0;
  if (begin != ptx.npos)
    std::from_chars(ptx.data() + begin + before.size(), ptx.data() + ptx.size(), number);
  return number;
}

/// What nvcc's --no-compress leaves readable: of several the one for the newest GPUs. Empty where
/// there is none.
std::string_view ptx_in(std::string_view bytes) {
  std::string_view newest;
  for (std::size_t at = 0; (at = bytes.find("\n.version ", at)) != bytes.npos;) {
    // Its lines are counted from the first one on, which is blank.
    const std::size_t begin = bytes.rfind('\0', at) + 1, end = bytes.find('\0', at);
    const std::string_view one = bytes.substr(begin, std::min(end, bytes.size()) - begin);
    if (architecture_of(one) > architecture_of(newest)) newest = one;
    at = begin + one.size();
  }
  return newest;
}

const ptx::Entry& entry_of(const Kernel& kernel) {
  Binary& binary = *kernel.binary;
  std::call_once(binary.once, [&] {
    try {
      const std::string_view ptx = ptx_in(binary.bytes);
      if (ptx.empty()) refuse("a kernel without PTX: it takes nvcc's --no-compress");
      binary.module = ptx::parse(ptx);
    } catch (const std::exception& error) {
      refuse(error.what());
    }
  });
  const auto found = binary.module.entries.find(kernel.name);
  if (found == binary.module.entries.end()) refuse(("no PTX of " + kernel.name).c_str());
  return found->second;
}

/// What kernels of a device may touch: its own memory, and the host's that is pinned.
std::vector<ptx::Range> memory_of(int device) {
  std::vector<ptx::Range> all;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  for (const auto* kind : {&s.allocations, &s.pinned}) {
    for (const auto& [at, allocation] : *kind) {
      if (kind == &s.pinned || allocation.device == device)
        all.push_back({at, at + allocation.bytes});
    }
  }
  std::ranges::sort(all, {}, &ptx::Range::begin);
  return all;
}

const char* counts_file() { return std::getenv("CUDA_STAND_IN_COUNTS"); }

/// What all kernels did, by their names. Never destroyed: threads may outlive everything else.
class Sums {
 public:
  static Sums& get() {
    static auto* const kept = new Sums;
    return *kept;
  }
  void add(const std::string& name, const ptx::Counts& counts) {
    const std::lock_guard lock(mutex_);
    all_[name].add(counts);
  }

 private:
  Sums() {
    if (counts_file() != nullptr) std::atexit([] { get().report(); });
  }
  void report() {
    const std::lock_guard lock(mutex_);
    std::FILE* out = std::fopen(counts_file(), "w");
    if (out == nullptr) return;
    const char* separator = "[\n";
    for (const auto& [name, c] : all_) {
      std::fprintf(
          out,
          "%s{\"kernel\": \"%s\", \"grids\": %lu, \"threads\": %lu, \"instructions\": %lu, "
          "\"multiplications\": %lu, \"global_accesses\": %lu, \"sectors\": %lu, "
          "\"shared_turns\": %lu, \"wavefronts\": %lu}",
          separator, name.c_str(), c.grids, c.threads, c.instructions, c.multiplications,
          c.global_accesses, c.sectors, c.shared_turns, c.wavefronts);
      separator = ",\n";
    }
    std::fprintf(out, "\n]\n");
    std::fclose(out);
  }

  std::mutex mutex_;
  std::map<std::string, ptx::Counts> all_;
};

/// A stream's own.
struct Runner {
  ptx::Machine machine{counts_file() != nullptr};
  std::vector<ptx::Range> memory;
  long changes = -1;
  int device = -1;
  std::minstd_rand order;  ///< of blocks
};

}  // namespace

bool kernels_run() {
  static const bool run = std::getenv("CUDA_STAND_IN_PTX") != nullptr;
  return run;
}

Binary* binary_at(const void* wrapper) {
  // As fatbinary_section.h and fatBinaryCtl.h of CUDA have it: a header that says how much follows.
  struct Wrapper {
    int magic, version;
    const char* data;
    void* unused;
  };
  struct Header {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;
  };
  const char* const data = static_cast<const Wrapper*>(wrapper)->data;
  Header header;
  std::memcpy(&header, data, sizeof(header));
  if (header.magic != 0xba55ed50) refuse("a binary of kernels of another kind than it knows");
  auto* made = new Binary;
  made->bytes = {data, header.header_bytes + header.bytes};
  return made;
}

Binary* binary_of(const char* ptx) {
  auto* made = new Binary;
  made->bytes = *new std::string(ptx);
  return made;
}

int architecture_of(const Kernel& kernel) { return architecture_of(ptx_in(kernel.binary->bytes)); }

const Launch& launch_of(const Kernel& kernel, int device, const Configuration& as,
                        void** arguments) {
  if (as.grid.y != 1 || as.grid.z != 1 || as.block.y != 1 || as.block.z != 1 || as.shared != 0)
    refuse(
        "a grid that is no row of rows of threads, or has memory beyond what its kernel declares");
  static std::mutex mutex;
  static auto* const known = new std::set<Launch>;
  thread_local Launch launch;
  launch.entry = &entry_of(kernel);
  launch.device = device;
  launch.blocks = as.grid.x;
  launch.threads = as.block.x;
  launch.early = as.early;
  launch.parameters.assign(launch.entry->parameter_bytes, std::byte{0});
  for (std::size_t i = 0; i < launch.entry->parameters.size(); ++i) {
    const ptx::Parameter& one = launch.entry->parameters[i];
    std::memcpy(launch.parameters.data() + one.offset, arguments[i], one.bytes);
  }
  const std::lock_guard lock(mutex);
  const auto found = known->find(launch);
  if (found != known->end()) return *found;
  return *known->insert(launch).first;
}

void perform(const Launch& launch) {
  thread_local Runner runner;
  if (runner.device != launch.device || runner.changes != state().memory_changes) {
    runner.changes = state().memory_changes;
    runner.device = launch.device;
    runner.memory = memory_of(launch.device);
  }
  try {
    const ptx::Counts counts = runner.machine.run({.entry = launch.entry,
                                                   .blocks = launch.blocks,
                                                   .threads = launch.threads,
                                                   .parameters = launch.parameters.data(),
                                                   .memory = runner.memory,
                                                   .early = launch.early,
                                                   .from_the_last = runner.order() / 8 % 2 == 1});
    Sums::get().add(launch.entry->name, counts);
  } catch (const ptx::Fault& fault) {
    refuse(fault.what());
  }
}

}  // namespace cuda_stand_in
