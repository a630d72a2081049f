// Runs a random program op by op in any order, on memory of its own: what the runtime is compared
// with, and what a wrong plan shows itself on. Shares no code with src/runtime but the kernels.
#pragma once

#include <arenite/runtime/kernel.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/oracle/random_program.hpp"

namespace arenite::oracle {

/// Kernels ready to run, by program and op.
using Kernels = std::vector<std::vector<runtime::PreparedKernel>>;

/// Those that `select` chose.
Kernels real_kernels(const RandomProgram& program);

/// Stand-ins: every byte they write depends on every byte they read, and on nothing else. Where a
/// real kernel may lose sight of a wrong byte (a ReLU, a pixel between two strides), these cannot;
/// and they write as early as the contract of a kernel lets them.
Kernels mixing_kernels(const RandomProgram& program);

/// What can be seen when a step has ended.
struct Seen {
  std::vector<Bytes> outputs;
  NamedBytes state;          ///< persistent storages of all programs
  std::uint64_t status = 0;  ///< what kernels reported

  friend bool operator==(const Seen&, const Seen&) = default;
};

using Trace = std::vector<Seen>;  // by step

/// The first thing in which they differ; empty where they have the same bits.
std::string difference(const Trace& actual, const Trace& expected);

/// True when an output or a parameter is NaN or infinite somewhere.
bool has_wild_numbers(const RandomProgram& program, const Trace& trace);

/// One op of one step.
struct Event {
  std::size_t step = 0;
  graph::OpId op;

  friend bool operator==(const Event&, const Event&) = default;
};

enum class Poison : std::uint8_t {
  none,  ///< memory starts as zeros, what is left behind stays
  dead,  ///< bytes are NaN until their storage is first written, and again once it is done with
};

/// The runtime's two task sets: inputs and outputs exist twice, and a step's staging tasks may run
/// while the step before is under way. Throws Error when the order leaves out an op, or has one
/// before its step may start.
Trace execute(const RandomProgram& program, const Kernels& kernels, std::span<const Event> order,
              Poison poison);

/// What the program has to give: run `without_sharing`, in program order, without poison.
Trace reference(const RandomProgram& program, const Kernels& kernels);

}  // namespace arenite::oracle
