// What is said while a network is trained, and to whom: words for people, JSON lines for programs.
#pragma once

#include <arenite/data/dataset.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/runtime/kernel_choices.hpp>
#include <arenite/runtime/session.hpp>
#include <arenite/train/trainer.hpp>

#include <optional>
#include <string>

namespace arenite::cli {

struct TrainArguments;

/// All that is known before the first step. Borrowed.
struct TrainingStart {
  const TrainArguments& arguments;
  const data::ImageData& data;
  const data::Split& train;  ///< of the data, what is trained on
  const nn::NamedModel& model;
  const runtime::Session& session;
  const train::Trainer& trainer;
  const optim::Optimizer& optimizer;
  const runtime::KernelChoices& kernels;  ///< of --kernels
};

struct TrainingEnd {
  double test_accuracy = 0;  ///< 0 to 1; NaN: the network does not tell
  double test_loss = 0;
  std::string weights_sha256;
  /// Before all epochs were done, as several in a row tested no better.
  bool stopped_early = false;
  long steps = 0;
  double steps_per_second = 0;               ///< while training, without evaluations
  std::optional<double> first_step_seconds;  ///< from the process's start to the first step's end
  long peak_rss = 0;                         ///< bytes
  train::StepCosts costs;
  runtime::Counters since;  ///< what the runtime did since the programs were built
};

/// Called in this order. Throws Failure where what it says cannot be written.
class TrainingReport {
 public:
  virtual ~TrainingReport() = default;

  virtual void start(const TrainingStart& start) = 0;
  virtual void first_step(double seconds) = 0;  ///< since the process began
  /// Whether anybody looks at progress: each look waits for the steps under way.
  virtual bool shows_progress() const { return false; }
  /// Only where it does.
  virtual void progress(const train::Progress& /*progress*/) {}
  virtual void epoch(const train::EpochReport& report) = 0;
  /// Before the first step. `differs`: what may change bits; empty: nothing.
  virtual void resumed(const std::string& file, const train::Trainer& trainer,
                       const std::string& differs) = 0;
  virtual void saved(const std::string& file, const train::Trainer& trainer) = 0;
  /// Training was cut short after so many steps. Without any, nothing follows.
  virtual void interrupted(long steps) = 0;
  /// None: it was asked for, but the last epoch, whose steps it is made of, did not begin.
  virtual void profile(const std::optional<runtime::Profile>& profile) = 0;
  virtual void end(const TrainingEnd& end) = 0;
};

}  // namespace arenite::cli
