// The checked build's own oracle: who holds each 256 bytes of a block right now.
//
// The first writer of a storage claims its bytes and poisons them; every later access checks that
// they are still the storage's. A plan that lets two live storages share a byte is caught at the
// first read.
#pragma once

#include <arenite/types.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace arenite::runtime {

inline constexpr bool checked_build = ARENITE_CHECKED != 0;

/// Status code of an access to bytes that meanwhile belong to another storage.
inline constexpr std::uint32_t status_overwritten = 0xffffffffu;

/// Owners of the 256-byte granules of one block (placements are aligned to 256, so none is shared).
class Ownership {
 public:
  explicit Ownership(std::int64_t bytes)
      : granules_(
            static_cast<std::size_t>(round_up(bytes, default_alignment) / default_alignment)) {}

  std::atomic<std::uint32_t>* at(std::int64_t offset) {
    return &granules_[static_cast<std::size_t>(offset / default_alignment)];
  }

 private:
  std::vector<std::atomic<std::uint32_t>> granules_;
};

/// What one op does to one range of a storage; made at build time, so that a step only runs it.
/// Readers check that the bytes are still their storage's; writers take them.
struct Claim {
  std::atomic<std::uint32_t>* first = nullptr;
  std::size_t count = 0;
  std::uint32_t owner = 0;
  bool reads = false, writes = false;
  std::byte* poisoned = nullptr;  ///< set for the first writer of the range in program order
  std::size_t size = 0;

  /// False when the bytes to be read belong to someone else.
  bool run() const noexcept {
    const bool sound = own();
    if (poisoned) std::memset(poisoned, 0xff, size);
    return sound;
  }
  /// The same without poison, which in a device's memory is the device's to spread.
  bool own() const noexcept {
    bool sound = true;
    for (std::size_t i = 0; i < count; ++i) {
      if (reads && first[i].load(std::memory_order_relaxed) != owner) sound = false;
      if (writes) first[i].store(owner, std::memory_order_relaxed);
    }
    return sound;
  }
};

}  // namespace arenite::runtime
