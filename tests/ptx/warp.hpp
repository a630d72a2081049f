// A warp of a grid that runs: its registers, and where each of its threads is.
#pragma once

#include "tests/ptx/program.hpp"

#include <array>
#include <cstring>

namespace ptx {

inline bool is_in(Mask mask, int lane) { return ((mask >> lane) & 1) != 0; }

struct Warp {
  std::byte* file = nullptr;  ///< registers
  Mask active = 0;            ///< lanes that the instruction under way is for

  template <class T>
  T* lanes(Register at) const {
    return reinterpret_cast<T*>(file + at);
  }
  Mask predicate(Register at) const {
    Mask mask;
    std::memcpy(&mask, file + at, sizeof(mask));
    return mask;
  }
  /// Of the active lanes.
  void set_predicate(Register at, Mask mask) {
    mask = (predicate(at) & ~active) | (mask & active);
    std::memcpy(file + at, &mask, sizeof(mask));
  }
  template <class T>
  void set(Register at, const T (&values)[ptx::lanes]) {
    T* const to = lanes<T>(at);
    if (active == all_lanes) {
      std::memcpy(to, values, sizeof(values));
    } else {
      for (int lane = 0; lane < ptx::lanes; ++lane) {
        if (is_in(active, lane)) to[lane] = values[lane];
      }
    }
  }

  Mask alive = 0, waiting = 0;  ///< threads that have not left, and those at a barrier
  Mask waited = 0;              ///< those that know the grids before theirs to have ended
  std::array<std::uint32_t, ptx::lanes> next{};  ///< the next instruction of each
  int index = 0;                                 ///< in the block
};

/// That a lane's access is for, in its space.
inline std::uint64_t address_of(const Warp& warp, const Instruction& one, int lane) {
  const auto offset = static_cast<std::uint64_t>(one.offset);
  if (one.absolute) return offset;
  if (one.is_narrow)
    return static_cast<std::uint32_t>(warp.lanes<std::uint32_t>(one.from[0])[lane] + offset);
  return warp.lanes<std::uint64_t>(one.from[0])[lane] + offset;
}

}  // namespace ptx
