// One pinned allocation of a space, made once, on first use.
#pragma once

#include <arenite/types.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace arenite::runtime {

/// Bytes for arenas: zero-filled, huge pages asked for, on the workers' NUMA node, locked in
/// memory. Not copyable; the first `data()` must not race with another.
class Block {
 public:
  /// Throws Error on a negative size, and on a space that this build has no memory for.
  Block(std::string name, std::int64_t bytes, Space space = {});
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&&) = delete;

  const std::string& name() const noexcept { return name_; }
  std::int64_t bytes() const noexcept { return bytes_; }
  const Space& space() const noexcept { return space_; }

  /// The bytes; nullptr for an empty block. Allocates on the first call; throws Error when the
  /// system refuses.
  std::byte* data();
  bool allocated() const noexcept { return data_ != nullptr; }

  /// "cuda", "locked" or "no (why)"; "not yet" before first use.
  const std::string& pinned() const noexcept { return pinned_; }

 private:
  void allocate();

  std::string name_;
  std::int64_t bytes_ = 0;
  Space space_;
  std::byte* data_ = nullptr;
  std::size_t mapped_ = 0;
  bool through_starpu_ = false;
  std::string pinned_ = "not yet";
};

}  // namespace arenite::runtime
