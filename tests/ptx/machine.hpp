// Runs kernels of PTX on the host, a block after the other, and looks at each thing that they do:
// accesses beyond memory or off their alignment, threads that touch the same bytes at once,
// barriers that not all threads of a block come to, memory that is touched while grids before may
// write it.
//
// Threads of a warp that part ways go on with the ones that are behind, so that they meet again.
// Warps of a block run by turns from barrier to barrier, blocks from the first on or from the last:
// nobody may count on an order.
#pragma once

#include "tests/ptx/program.hpp"
#include "tests/ptx/shadow.hpp"
#include "tests/ptx/warp.hpp"

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

struct Grid {
  const Entry* entry = nullptr;
  std::uint32_t blocks = 0, threads = 0;  ///< threads of each block
  const std::byte* parameters = nullptr;
  std::span<const Range> memory;  ///< in the order of addresses
  bool early = false;             ///< begins before the grids before it have ended
  bool from_the_last = false;     ///< the order of its blocks
};

/// What a kernel did that no GPU would do, or not each time: who, where, and what.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What grids of a kernel did. Instructions and accesses are those of warps: one is that of
/// all its threads.
struct Counts {
  std::uint64_t grids = 0, threads = 0;
  std::uint64_t instructions = 0, multiplications = 0;  ///< all, and those that multiply floats
  std::uint64_t global_accesses = 0, sectors = 0;       ///< and the 32 bytes that these touch
  std::uint64_t shared_turns = 0,
                wavefronts = 0;  ///< at least, for as many bytes, and by the banks

  void add(const Counts& other) {
    for (auto member :
         {&Counts::grids, &Counts::threads, &Counts::instructions, &Counts::multiplications,
          &Counts::global_accesses, &Counts::sectors, &Counts::shared_turns, &Counts::wavefronts})
      this->*member += other.*member;
  }
};

class Machine {
 public:
  /// With `counting` it counts more than grids and threads, which takes a while.
  explicit Machine(bool counting = false) : counting_(counting) {}

  /// Throws Fault.
  Counts run(const Grid& grid);

 private:
  void start_block(const Grid& grid, std::uint32_t block);
  void run_block(const Grid& grid, std::uint32_t block);
  void run_warp(const Grid& grid, Warp& warp);
  void run_together(const Grid& grid, Warp& warp, Mask together, std::uint32_t others);
  /// Lets those go on that wait. False where all have left.
  bool pass_barrier(const Grid& grid);
  void access(const Grid& grid, const Warp& warp, const Instruction& one);
  /// Where a lane's bytes are. Throws where they are nowhere, or another thread is at them.
  std::byte* memory_at(const Grid& grid, const Warp& warp, const Instruction& one, int lane);
  bool in_global_memory(const Grid& grid, std::uintptr_t at, std::size_t bytes);
  void count_access(const Warp& warp, const Instruction& one);
  [[noreturn]] void fail_access(const Grid& grid, const Warp& warp, const Instruction& one,
                                int lane, const char* what) const;
  [[noreturn]] void fail_beyond(const Grid& grid, const Warp& warp, const Instruction& one,
                                int lane, const char* what, std::size_t size) const;
  [[noreturn]] void fail_race(const Grid& grid, const Warp& warp, const Instruction& one, int lane,
                              Other other) const;
  /// Of threads that will never meet at a barrier.
  [[noreturn]] void fail_barrier(const Grid& grid) const;
  /// Begins the memory of who touched what anew, where it has grown too large.
  void forget();
  [[noreturn]] void fail(const Grid& grid, const Warp& warp, const Instruction& one, int lane,
                         const std::string& what) const;

  std::vector<Warp> warps_;
  std::vector<std::byte> files_, shared_, local_;
  Shadow global_shadow_;
  SharedShadow shared_shadow_;
  Toucher toucher_;
  Moment now_ = 1;
  std::uint32_t block_ = 0;
  Range recent_;
  const bool counting_;
  Counts count_;  ///< of the grid
};

}  // namespace ptx
