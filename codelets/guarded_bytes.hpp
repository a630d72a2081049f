// Bytes between two pages that nobody may touch, for tests: an access beyond them stops the program
// at the instruction, whichever instruction it is (sanitizers don't see those that a JIT wrote, and
// their builds leave the AVX-512 kernels out).
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace arenite::codelets::testing {

class GuardedBytes {
 public:
  /// Where the bytes lie between the guards: an access just before them faults in front, one just
  /// after them at the back. What is left over of the pages is watched for writes.
  enum class Side { front, back };

  GuardedBytes() = default;
  /// Zeros, in front. At the back they begin at a multiple of `alignment`, so that up to
  /// alignment−1 bytes are left over behind them.
  explicit GuardedBytes(std::size_t size, std::size_t alignment = 1)
      : size_(size), alignment_(alignment) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    pages_ = (size + page - 1) / page * page;
    all_ = pages_ + 2 * page;
    void* mapped = mmap(nullptr, all_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    first_ = static_cast<std::byte*>(mapped) + page;
    if (pages_ > 0 && mprotect(first_, pages_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    watch_left_over();
  }
  GuardedBytes(GuardedBytes&& other) noexcept { swap(other); }
  GuardedBytes& operator=(GuardedBytes&& other) noexcept {
    swap(other);
    return *this;
  }
  ~GuardedBytes() {
    if (first_) munmap(first_ - (all_ - pages_) / 2, all_);
  }

  std::size_t size() const noexcept { return size_; }
  std::byte* data() noexcept { return first_ + at_; }
  std::byte* begin() noexcept { return data(); }
  std::byte* end() noexcept { return data() + size_; }

  void move_to(Side side) noexcept {
    const std::byte* from = data();
    at_ = side == Side::front ? 0 : (pages_ - size_) / alignment_ * alignment_;
    if (size_ > 0) std::memmove(data(), from, size_);
    watch_left_over();
  }

  /// Nothing was written outside since the last move.
  bool intact() noexcept {
    const auto unwritten = [](std::byte b) { return b == watched; };
    return std::all_of(first_, begin(), unwritten) &&
           std::all_of(end(), first_ + pages_, unwritten);
  }

 private:
  static constexpr std::byte watched{0xa5};

  void watch_left_over() noexcept {
    std::fill(first_, begin(), watched);
    std::fill(end(), first_ + pages_, watched);
  }

  void swap(GuardedBytes& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(size_, other.size_);
    std::swap(alignment_, other.alignment_);
    std::swap(pages_, other.pages_);
    std::swap(all_, other.all_);
    std::swap(at_, other.at_);
  }

  std::byte* first_ = nullptr;  ///< of the pages between the guards
  std::size_t size_ = 0, alignment_ = 1;
  std::size_t pages_ = 0, all_ = 0;  ///< bytes without and with the guards
  std::size_t at_ = 0;
};

}  // namespace arenite::codelets::testing
