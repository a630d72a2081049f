// One pinned allocation of a space, made once, on first use.
#pragma once

#include <arenite/types.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace arenite::runtime {

class Device;

/// Bytes for arenas: zero-filled; in the host's memory with huge pages asked for, on the workers'
/// NUMA node, locked or registered with CUDA. Not copyable; the first `data()` must not race with
/// another. One in a device's memory has to end before the session does.
class Block {
 public:
  /// Throws Error on a negative size, one beyond the space's capacity, and on a space that is no
  /// device's of the session that runs.
  Block(std::string name, std::int64_t bytes, Space space = {});
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&&) = delete;

  const std::string& name() const noexcept { return name_; }
  std::int64_t bytes() const noexcept { return bytes_; }
  const Space& space() const noexcept { return space_; }

  /// The bytes, which are the device's to read and write if it is in its memory; nullptr for an
  /// empty block. Allocates on the first call; throws Error when the system refuses.
  std::byte* data();
  bool allocated() const noexcept { return data_ != nullptr; }

  /// "cuda", "locked" or "no (why)", "device" for a device's memory; "not yet" before first use.
  const std::string& pinned() const noexcept { return pinned_; }
  /// GPUs can copy from it and to it while the host goes on.
  bool pinned_for_cuda() const noexcept { return through_starpu_; }

 private:
  void allocate();
  void map();

  std::string name_;
  std::int64_t bytes_ = 0;
  Space space_;
  std::byte* data_ = nullptr;
  std::size_t mapped_ = 0;
  bool through_starpu_ = false;
  Device* device_ = nullptr;  // whose memory it is; none: the host's
  std::string pinned_ = "not yet";
};

}  // namespace arenite::runtime
