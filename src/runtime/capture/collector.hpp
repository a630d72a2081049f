// All captures of the process, and the files made of them.
#pragma once

#include "src/runtime/capture/capture.hpp"

#include <deque>
#include <mutex>
#include <vector>

namespace arenite::runtime {

/// Any thread may call it.
class Collector {
 public:
  Collector() = default;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  void begin(Capture& capture);
  /// Keeps what the capture has, and writes the files anew. Errors go to standard error: captures
  /// end in destructors.
  void end(Capture& capture) noexcept;
  /// As `end`, for all captures that are there: the process ends.
  void finish() noexcept;

 private:
  void keep(CapturedSet set);
  void write(const CaptureRequest& request) const;

  std::mutex mutex_;
  std::vector<Capture*> running_;
  std::deque<CapturedSet> sets_;  // the last ones
  std::size_t forgotten_ = 0;
  bool finished_ = false;
};

/// The process's own, which is never destroyed.
Collector& collector();

}  // namespace arenite::runtime
