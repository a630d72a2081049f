// PTX as nvcc writes it, made ready to be run on the host (machine.hpp). Of the language it is what
// our kernels are made of; whatever else there is, is refused by name when it is read (parser.hpp).
//
// Source: NVIDIA, "Parallel Thread Execution ISA", version 9.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ptx {

constexpr int lanes = 32;  ///< threads of a warp

/// What lanes' values are aligned to, so that they are vectors of the host's.
constexpr std::uint32_t vector_bytes = 64;

template <class T>
constexpr T aligned(T at, T to) {
  return (at + to - 1) / to * to;
}

/// A bit for each lane.
using Mask = std::uint32_t;
constexpr Mask all_lanes = ~Mask{0};

enum class Space : std::uint8_t { parameter, global, shared, local };

/// Where a register lies in the file of a warp, in bytes: a value for each lane; of a predicate a
/// mask.
using Register = std::uint32_t;

struct Warp;
struct Instruction;
using Function = void (*)(Warp&, const Instruction&);

struct Instruction {
  enum class Kind : std::uint8_t {
    compute,     ///< `function`: to = f(from...)
    load,        ///< elements = memory at from[0] + offset
    store,       ///< memory there = elements
    compare,     ///< to = the old value there; it becomes from[2] where it was from[1]
    branch,      ///< to `target`
    leave,       ///< the thread ends
    earlier,     ///< waits for the grids before this one, where it began early
    barrier,     ///< waits for all threads of the block
    barrier_or,  ///< the same; to = whether from[0] holds for any of them
  };
  Kind kind = Kind::compute;
  Space space = Space::global;
  bool is_signed = false;                ///< narrow values are widened so
  bool is_volatile = false;              ///< others may touch the same at once, on purpose
  bool absolute = false;                 ///< no from[0]: the address is `offset`
  bool is_narrow = false;                ///< from[0] has 32 bits, as shared memory's may
  bool multiplies = false;               ///< floats
  bool guarded = false, unless = false;  ///< only where `guard` holds, or does not
  std::uint8_t bytes = 0;                ///< of each element in memory
  std::uint8_t count = 1;
  std::uint8_t register_bytes = 0;  ///< of the register that an element is loaded to, stored from
  Register guard = 0, to = 0;
  Register from[4] = {};
  Register elements[4] = {};
  std::int64_t offset = 0;
  std::uint32_t target = 0;
  Function function = nullptr;
  std::uint32_t line = 0;  ///< of the module
};

/// A value that a register has from the start, the same for all lanes.
struct Constant {
  Register to;
  std::uint8_t bytes;
  std::uint64_t value;
};

/// What a register may be that nobody writes.
enum class Special : std::uint8_t { thread, block, threads, blocks };

struct Parameter {
  std::uint32_t offset, bytes;
};

/// Memory that kernels may touch: its addresses are the host's.
struct Range {
  std::uintptr_t begin = 0, end = 0;
};

struct Entry {
  std::string name;
  std::vector<Range> variables;  ///< the module's that it names
  std::vector<Instruction> code;
  std::vector<Parameter> parameters;
  std::vector<Constant> constants;
  std::map<Special, Register> specials;
  std::uint32_t parameter_bytes = 0;
  std::uint32_t register_bytes = 0;  ///< of a warp's file
  std::uint32_t shared_bytes = 0, local_bytes = 0;
  std::uint32_t most_threads = 1024;
  std::string text;              ///< as it was read
  std::uint32_t first_line = 1;  ///< of the module, where that begins
};

struct Module {
  std::string target;                                                        ///< sm_90
  std::map<std::string, std::vector<std::uint64_t>, std::less<>> variables;  ///< in its memory
  std::map<std::string, Entry> entries;
};

}  // namespace ptx
