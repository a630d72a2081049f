#include "src/cli/training_words.hpp"

#include "src/base/words.hpp"
#include "src/cli/metric_text.hpp"
#include "src/cli/output.hpp"
#include "src/cli/train_arguments.hpp"

#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <variant>

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
                : " (hint: they are for another device, network or batch, or for other "
                  "--shards, --lanes, --momentum, --fuse or --compute; gpu_kernels --choose "
                  "measures float32 in one "
                  "lane)");
}

/// What is not as usual: with SGD alone nothing is said.
std::string optimizer_text(const TrainingStart& s) {
  const optim::Optimizer& o = s.optimizer;
  const bool is_usual = o.optimizer->name == "sgd" && o.schedule.empty() && o.clip_norm == 0 &&
                        o.clip_value == 0 && o.groups.empty() && !o.averaging && o.check_loss &&
                        s.arguments.accumulate == 1;
  if (is_usual) return "";
  std::string text = fmt::format("optimizer {}: lr {}", o.optimizer->name,
                                 as_written(static_cast<float>(o.learning_rate)));
  const graph::Attributes all = o.optimizer->with_defaults(o.attributes);
  for (const auto& [name, number] : all.items())
    text += fmt::format(", {} {}", name, all.real(name));
  if (!o.schedule.empty()) text += "; schedule " + s.arguments.schedule;
  if (o.clip_value > 0) text += fmt::format("; elements of gradients cut at {}", o.clip_value);
  if (o.clip_norm > 0) text += fmt::format("; gradients at most {} long", o.clip_norm);
  for (const graph::ParameterGroup& group : o.groups) {
    text += "; of " +
            (group.most_rank ? fmt::format("at most {} axes", *group.most_rank)
                             : "'" + group.names + "'") +
            ":";
    if (group.rate != 1) text += fmt::format(" rate {}", group.rate);
    for (const auto& [name, number] : group.attributes.items())
      text += fmt::format(" {} {}", name, group.attributes.real(name));
  }
  if (s.arguments.accumulate > 1)
    text += fmt::format("; gradients of {} batches added up", s.arguments.accumulate);
  if (o.averaging) text += fmt::format("; means that keep {} are tested", o.averaging->decay);
  if (!o.check_loss) text += "; goes on where the loss is not finite";
  return text + "\n";
}

int columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// "3.2 s", "1:05", "2:03:11"
std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const long s = std::lround(seconds);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

WordsReport::WordsReport(int epochs, std::string tested)
    : epochs_(epochs), tested_(std::move(tested)), terminal_(isatty(STDOUT_FILENO) != 0) {}

void WordsReport::start(const TrainingStart& s) {
  const TrainArguments& a = s.arguments;
  std::cout << fmt::format("{} ({}): {} training and {} test images of {}\n", s.data.name,
                           s.data.origin, s.train.count, s.data.test.count,
                           to_string(s.data.shape()));
  if (a.limit > s.data.train.count) {
    std::cout << fmt::format("--limit {}: the set has only {} training images; all are used\n",
                             a.limit, s.data.train.count);
  }
  std::cout << fmt::format("model {}: {}; batch {} in {}; {}{}\n", s.model.name, s.model.summary,
                           a.batch,
                           to_string(graph::BatchCut{s.trainer.shards(), s.trainer.lanes()},
                                     s.trainer.shards_at_once()),
                           s.session.description(),
                           a.compute == runtime::Compute::float32
                               ? ""
                               : fmt::format("; products in {}", runtime::to_string(a.compute)))
            << optimizer_text(s) << kernels_text(s) << s.trainer.plan();
}

void WordsReport::first_step(double seconds) {
  std::fputs(fmt::format("first step after {:.2f} s\n", seconds).c_str(), stdout);
  flush_output();
}

void WordsReport::progress(const train::Progress& p) {
  const double done = p.total == 0 ? 1 : static_cast<double>(p.done) / static_cast<double>(p.total);
  const double rate = p.seconds > 0 ? static_cast<double>(p.done) / p.seconds : 0;
  const double left = done > 0 ? p.seconds / done * (p.epochs - p.epoch - done) : 0;
  const std::string text = fmt::format(
      "epoch {}/{} {:3.0f} %  {:.0f} samples/s  loss {:.4f}{}  ETA {}", p.epoch + 1, p.epochs,
      done * 100, rate, p.loss,
      std::isnan(p.accuracy) ? "" : fmt::format("  accuracy {:.2f} %", p.accuracy * 100),
      duration_text(left));
  const int room = std::clamp(columns() - static_cast<int>(text.size()) - 4, 0, 30);
  std::string bar;
  if (room >= 5) {
    const int filled = static_cast<int>(done * room);
    bar = "[" + std::string(static_cast<std::size_t>(filled), '#') +
          std::string(static_cast<std::size_t>(room - filled), '.') + "] ";
  }
  std::fputs(("\r\033[K" + bar + text).c_str(), stdout);
  std::fflush(stdout);
}

void WordsReport::epoch(const train::EpochReport& report) {
  const train::Metrics& m = report.train;
  std::string text = fmt::format("{}epoch {}/{}  loss {:.4f}", terminal_ ? "\r\033[K" : "",
                                 report.epoch + 1, epochs_, m.loss);
  const auto add = [&](const std::string& of, const train::Metrics& metrics) {
    for (std::size_t i = 0; i < metrics.names->size(); ++i) {
      const std::string& name = (*metrics.names)[i];
      if (name != "loss")
        text += "  " + of + " " + name + " " + metric_text(name, metrics.values[i]);
    }
  };
  add("train", m);
  if (report.validation) {
    if (m.names->size() == 1)
      text += fmt::format("  {} loss {:.4f}", tested_, report.validation->loss);
    add(tested_, *report.validation);
  }
  text += fmt::format("  {:.2f} s  {:.0f} samples/s\n", m.seconds,
                      m.seconds > 0 ? static_cast<double>(m.samples) / m.seconds : 0);
  std::fputs(text.c_str(), stdout);
  flush_output();
}

void WordsReport::resumed(const std::string& file, const train::Trainer& trainer,
                          const std::string& differs) {
  std::cout << fmt::format("goes on from {}: step {}, {} epochs done\n", file, trainer.steps(),
                           trainer.epochs());
  if (trainer.epochs() >= epochs_)
    std::cout << "nothing is left to train: --epochs are those of all, with those that are done\n";
  if (!differs.empty())
    std::cout << fmt::format("its bits may not be those of a run without a break: {}\n", differs);
}

void WordsReport::saved(const std::string& file, const train::Trainer& trainer) {
  std::fputs(
      fmt::format("{}saved {} at step {}\n", terminal_ ? "\r\033[K" : "", file, trainer.steps())
          .c_str(),
      stdout);
  flush_output();
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
  if (end.stopped_early)
    std::cout << "ended early: no later epoch tested better than one before (--early-stop)\n";
  std::cout << fmt::format("{} steps, {:.1f} steps/s; peak RSS {:.1f} MiB\n", end.steps,
                           end.steps_per_second, static_cast<double>(end.peak_rss) / (1024 * 1024))
            << costs_text(end)
            << (std::isnan(end.test_accuracy)
                    ? fmt::format("test loss: {:.4f}\n", end.test_loss)
                    : fmt::format("test accuracy: {:.2f} %\n", end.test_accuracy * 100))
            << "weights sha256: " << end.weights_sha256 << '\n';
}

}  // namespace arenite::cli
