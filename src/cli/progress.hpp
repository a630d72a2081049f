// Progress for people: a bar with rates and an ETA on a terminal, one plain line an epoch
// elsewhere.
#pragma once

#include <arenite/train/trainer.hpp>

#include <string>

namespace arenite::cli {

class ProgressDisplay {
 public:
  explicit ProgressDisplay(int epochs);

  bool on_terminal() const noexcept { return terminal_; }
  void show(const train::Progress& progress);
  void first_step(double seconds);  ///< since the process began
  void epoch_done(const train::EpochReport& report);

 private:
  int epochs_;
  bool terminal_;
};

/// Throws Failure where standard output takes no more: what was not written was not reported.
void flush_output();

std::string duration_text(double seconds);  ///< "3.2 s", "1:05", "2:03:11"

}  // namespace arenite::cli
