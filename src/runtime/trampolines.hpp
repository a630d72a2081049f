// Stacks that say which op runs.
//
// A kernel is called through a few instructions of its own, which keep a frame and are named in the
// perf map: a profiler that follows frame pointers finds the op's name in every stack, whatever the
// kernel calls, code that was made at run time included.
#pragma once

#include <arenite/runtime/kernel.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace arenite::runtime {

struct NamedKernel {
  std::string name;
  KernelFunction run = nullptr;
};

/// Where the perf map is on, replaces each `run` by code that calls it and has that name there;
/// equal ones get the same. Elsewhere, and on processors that this writes no code for, they stay.
/// The code lives as long as the process: its names do, too. Throws Failure where the system
/// refuses executable memory or perf_map() the names.
void give_frames(std::span<NamedKernel> kernels);

/// The instructions for two processors, of which give_frames uses those of the one at hand.
std::vector<std::uint8_t> trampoline_x86_64(std::uint64_t target);
std::vector<std::uint8_t> trampoline_aarch64(std::uint64_t target);

}  // namespace arenite::runtime
