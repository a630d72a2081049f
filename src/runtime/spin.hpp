// Waiting for another core, for less time than the system would need to put this one to sleep.
#pragma once

#include <sched.h>

#include <atomic>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace arenite::runtime {

/// One wait: looks again at once, and lets others have the core when it takes long.
class Spin {
 public:
  void once() noexcept {
    if (++looks_ < patience) {
#if defined(__SSE2__)
      _mm_pause();
#endif
    } else {
      sched_yield();
    }
  }

 private:
  static constexpr int patience = 2000;  // some 50 µs; then somebody else may need this core
  int looks_ = 0;
};

/// For a few instructions. Not fair; no heap, no system call unless its holder lost the core.
class Spinlock {
 public:
  void lock() noexcept {
    Spin spin;
    while (held_.exchange(true, std::memory_order_acquire)) spin.once();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace arenite::runtime
