// Ours and bare oneDNN for bench/compare: a process that trains when it is asked to.
//
// It speaks lines of JSON. The first is {"ready": true, "first_step": …}, with the time of
// std::chrono::steady_clock in seconds at which its first step had ended. Then {"run": seconds}
// trains for about that long, and {"profile": seconds} tells where the time of such steps goes.
// When its input ends, it ends. {"kernels": seconds} tells how long a GPU's kernels ran in steps of
// about that long. The variant `gemm` multiplies matrices instead, and its samples are
// operations.
//
// Three modes take no part: `--write-data FOLDER` writes the images that all contestants read,
// `--ceilings` tells what the cores can do at most, and `--list-devices` which GPUs there are.
#include "bench/contestant.hpp"
#include "bench/ceilings.hpp"
#include "bench/machine.hpp"

#include <arenite/data/dataset.hpp>
#include <arenite/data/idx.hpp>
#include <arenite/error.hpp>
#include <arenite/runtime/devices.hpp>

#include <spdlog/fmt/fmt.h>

#include "src/cli/checks.hpp"
#include "src/cli/run_command.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>

namespace {

using namespace arenite;

struct Arguments {
  std::string engine = "arenite", images, labels, write_data, dataset = "synthetic";
  bool ceilings = false, list_devices = false;
  bench::ContestantOptions how;
};

void say(const Json& line) { std::cout << line.dump() << std::endl; }

/// Images of [N, H, W] or [N, H, W, C], as the file says.
data::IdxFile open_images(const std::string& file) {
  try {
    return data::IdxFile::open(file, 3);
  } catch (const Error&) {
    return data::IdxFile::open(file, 4);
  }
}

void serve(const Arguments& a) {
  const data::IdxFile images = open_images(a.images), labels = data::IdxFile::open(a.labels, 1);
  const Shape& shape = images.shape();
  constexpr int classes = 10;
  data::check_labels(labels.values(), classes, a.labels);
  if (labels.shape()[0] != shape[0]) {
    fail({.found = std::to_string(labels.shape()[0]) + " labels for " + std::to_string(shape[0]) +
                   " images",
          .expected = "one label an image",
          .where = a.labels});
  }
  const data::Split train{.images = images.values(),
                          .labels = labels.values(),
                          .count = shape[0],
                          .height = shape[1],
                          .width = shape[2],
                          .channels = shape.rank() == 4 ? shape[3] : 1,
                          .classes = classes};
  const auto contestant = a.engine == "onednn" ? bench::make_onednn(train, a.how)
                          : a.engine == "gemm" ? bench::make_gemm(a.how.workers)
                                               : bench::make_arenite(train, a.how);
  contestant->first_step();
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  say({{"ready", true},
       {"first_step", now.count()},
       {"version", contestant->version()},
       {"configuration", contestant->configuration()},
       {"lanes", contestant->lanes()}});
  for (std::string line; std::getline(std::cin, line);) {
    const Json asked = parse_json(line);
    if (asked.find("profile") != nullptr) {
      say(contestant->profile(asked.at("profile").number()));
      continue;
    }
    if (asked.find("kernels") != nullptr) {
      say(bench::traced(*contestant, asked.at("kernels").number()));
      continue;
    }
    const bench::Turn turn = contestant->run(asked.at("run").number());
    say({{"samples", turn.samples}, {"seconds", turn.seconds}, {"loss", turn.loss}});
  }
}

/// The training images of a set as plain IDX files, colour ones of four dimensions.
void write_data(const Arguments& a) {
  constexpr std::int64_t drawn = 20480;  // whole batches of 10, 64, 256 and 1024
  const data::SyntheticOptions size{.seed = 1, .train = drawn, .test = 10};
  const data::ImageData data = a.dataset == "synthetic"         ? data::synthetic(size)
                               : a.dataset == "synthetic-color" ? data::synthetic_color(size)
                                                                : data::find(a.dataset);
  const data::Split& train = data.train;
  const std::filesystem::path folder = a.write_data;
  const Shape grey{train.count, train.height, train.width};
  const Shape colour{train.count, train.height, train.width, train.channels};
  data::write_idx(folder / "images", train.channels == 1 ? grey : colour, train.images);
  data::write_idx(folder / "labels", {train.count}, train.labels);
  say({{"dataset", data.name}, {"origin", data.origin}, {"images", train.count}});
}

void tell_ceilings(int workers) {
  bench::GemmCeiling gemm(workers);
  gemm.run(0.1);
  double most = 0;
  for (int round = 0; round < 40; ++round) most = std::max(most, gemm.run(0.02));
  const std::size_t bytes = bench::triad_bytes();
  say({{"cpu", bench::cpu_name()},
       {"workers", workers},
       {"fma_gflops", bench::fma_peak()},  // of one core
       {"gemm_gflops", most},
       {"triad_gb_s", bench::triad_bandwidth(workers, bytes)},
       {"triad_bytes", bytes}});
}

void tell_devices() {
  const runtime::CudaSupport support = runtime::cuda_support();
  Json devices = Json::list();
  for (const runtime::CudaDevice& device : support.devices)
    devices.push_back({{"index", device.index}, {"name", device.name}, {"bytes", device.memory}});
  say({{"cpu", bench::cpu_name()}, {"devices", devices}, {"reason", support.reason}});
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  cli::Command app("contestant", "Trains when it is asked to, for bench/compare");
  const auto text = [&](const char* name, std::string& into, const char* help) {
    cli::add_option<std::string>(app, name, into, cli::any_text, "a text", help)->default_str(into);
  };
  const auto number = [&](const char* name, float& into, const char* help) {
    cli::add_option<float>(app, name, into, cli::number_of_at_least_0,
                           "a finite number of at least 0", help)
        ->default_str(fmt::format("{}", into));
  };
  app.add_choice("--variant", a.engine, {"arenite", "onednn", "gemm"},
                 "who trains: arenite, onednn or gemm")
      ->default_str(a.engine);
  text("--network", a.how.network, "of arenite train");
  cli::add_whole_number(app, "--batch", a.how.batch, 1, 1 << 20, "samples of a step");
  cli::add_whole_number(app, "--workers", a.how.workers, 1, 1024, "threads that compute");
  number("--learning-rate", a.how.learning_rate, "of SGD");
  number("--momentum", a.how.momentum, "of SGD");
  text("--device", a.how.device, "of arenite train");
  text("--compute", a.how.compute, "of arenite train");
  text("--kernels", a.how.kernels, "of arenite train");
  text("--images", a.images, "a plain IDX file");
  text("--labels", a.labels, "a plain IDX file");
  text("--write-data", a.write_data, "write the set's images and labels to this folder");
  text("--dataset", a.dataset, "the set to write");
  app.add_switch("--ceilings", a.ceilings, "GEMM and triad on so many cores at once");
  app.add_switch("--list-devices", a.list_devices, "the GPUs, or why there are none");
  app.run = [&] {
    if (a.list_devices) {
      tell_devices();
    } else if (a.ceilings) {
      tell_ceilings(a.how.workers);
    } else if (!a.write_data.empty()) {
      write_data(a);
    } else {
      serve(a);
    }
    return 0;
  };
  return cli::run_command(app, argc, argv);
}
