#include "src/cli/training_words.hpp"

#include "src/cli/train_arguments.hpp"

#include <spdlog/fmt/fmt.h>

#include <iostream>

namespace arenite::cli {
namespace {

/// What steps asked of the system: the promise is nothing.
std::string costs_text(const TrainingEnd& end) {
  const train::StepCosts& costs = end.costs;
  std::string text = fmt::format("handles registered after warm-up: {}, blocks: {}, pins: {}\n",
                                 end.since.handles, end.since.blocks, end.since.pins);
  if (!costs.heap_calls) return text + "heap calls: not counted (--count-heap counts them)\n";
  return text + fmt::format(
                    "heap calls in {} training and {} evaluation steps after warm-up: {}, "
                    "mappings: {}\n",
                    costs.training_steps, costs.evaluation_steps, *costs.heap_calls,
                    *costs.map_calls);
}

/// What a file of kernels is good for here: of a file for other shapes nothing is taken.
std::string kernels_text(const TrainingStart& s) {
  if (s.arguments.kernels.empty()) return "";
  const std::size_t taken = s.trainer.chosen_kernels();
  return fmt::format(
      "kernels of {}{}: a step takes {} of the {} that it names{}\n", s.arguments.kernels,
      s.kernels.measured_on.empty() ? "" : ", measured on " + s.kernels.measured_on, taken,
      s.kernels.size(),
      taken > 0 ? ""
                : " (hint: they are for another device, network or batch, or for other --lanes, "
                  "--momentum, --fuse or --compute; gpu_kernels --choose measures float32 in one "
                  "lane)");
}

}  // namespace

void WordsReport::start(const TrainingStart& s) {
  const TrainArguments& a = s.arguments;
  std::cout << fmt::format("{} ({}): {} training and {} test images of {}\n", s.data.name,
                           s.data.origin, s.train.count, s.data.test.count,
                           to_string(s.data.shape()));
  if (a.limit > s.data.train.count) {
    std::cout << fmt::format("--limit {}: the set has only {} training images; all are used\n",
                             a.limit, s.data.train.count);
  }
  std::cout << fmt::format("model {}: {}; batch {} in {} {}; {}{}\n", s.model.name, s.model.summary,
                           a.batch, s.trainer.lanes(), s.trainer.lanes() == 1 ? "lane" : "lanes",
                           s.session.description(),
                           a.compute == runtime::Compute::float32
                               ? ""
                               : fmt::format("; products in {}", runtime::to_string(a.compute)))
            << kernels_text(s) << s.trainer.plan();
}

void WordsReport::interrupted(long steps) {
  std::cout << (steps == 0 ? "interrupted before the first step: nothing was trained\n"
                           : "\ninterrupted: training ended after the current step\n");
}

void WordsReport::profile(const std::optional<runtime::Profile>& profile) {
  if (profile) {
    std::cout << *profile;
  } else {
    std::cout << "no profile: training ended before the last epoch, whose steps it is made of\n";
  }
}

void WordsReport::end(const TrainingEnd& end) {
  std::cout << fmt::format("{} steps, {:.1f} steps/s; peak RSS {:.1f} MiB\n", end.steps,
                           end.steps_per_second, static_cast<double>(end.peak_rss) / (1024 * 1024))
            << costs_text(end) << fmt::format("test accuracy: {:.2f} %\n", end.test_accuracy * 100)
            << "weights sha256: " << end.weights_sha256 << '\n';
}

}  // namespace arenite::cli
