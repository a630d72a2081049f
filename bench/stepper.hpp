// A process that trains when it is asked to, and tells how long each step took.
//
//   bench::Stepper one({.model = "cnn2"}), other({.model = "cnn2"});
//   one.run(500);                    // microseconds, by step
//   one.rest(), other.run(500);      // nothing of `one` runs meanwhile, not even a worker that
//   polls
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace arenite::bench {

struct StepperOptions {
  std::string model;
  std::int64_t batch = 10;
  int workers = 1;
  float lr = 0.02f;  ///< 0: the network learns nothing, and does the same work in each step
};

class Stepper {
 public:
  /// Begins the process and waits until its programs are built. Call it while this process has one
  /// thread: StarPU lives in the children only. Throws Failure.
  explicit Stepper(const StepperOptions& options);
  ~Stepper();
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  /// Microseconds of the next steps, each from its submission to its end with no other under way;
  /// what lies between two epochs is left out. Throws Failure when the process ended.
  std::vector<double> run(long steps);

  /// Stops the process where it stands, until the next run.
  void rest();

  /// "cnn2, batch 10 in 2 lanes, StarPU 1.3.10, 1 CPU worker".
  const std::string& description() const noexcept { return description_; }

 private:
  template <class T>
  void receive(T* values, std::size_t count);

  pid_t child_ = 0;
  std::array<int, 2> ends_{};  // to read from, to write to
  std::string description_;
};

}  // namespace arenite::bench
