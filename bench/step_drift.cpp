// Whether steps take as long at the end as at the beginning: thousands of them, each timed by
// itself.
//
// A machine that others use changes its own pace meanwhile. So the steps of the old process are in
// the end compared with those of a new one, a few of either in turn.
#include <arenite/nn/nn.hpp>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "bench/machine.hpp"
#include "bench/stepper.hpp"
#include "src/cli/checks.hpp"
#include "src/cli/run_command.hpp"

namespace {

using namespace arenite;
using bench::Stepper;

constexpr long window = 500;   // steps that share a median
constexpr long warm_up = 200;  // steps that are not measured
constexpr long turn = 10;      // steps before it is the other process's turn
constexpr double allowed = 0.05;

/// What this share of the times lies below.
double quantile(std::vector<double> times, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(times.size()));
  std::nth_element(times.begin(), times.begin() + at, times.end());
  return times[static_cast<std::size_t>(at)];
}

double median(const std::vector<double>& times) { return quantile(times, 0.5); }

/// Where a ratio lies between 0.9 and 1.1; colons mark 0.95, 1 and 1.05.
std::string place(double ratio) {
  std::string scale = "|         :         :         :         |";
  const double last = static_cast<double>(scale.size() - 1);
  const double at = std::clamp(std::round((ratio - 0.9) / 0.2 * last), 0.0, last);
  scale[static_cast<std::size_t>(at)] = '*';
  return scale;
}

std::string verdict(double ratio) {
  if (std::abs(ratio - 1) <= allowed) return fmt::format("{:.3f}, within 5 %\n", ratio);
  return fmt::format("{:.3f}, {:.0f} % {}\n", ratio, std::abs(ratio - 1) * 100,
                     ratio < 1 ? "faster" : "slower");
}

void print_windows(const std::vector<double>& times) {
  std::cout << fmt::format("{:>13} {:>10} {:>10}   of the first median\n", "steps", "median µs",
                           "99 % µs");
  double first = 0;
  for (std::size_t from = 0; from + window <= times.size(); from += window) {
    const auto begin = times.begin() + static_cast<std::ptrdiff_t>(from);
    const std::vector<double> part(begin, begin + window);
    if (from == 0) first = median(part);
    const double ratio = median(part) / first;
    std::cout << fmt::format("{:>6}-{:<6} {:>9.1f} {:>10.1f}   {:.3f} {}\n", from + 1,
                             from + window, median(part), quantile(part, 0.99), ratio,
                             place(ratio));
  }
  std::cout << fmt::format("all: median {:.1f} µs, 99 % {:.1f} µs\n\n", median(times),
                           quantile(times, 0.99))
            << fmt::format("last {} of {} steps against the first: ", window, times.size())
            << verdict(median({times.end() - window, times.end()}) / first);
}

/// A few steps of the old process over a few of a new one, in turn: the median of such ratios.
double against_a_new_one(Stepper& old, const bench::StepperOptions& options) {
  old.rest();
  Stepper young(options);
  young.run(warm_up);
  std::vector<double> ratios;
  for (long done = 0; done < window; done += turn) {
    const double early = median(young.run(turn));
    young.rest();
    ratios.push_back(median(old.run(turn)) / early);
    old.rest();
  }
  return median(ratios);
}

std::vector<std::string> networks() {
  std::vector<std::string> names;
  for (const nn::NamedModel& model : nn::models()) names.push_back(model.name);
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  bench::StepperOptions options{.model = "cnn2"};
  long steps = 10'000;
  cli::Command app("step_drift",
                   "Whether a network's steps take as long at the end as at the beginning");
  const auto with_default = [](cli::Option* option, const auto& value) {
    option->default_str(fmt::format("{}", value));
  };
  with_default(app.add_choice("--model", options.model, networks(),
                              fmt::format("network: {}", fmt::join(networks(), ", "))),
               options.model);
  with_default(cli::add_whole_number(app, "--batch", options.batch, 1, 1000, "samples of a step"),
               options.batch);
  with_default(cli::add_whole_number(app, "--workers", options.workers, 1, 1024, "CPU workers"),
               options.workers);
  with_default(cli::add_option<float>(app, "--lr", options.lr, cli::number_of_at_least_0,
                                      "a finite number of at least 0",
                                      "learning rate; 0 keeps the work of a step the same, which "
                                      "sparse gradients change"),
               options.lr);
  with_default(cli::add_whole_number(app, "--steps", steps, 2 * window, 10'000'000,
                                     "steps that are timed, rounded to whole windows of 500"),
               steps);
  std::signal(SIGPIPE, SIG_IGN);  // the other process may have ended
  app.run = [&] {
    Stepper stepper(options);
    std::cout << bench::cpu_name() << ": " << stepper.description() << "\n\n" << std::flush;
    stepper.run(warm_up);
    print_windows(stepper.run(steps / window * window));
    std::cout << fmt::format("the next {}, in turn with the first of a new process: ", window)
              << std::flush << verdict(against_a_new_one(stepper, options));
    return 0;
  };
  return cli::run_command(app, argc, argv);
}
