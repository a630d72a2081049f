// Recording what the environment asks for, from the building of a program set to its end.
//
// A Capture belongs to its ProgramSet and outlives no program of it. While it is there, each of its
// programs keeps stamps of its last steps: two readings of the clock more a task and one an op, no
// heap call. What it has seen goes to the process's collector when the set ends, or the process
// does; the collector writes the files.
#pragma once

#include <arenite/runtime/block.hpp>

#include "src/runtime/capture/captured.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace arenite::runtime {

/// What the environment asks of a process to record; see arenite/runtime/profile.hpp for its words.
struct CaptureRequest {
  std::string trace, memory;  ///< files; empty: not wanted
  long steps = 20;            ///< of each program, its last ones
};

/// None where nothing is asked for. Throws Error on a number of steps that is none, and on files
/// that cannot be written.
std::optional<CaptureRequest> capture_request();

/// A program whose steps are to be kept.
struct CaptureSource {
  CaptureShape shape;
  std::function<void(StepRecords*)> record;  ///< where its steps leave stamps from now on
};

class Capture {
 public:
  /// Of programs that are built and have not run. `used_again` says of each block whether steps use
  /// its bytes again: these are marked, to see later which of them were written.
  Capture(CaptureRequest request, std::vector<CaptureSource> programs,
          std::vector<std::string> on_devices, std::vector<Block>& blocks,
          std::vector<bool> used_again);
  /// Hands over what there is. The programs' steps must have ended.
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  const CaptureRequest& request() const noexcept { return request_; }
  /// Steps that begin from now on are not recorded, so that the last ones stay to be read: a short
  /// step may be over sooner than one is read.
  void stop() const;
  /// `under_way`: steps may be, of which nothing is told.
  CapturedSet result(bool under_way) const;

 private:
  struct Ring {
    CaptureSource source;
    StepRecords records;
  };

  CaptureRequest request_;
  std::deque<Ring> rings_;  // stable addresses
  std::vector<std::string> on_devices_;
  std::vector<Block>& blocks_;
  std::vector<bool> marked_;  // by block
  std::size_t number_ = 0;
};

}  // namespace arenite::runtime
