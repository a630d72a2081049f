// All planning strategies side by side on the same tables: how far above the lower bound each ends,
// and how long it takes.
#include <arenite/error.hpp>
#include <arenite/plan/csv.hpp>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include "src/cli/checks.hpp"
#include "src/cli/run_command.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace arenite;

struct Table {
  std::string name;
  plan::Problem problem;
  std::int64_t lower_bound = 0;  // of all spaces
};

struct Result {
  double ratio = 1;  // peak over lower bound
  double milliseconds = 0;
  bool optimal = false;
};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail({.found = "no file that can be read", .where = "'" + path + "'", .hint = {}});
  return {std::istreambuf_iterator<char>(file), {}};
}

Table make_table(std::string name, plan::Problem problem) {
  Table table{std::move(name), std::move(problem), 0};
  for (const plan::LowerBound& bound : plan::lower_bounds(table.problem)) {
    table.lower_bound += bound.lower_bound;
  }
  return table;
}

/// What a training step of so many buffers might look like: activations that live until their
/// backward op, gradients and scratch that live a few ops, sizes over three decades.
plan::Problem random_step(std::int64_t buffers) {
  std::mt19937_64 random(static_cast<std::uint64_t>(buffers));
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  plan::Problem problem;
  for (std::int64_t i = 0; i < buffers; ++i) {
    const bool activation = i % 3 == 0;
    const std::int64_t begin = activation ? below(buffers / 2) : below(buffers);
    const std::int64_t end = activation ? buffers - begin : begin + 1 + below(6);
    problem.add({.name = fmt::format("b{}", i),
                 .bytes = (1 + below(64)) << (8 + below(11)),
                 .lifetime = {begin, std::max(begin + 1, end)}});
  }
  return problem;
}

Result run(const Table& table, const std::string& strategy, plan::Effort effort) {
  const plan::Plan plan = plan::solve(table.problem, {.strategy = strategy, .effort = effort});
  plan::verify(table.problem, plan);
  const double ratio =
      plan.peak == 0 ? 1 : static_cast<double>(plan.peak) / static_cast<double>(table.lower_bound);
  return {ratio, plan.milliseconds, plan.optimal};
}

/// Ten characters for a doubled peak.
std::string bar(double ratio) {
  return std::string(static_cast<std::size_t>(std::clamp((ratio - 1) * 10, 0.0, 20.0)), '#');
}

/// Of the results, one a table.
std::string row(const std::string& name, const std::vector<Result>& results, bool each) {
  double logarithms = 0;
  double worst = 1;
  double slowest = 0;
  double total = 0;
  int optimal = 0;
  std::string ratios;
  for (const Result& result : results) {
    logarithms += std::log(result.ratio);
    worst = std::max(worst, result.ratio);
    slowest = std::max(slowest, result.milliseconds);
    total += result.milliseconds;
    optimal += result.optimal ? 1 : 0;
    if (each) ratios += fmt::format(" {:6.3f}", result.ratio);
  }
  const double mean = std::exp(logarithms / static_cast<double>(results.size()));
  return fmt::format("{:23} {:7.4f} {:7.3f} {:4}/{:<4} {:9.1f} {:9.1f} {} {}\n", name, mean, worst,
                     optimal, results.size(), total, slowest, ratios, bar(mean));
}

void print_heading(const std::vector<Table>& tables, bool each) {
  std::string names;
  if (each) {
    for (const Table& table : tables) names += fmt::format(" {:>6}", table.name.substr(0, 6));
  }
  std::cout << fmt::format("{:23} {:>7} {:>7} {:>9} {:>9} {:>9} {}\n", "peak / lower bound", "mean",
                           "worst", "proved", "ms", "most ms", names);
}

}  // namespace

int main(int argc, char** argv) {
  cli::Command app("planners", "Plans tables with every strategy");
  app.about = {
      "Ratios are peaks over lower bounds, means are geometric; every plan is checked by the "
      "verifier, outside of the time."};
  std::vector<std::string> paths, only;
  std::vector<std::int64_t> sizes;
  bool max = false;
  cli::add_each<std::string>(app, "TABLE", paths, cli::any_text, "a path",
                             "CSV tables as for `arenite plan`");
  const auto buffers = [](const std::string& text) -> std::optional<std::int64_t> {
    return cli::whole_number(text, 3, 10'000'000);
  };
  cli::add_each<std::int64_t>(app, "--random", sizes, buffers,
                              cli::whole_number_text(3, 10'000'000),
                              "also a random training step of N buffers")
      ->type_name("N");
  std::vector<std::string> names{"auto"};
  for (const plan::StrategyInfo& info : plan::strategies()) names.emplace_back(info.name);
  app.add_choices("--strategy", only, names, fmt::format("only these: {}", fmt::join(names, ", ")));
  app.add_switch("--max", max, "also at --effort max");
  app.run = [&] {
    std::vector<Table> tables;
    for (const std::string& path : paths) {
      tables.push_back(make_table(std::filesystem::path(path).filename().string(),
                                  plan::read_csv(read(path), path, 1)));
    }
    for (const std::int64_t size : sizes) {
      tables.push_back(make_table(std::to_string(size), random_step(size)));
    }
    if (tables.empty()) fail({.found = "no table", .expected = "a TABLE or --random N"});

    const bool each = tables.size() <= 12;
    print_heading(tables, each);
    const auto measure = [&](const std::string& name, const std::string& strategy,
                             plan::Effort effort) {
      std::vector<Result> results;
      for (const Table& table : tables) results.push_back(run(table, strategy, effort));
      std::cout << row(name, results, each) << std::flush;
    };
    const auto wanted = [&](std::string_view name) {
      return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
    };
    for (const plan::StrategyInfo& info : plan::strategies()) {
      const std::string name(info.name);
      if (wanted(name)) measure(name, name, plan::Effort::normal);
    }
    if (!wanted("auto")) return 0;
    measure("auto, fast", "auto", plan::Effort::fast);
    measure("auto, default", "auto", plan::Effort::normal);
    if (max) measure("auto, max", "auto", plan::Effort::max);
    return 0;
  };
  return cli::run_command(app, argc, argv);
}
