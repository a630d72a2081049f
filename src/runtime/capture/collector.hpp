// All captures of the process, and the files made of them.
#pragma once

#include "src/runtime/capture/capture.hpp"

#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

namespace arenite::runtime {

/// Any thread may call it.
class Collector {
 public:
  Collector() = default;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// Returns the number of its set, from 1.
  std::size_t begin(Capture& capture);
  /// Keeps what the capture has, and writes the files anew, unless that would be most of what a
  /// process does that makes many sets. Errors go to standard error: captures end in destructors.
  void end(Capture& capture) noexcept;
  /// Writes what is kept and not written yet.
  void flush() noexcept;
  /// As `end` and `flush`, for all captures that are there: the process ends.
  void finish() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void keep(CapturedSet set);
  void write();

  std::mutex mutex_;
  std::vector<Capture*> running_;
  CapturedProcess captured_;  // the last sets
  CaptureRequest request_;    // of the last one
  std::size_t begun_ = 0;
  bool unwritten_ = false, finished_ = false;
  Clock::time_point next_write_{};
};

/// The process's own, which is never destroyed.
Collector& collector();

}  // namespace arenite::runtime
