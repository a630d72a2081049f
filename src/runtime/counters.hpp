// The process's counters behind runtime::counters().
#pragma once

#include <atomic>

namespace arenite::runtime {

struct AtomicCounters {
  std::atomic<long> handles{0}, blocks{0}, pins{0}, tasks{0};
};

AtomicCounters& atomic_counters() noexcept;

}  // namespace arenite::runtime
