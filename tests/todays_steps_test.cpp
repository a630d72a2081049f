// Steps and weights as they were when this was written: who changes them, changes them on purpose.
//
// Lines of todays_steps.*.txt: a network's step, and what it comes to with the kernels of an
// instruction set; of todays_weights.*.txt: a machine, and runs with the SHA-256 of their weights.
// Where they differ, what is found is written beside the test's program, to be looked at and taken
// over.
#include <arenite/data/dataset.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/train/trainer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "codelets/avx512.hpp"
#include "codelets/instruction_set.hpp"
#include "src/base/sha256.hpp"
#include "src/expr/simd/isa.hpp"
#include "src/train/compiled_step.hpp"
#include "tests/networks.hpp"

namespace arenite {
namespace {

std::string without_comments(const std::string& file) {
  std::ifstream in(std::string(ARENITE_TODAY) + "/" + file);
  EXPECT_TRUE(in) << file;
  std::string text, line;
  while (std::getline(in, line)) {
    if (!line.starts_with("#")) text += line + "\n";
  }
  return text;
}

/// Networks that came after the lists were written.
bool is_newer(const nn::NamedModel& model) { return model.name == "cnn2-bn"; }

/// Writes what differs where it can be compared.
void expect_today(const std::string& file, const std::string& found) {
  const std::string held = without_comments(file);
  if (found == held) return;
  std::ofstream(file) << found;
  if (held.empty()) GTEST_SKIP() << file << " holds nothing yet; all that was found is there";
  std::istringstream a(held), b(found);
  std::string was, is;
  while (std::getline(b, is)) {
    std::getline(a, was);
    if (was != is) break;
  }
  ADD_FAILURE() << "held:  " << was << "\nfound: " << is << "\nall that was found is in " << file;
}

/// Everything but names: kernels, tasks and their order, each storage's place, and reuse.
std::string digest(const runtime::ProgramSpec& spec) {
  std::ostringstream text;
  for (const graph::Task& task : spec.schedule.tasks) {
    text << "task " << to_string(task.phase) << ' ' << task.lane << ' ' << task.staging;
    for (const graph::OpId op : task.ops)
      text << ' ' << spec.graph[op].name() << '/' << spec.graph[op].kernel;
    for (const graph::TaskId before : task.predecessors) text << " <" << before.index;
    text << '\n';
  }
  std::vector<std::tuple<std::size_t, std::int64_t, std::int64_t>> places;
  for (const plan::Placement& place : spec.plan.placements) {
    if (place.bytes > 0 && !place.external)
      places.emplace_back(place.block, place.offset, place.bytes);
  }
  std::ranges::sort(places);
  for (const auto& [block, offset, bytes] : places)
    text << "place " << block << ' ' << offset << ' ' << bytes << '\n';
  for (const plan::TaskEdge& edge : spec.plan.reuse_edges)
    text << "edge " << edge.before.index << ' ' << edge.after.index << '\n';
  Sha256 hash;
  const std::string all = text.str();
  hash.update(std::as_bytes(std::span(all)));
  return hash.hex().substr(0, 16);
}

/// The kernels that there are decide what is planned: "avx512", "avx2", or "" for those whose steps
/// nobody holds. Some are the build's, and some the processor's, or ARENITE_ISA's.
std::string kernels_in_use() {
  if (ARENITE_PLAIN_KERNELS) return {};
  const auto known = codelets::kernel_instructions();
  const bool avx2 = std::ranges::find(known, std::string_view("avx2")) != known.end();
  const std::string_view built = codelets::built_with_avx512() ? "avx512" : avx2 ? "avx2" : "";
  return built == expr::isa() ? std::string(built) : "";
}

TEST(Today, StepsOfAllNetworksArePlannedAsTheyWere) {
  const std::string kernels = kernels_in_use();
  if (kernels.empty()) GTEST_SKIP() << "steps are held of AVX-512 and AVX2 kernels alone";
  std::ostringstream found;
  for (const nn::NamedModel& model : nn::models()) {
    if (is_newer(model)) continue;
    struct Cut {
      int batch, lanes, shards = 0, at_once = 0;
    };
    for (const auto& [batch, lanes, shards, at_once] : {Cut{64, 0},
                                                        {64, 1},
                                                        {64, 2},
                                                        {64, 4},
                                                        {64, 1, 4, 1},
                                                        {64, 1, 4, 2},
                                                        {64, 2, 2, 1},
                                                        {10, 0},
                                                        {10, 3},
                                                        {7, 0},
                                                        {1, 0},
                                                        {256, 8}}) {
      for (const bool training : {true, false}) {
        for (const auto& [fuse, compute] : {std::pair{true, runtime::Compute::float32},
                                            {false, runtime::Compute::float32},
                                            {true, runtime::Compute::bfloat16}}) {
          if (batch != 64 && (!fuse || compute != runtime::Compute::float32)) continue;
          plan::StateLayout state;
          const compile::Compiled step = train::compile_step(
              model.layers, nn::cross_entropy(), optim::sgd({.lr = 0.02f, .momentum = 0.9f}),
              {.name = "step",
               .batch = batch,
               .dataset = 1000,
               .image = model.image,
               .training = training,
               .how = {.shards = shards,
                       .lanes = lanes,
                       .at_once = at_once,
                       .fuse = fuse,
                       .kernels = {.compute = compute}}},
              &state);
          found << model.name << " batch=" << batch << " shards=" << shards << " lanes=" << lanes
                << (training ? "" : " inference") << (fuse ? "" : " unfused") << ' '
                << to_string(compute) << ": " << to_string(step.cut, step.at_once) << ", "
                << step.spec.plan.transient_bytes() << " + " << state.bytes() << " bytes, "
                << digest(step.spec) << '\n';
        }
      }
    }
  }
  expect_today("todays_steps." + kernels + ".txt", found.str());
}

/// The processor and the compiler: kernels are compiled for the one by the other, and what is
/// rounded where depends on both.
std::string machine() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, vendor, family;
  while (std::getline(in, line) && (vendor.empty() || family.empty())) {
    const auto value = line.substr(std::min(line.find(": ") + 2, line.size()));
    if (line.starts_with("vendor_id")) vendor = value;
    if (line.starts_with("cpu family")) family = value;
  }
  return vendor + " " + family + ", GCC " + __VERSION__;
}

TEST(Today, NetworksAreTrainedToTheBitsThatTheyWere) {
  const std::string kernels = kernels_in_use(), file = "todays_weights." + kernels + ".txt";
  if (kernels.empty()) GTEST_SKIP() << "bits are held of AVX-512 and AVX2 kernels";
  std::ostringstream found;
  found << machine() << '\n';
  const std::string held = without_comments(file);
  if (!held.empty() && !held.starts_with(found.str()))
    GTEST_SKIP() << "the bits held are not those of " << machine();
  for (const nn::NamedModel& model : nn::models()) {
    if (is_newer(model)) continue;
    const bool large = model.name == "vgg-small";
    const data::ImageData data =
        testing::drawn_images(model.name, {.train = large ? 40 : 150, .test = 20});
    for (const auto& [batch, lanes, workers] : {std::tuple{64, 0, 1},
                                                {64, 0, 2},
                                                {64, 1, 2},
                                                {64, 2, 2},
                                                {64, 4, 3},
                                                {10, 0, 2},
                                                {10, 3, 1}}) {
      if (large && batch == 64 && lanes != 0) continue;
      runtime::Session session({.workers = workers});
      train::Trainer trainer(session, model.layers, data.shape(),
                             {.batch = large ? std::min(batch, 16) : batch, .lanes = lanes});
      trainer.fit(data.train, {.epochs = 1, .validation = &data.test});
      found << model.name << " batch=" << batch << " lanes=" << lanes << " workers=" << workers
            << ": " << trainer.weights_sha256() << '\n';
    }
  }
  expect_today(file, found.str());
}

}  // namespace
}  // namespace arenite
