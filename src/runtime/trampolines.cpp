#include "src/runtime/trampolines.hpp"

#include <arenite/error.hpp>

#include "src/base/atomic_file.hpp"
#include "src/base/perf_map.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>
#include <utility>

namespace arenite::runtime {
namespace {

constexpr std::size_t slot_bytes = 64;  // one cache line each

void append(std::vector<std::uint8_t>& code, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) code.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

/// Empty where the processor is another.
std::vector<std::uint8_t> trampoline(KernelFunction run) {
  [[maybe_unused]] const auto target = reinterpret_cast<std::uintptr_t>(run);
#if defined(__x86_64__)
  return trampoline_x86_64(target);
#elif defined(__aarch64__)
  return trampoline_aarch64(target);
#else
  return {};
#endif
}

/// Memory that is written, then run, and never both. Pages of their own: others may be running.
std::uint8_t* write_code(const std::vector<std::vector<std::uint8_t>>& pieces) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (pieces.size() * slot_bytes + page - 1) / page * page;
  const auto refuse = [&] {
    throw Failure({.found = "no executable memory: " + system_reason(),
                   .expected = std::to_string(bytes) + " bytes, for frames that profilers see",
                   .where = "ARENITE_PERF_MAP",
                   .hint = "ARENITE_PERF_MAP=0 does without"});
  };
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse();
  auto* const code = static_cast<std::uint8_t*>(memory);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    std::ranges::copy(pieces[i], code + i * slot_bytes);
  __builtin___clear_cache(reinterpret_cast<char*>(code), reinterpret_cast<char*>(code) + bytes);
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) != 0) {
    const int reason = errno;
    munmap(memory, bytes);
    errno = reason;
    refuse();
  }
  return code;
}

using Known = std::map<std::pair<std::string, KernelFunction>, KernelFunction>;

}  // namespace

std::vector<std::uint8_t> trampoline_x86_64(std::uint64_t target) {
  std::vector<std::uint8_t> code{0xf3, 0x0f, 0x1e, 0xfa,  // endbr64
                                 0x55,                    // push rbp
                                 0x48, 0x89, 0xe5,        // mov rbp, rsp
                                 0x48, 0xb8};             // mov rax, target
  append(code, target, 8);
  for (const std::uint8_t byte : {0xff, 0xd0,  // call rax
                                  0x5d,        // pop rbp
                                  0xc3})       // ret
    code.push_back(byte);
  return code;
}

std::vector<std::uint8_t> trampoline_aarch64(std::uint64_t target) {
  std::vector<std::uint8_t> code;
  for (const std::uint32_t instruction : {0xd503245fU,   // bti c
                                          0xa9bf7bfdU,   // stp x29, x30, [sp, -16]!
                                          0x910003fdU,   // mov x29, sp
                                          0x580000b0U,   // ldr x16, target
                                          0xd63f0200U,   // blr x16
                                          0xa8c17bfdU,   // ldp x29, x30, [sp], 16
                                          0xd65f03c0U,   // ret
                                          0xd503201fU})  // nop
    append(code, instruction, 4);
  append(code, target, 8);
  return code;
}

void give_frames(std::span<NamedKernel> kernels) {
  if (!perf_map().on()) return;
  if (trampoline(nullptr).empty()) {
    static const bool said = [] {
      std::clog << "arenite: no frames for profilers on this processor: stacks will name kernels, "
                   "not ops\n";
      return true;
    }();
    static_cast<void>(said);
    return;
  }
  static std::mutex mutex;
  static Known known;
  const std::lock_guard lock(mutex);
  Known added;
  for (const NamedKernel& kernel : kernels) {
    if (!known.contains({kernel.name, kernel.run})) added[{kernel.name, kernel.run}] = nullptr;
  }
  if (!added.empty()) {
    std::vector<std::vector<std::uint8_t>> pieces;
    for (const auto& [what, made] : added) pieces.push_back(trampoline(what.second));
    const std::uint8_t* const code = write_code(pieces);
    std::vector<PerfMap::Entry> names;
    for (auto& [what, made] : added) {
      const std::uint8_t* const mine = code + names.size() * slot_bytes;
      made = reinterpret_cast<KernelFunction>(reinterpret_cast<std::uintptr_t>(mine));
      names.push_back({.code = mine, .size = pieces[names.size()].size(), .name = what.first});
    }
    perf_map().add(names);
    known.merge(added);
  }
  for (NamedKernel& kernel : kernels) kernel.run = known.at({kernel.name, kernel.run});
}

}  // namespace arenite::runtime
