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

#include <CLI/CLI.hpp>

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
  CLI::App app("Trains when it is asked to, for bench/compare");
  app.add_option("--variant", a.engine, "who trains")
      ->check(CLI::IsMember({"arenite", "onednn", "gemm"}));
  app.add_option("--network", a.how.network, "of arenite train");
  app.add_option("--batch", a.how.batch, "samples of a step")->check(CLI::Range(1, 1 << 20));
  app.add_option("--workers", a.how.workers, "threads that compute")->check(CLI::Range(1, 1024));
  app.add_option("--learning-rate", a.how.learning_rate, "of SGD")->capture_default_str();
  app.add_option("--momentum", a.how.momentum, "of SGD")->capture_default_str();
  app.add_option("--device", a.how.device, "of arenite train")->capture_default_str();
  app.add_option("--compute", a.how.compute, "of arenite train")->capture_default_str();
  app.add_option("--kernels", a.how.kernels, "of arenite train");
  auto* images = app.add_option("--images", a.images, "a plain IDX file");
  app.add_option("--labels", a.labels, "a plain IDX file")->needs(images);
  app.add_option("--write-data", a.write_data, "write the set's images and labels to this folder");
  app.add_option("--dataset", a.dataset, "the set to write")->capture_default_str();
  app.add_flag("--ceilings", a.ceilings, "GEMM and triad on so many cores at once");
  app.add_flag("--list-devices", a.list_devices, "the GPUs, or why there are none");
  CLI11_PARSE(app, argc, argv);
  try {
    if (a.list_devices) {
      tell_devices();
    } else if (a.ceilings) {
      tell_ceilings(a.how.workers);
    } else if (!a.write_data.empty()) {
      write_data(a);
    } else {
      serve(a);
    }
  } catch (const std::exception& error) {
    std::cerr << "contestant: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
