// Two tables: how fast networks train, beside bare oneDNN; and where the time of a step goes.
#include <arenite/arenite.hpp>

#include <spdlog/fmt/fmt.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/machine.hpp"
#include "bench/onednn_loop.hpp"
#include "bench/training_case.hpp"

namespace {

using namespace arenite;
using nlohmann::json;
using nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> networks;
  std::vector<std::int64_t> batches{10, 64, 256};
  std::vector<int> workers{1, 2};
  int rounds = 5;
  double seconds = 0.5;
  bool quick = false;
  std::string json_file;
  std::string measure;  // the engine, in a child
};

/// All rounds of one network, batch and number of workers.
struct Cell {
  bench::Case what;
  std::vector<json> ours, rival;
};

double median(const std::vector<json>& rounds, const json::json_pointer& field) {
  std::vector<double> values;
  for (const json& round : rounds) values.push_back(round.at(field).get<double>());
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double rate(const std::vector<json>& rounds) {
  return median(rounds, json::json_pointer("/samples_per_second"));
}

/// The largest rate of the rounds over the smallest: how quiet the machine was.
double spread(const std::vector<json>& rounds) {
  double least = INFINITY, most = 0;
  for (const json& round : rounds) {
    const double value = round.at("samples_per_second").get<double>();
    least = std::min(least, value), most = std::max(most, value);
  }
  return most / least;
}

/// "12 of 90 measurements, ETA 1:05" on a terminal, nothing elsewhere.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total) {}
  void show(const bench::Case& next) {
    if (isatty(STDERR_FILENO) == 0) return;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    std::string eta;
    if (done_ > 0) {
      const auto left = std::lround(passed.count() / static_cast<double>(done_) *
                                    static_cast<double>(total_ - done_));
      eta = fmt::format(", ETA {}:{:02}", left / 60, left % 60);
    }
    std::fputs(fmt::format("\r\033[K{} of {} measurements{}: {} {}, batch {}, workers {}", done_,
                           total_, eta, next.engine, next.network, next.batch, next.workers)
                   .c_str(),
               stderr);
    ++done_;
  }
  void end() const {
    if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  }

 private:
  std::size_t total_, done_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool has_rival(const bench::Case& what) {
  return what.network == "cnn2" && !bench::onednn_version().empty();
}

/// Ours and the rival in turn, and all cells before the next round: what slows the machine for a
/// while meets every cell alike.
std::vector<Cell> measure_all(const Arguments& a) {
  std::vector<Cell> cells;
  std::size_t total = 0;
  for (const std::string& network : a.networks) {
    for (std::int64_t batch : a.batches) {
      for (int workers : a.workers) {
        cells.push_back({.what = {.engine = "arenite",
                                  .network = network,
                                  .batch = batch,
                                  .workers = workers,
                                  .seconds = a.seconds}});
        total += has_rival(cells.back().what) ? 2 : 1;
      }
    }
  }
  Progress progress(total * static_cast<std::size_t>(a.rounds));
  for (int round = 0; round < a.rounds; ++round) {
    for (Cell& cell : cells) {
      progress.show(cell.what);
      cell.ours.push_back(bench::measure_apart(cell.what));
      if (!has_rival(cell.what)) continue;
      bench::Case rival = cell.what;
      rival.engine = "onednn";
      progress.show(rival);
      cell.rival.push_back(bench::measure_apart(rival));
    }
  }
  progress.end();
  return cells;
}

void print_rates(const std::vector<Cell>& cells, int rounds) {
  const std::string version = bench::onednn_version();
  std::cout
      << fmt::format(
             "\nTable 1: samples a second, on as many cores as workers (median of {}; spread: "
             "fastest / slowest)\n",
             rounds)
      << fmt::format("  {:<10} {:>5} {:>7} {:>5} {:>11} {:>7} {:>13} {:>7} {:>7}\n", "network",
                     "batch", "workers", "lanes", "samples/s", "spread",
                     version.empty() ? "no oneDNN" : "oneDNN " + version, "spread", "ratio");
  for (const Cell& cell : cells) {
    std::string text =
        fmt::format("  {:<10} {:>5} {:>7} {:>5} {:>11.0f} {:>7.2f}", cell.what.network,
                    cell.what.batch, cell.what.workers, cell.ours.back().at("lanes").get<int>(),
                    rate(cell.ours), spread(cell.ours));
    if (!cell.rival.empty()) {
      text += fmt::format(" {:>13.0f} {:>7.2f} {:>7.2f}", rate(cell.rival), spread(cell.rival),
                          rate(cell.ours) / rate(cell.rival));
    }
    std::cout << text << '\n';
  }
}

constexpr const char* parts[] = {"kernels", "staging", "runtime", "idle"};

double part_of(const Cell& cell, const char* part) {
  return median(cell.ours, json::json_pointer(std::string("/profile/us_per_step/") + part));
}

void print_parts(const std::vector<Cell>& cells) {
  std::cout << "\nTable 2: where the workers' time of a step goes, µs and % (workers × wall time)\n"
            << fmt::format("  {:<10} {:>5} {:>7}", "network", "batch", "workers");
  for (const char* part : parts) std::cout << fmt::format(" {:>18}", part);
  std::cout << fmt::format(" {:>10}\n", "µs a step");
  for (const Cell& cell : cells) {
    std::cout << fmt::format("  {:<10} {:>5} {:>7}", cell.what.network, cell.what.batch,
                             cell.what.workers);
    double total = 0;
    for (const char* part : parts) total += part_of(cell, part);
    for (const char* part : parts) {
      const double microseconds = part_of(cell, part);
      std::cout << fmt::format(" {:>10.1f} {:>5.1f} %", microseconds, 100 * microseconds / total);
    }
    std::cout << fmt::format(" {:>10.1f}\n", total / cell.what.workers);
  }
}

void write_json(const std::string& file, const std::vector<Cell>& cells, const std::string& cpu,
                double peak) {
  ordered_json rows = ordered_json::array();
  for (const Cell& cell : cells) {
    ordered_json row{{"network", cell.what.network},
                     {"batch", cell.what.batch},
                     {"workers", cell.what.workers},
                     {"samples_per_second", rate(cell.ours)}};
    if (!cell.rival.empty()) {
      row["onednn_samples_per_second"] = rate(cell.rival);
      row["ratio"] = rate(cell.ours) / rate(cell.rival);
    }
    for (const char* part : parts) row["us_per_step"][part] = part_of(cell, part);
    row["rounds"] = cell.ours;
    row["onednn_rounds"] = cell.rival;
    rows.push_back(std::move(row));
  }
  std::ofstream out(file);
  out << ordered_json{{"cpu", cpu},
                      {"fma_peak_gflops", peak},
                      {"onednn", bench::onednn_version()},
                      {"cells", std::move(rows)}}
             .dump(1)
      << '\n';
  if (!out.flush()) {
    throw Failure({.found = "could not be written", .expected = "a writable file", .where = file});
  }
}

void run_tables(const Arguments& a) {
  const std::string cpu = bench::cpu_name();
  const double peak = bench::fma_peak();
  const std::string version = bench::onednn_version();
  std::cout << fmt::format(
                   "{}, {} cores; {:.0f} GFLOP/s of fused multiply-adds on one\n{}\n", cpu,
                   sysconf(_SC_NPROCESSORS_ONLN), peak,
                   version.empty()
                       ? "without oneDNN (install libdnnl-dev and configure again): no ratios"
                       : "oneDNN " + version)
            << std::flush;
  const std::vector<Cell> cells = measure_all(a);
  print_rates(cells, a.rounds);
  print_parts(cells);
  if (!a.json_file.empty()) write_json(a.json_file, cells, cpu, peak);
}

std::vector<std::string> known_networks() {
  std::vector<std::string> names;
  for (const nn::NamedModel& model : nn::models()) names.push_back(model.name);
  return names;
}

/// Those of the tables that this build has.
std::vector<std::string> usual_networks() {
  const std::vector<std::string> known = known_networks();
  std::vector<std::string> names;
  for (const char* name : {"mlp", "cnn1", "lenet5", "cnn2", "vgg-small"}) {
    if (std::find(known.begin(), known.end(), name) != known.end()) names.emplace_back(name);
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  a.networks = usual_networks();
  CLI::App app("How fast networks train beside bare oneDNN, and where a step's time goes");
  app.add_option("--network", a.networks, "networks, comma-separated")
      ->delimiter(',')
      ->check(CLI::IsMember(known_networks()))
      ->capture_default_str();
  app.add_option("--batch", a.batches, "samples of a step, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(1, 12800))
      ->capture_default_str();
  app.add_option("--workers", a.workers, "CPU workers and OpenMP threads, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  auto* rounds = app.add_option("--rounds", a.rounds, "measurements of each case")
                     ->check(CLI::Range(1, 1000))
                     ->capture_default_str();
  auto* seconds = app.add_option("--seconds", a.seconds, "training of each measurement")
                      ->check(CLI::Range(0.01, 3600.0))
                      ->capture_default_str();
  app.add_flag("--quick", a.quick, "one round of 0.1 s, unless said otherwise");
  app.add_option("--json", a.json_file, "write all measurements to this file");
  app.add_option("--measure", a.measure)->group("");  // one case, in a child
  CLI11_PARSE(app, argc, argv);
  if (a.quick && rounds->count() == 0) a.rounds = 1;
  if (a.quick && seconds->count() == 0) a.seconds = 0.1;
  try {
    if (a.measure.empty()) {
      run_tables(a);
    } else {
      std::cout << bench::measure({.engine = a.measure,
                                   .network = a.networks.front(),
                                   .batch = a.batches.front(),
                                   .workers = a.workers.front(),
                                   .seconds = a.seconds})
                << std::endl;
    }
  } catch (const std::exception& error) {
    std::cerr << "training_table: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
