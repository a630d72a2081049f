// Updates by the gradients of several batches.
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include "src/base/sum_tree.hpp"
#include "src/model/plans.hpp"
#include "src/model/testing.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace arenite {
namespace {

using testing::error_of;
using testing::Floats;
using testing::named;

constexpr std::int64_t rows = 16, features = 24;

/// Of so many samples at most, and batches an update; `more` stands behind the hidden layer, $9.
std::string network(std::int64_t samples, int batches,
                    const std::string& more = "$10 = identity($9);",
                    const std::string& settings = "optimizer=adam, learning_rate=0.01") {
  return "$1 = InputTensor(x, float32, [rows<=" + std::to_string(samples) + R"(, 24]);
    $2 = InputTensor(label, int32, [rows]);
    $3 = ParameterTensor(w1, float32, [24, 40], uniform(-0.3, 0.3, seed=3));
    $4 = ParameterTensor(b1, float32, [40]);
    $5 = ParameterTensor(w2, float32, [40, 5], uniform(-0.3, 0.3, seed=4));
    $6 = ParameterTensor(b2, float32, [5]);
    $7 = BufferTensor(seen, float32, [1]);
    $8 = dense($1, $3, $4);
    $9 = relu($8);)" +
         more + R"(
    $11 = dense($10, $5, $6);
    $12, $13, $14 = softmax_cross_entropy($11, $2, divisor=rows);
    $15 = full(shape=[1], value=1);
    accumulate($7, $15);
    train($12, )" +
         settings + ", accumulate=" + std::to_string(batches) + R"();
    result = $12;)";
}

struct Batch {
  Floats x;
  std::vector<std::int32_t> label;

  std::vector<NamedBytes> inputs() const { return {named("x", x), named("label", label)}; }
};

Batch batch_of(std::int64_t samples, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Batch batch;
  for (std::int64_t i = 0; i < samples * features; ++i) batch.x.push_back(normal(random));
  for (std::int64_t i = 0; i < samples; ++i)
    batch.label.push_back(static_cast<std::int32_t>(random() % 5));
  return batch;
}

Batch joined(const std::vector<Batch>& batches) {
  Batch all;
  for (const Batch& one : batches) {
    all.x.insert(all.x.end(), one.x.begin(), one.x.end());
    all.label.insert(all.label.end(), one.label.begin(), one.label.end());
  }
  return all;
}

/// All but what waits and is counted of batches.
std::vector<std::pair<std::string, std::vector<std::byte>>> states(Model& model) {
  std::vector<std::pair<std::string, std::vector<std::byte>>> all;
  for (const StatePort& port : model.states()) {
    if (port.name.find(".gradient") != std::string::npos || port.name == "accumulated" ||
        port.name == "seen")
      continue;
    const auto bytes = model.state(port.name);
    all.emplace_back(port.name, std::vector(bytes.begin(), bytes.end()));
  }
  return all;
}

std::int64_t counted(Model& model, const char* name) {
  std::int64_t count = 0;
  std::memcpy(&count, model.state(name).data(), sizeof count);
  return count;
}

/// So many batches, the last of which updates.
void update(Model& model, const std::vector<Batch>& batches) {
  float loss = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto samples = static_cast<std::int64_t>(batches[i].label.size());
    model.run(i + 1 < batches.size() ? "accumulate" : "train", batches[i].inputs(),
              std::vector<void*>{&loss}, {{"rows", samples}});
  }
}

class Accumulation : public ::testing::Test {
 protected:
  Model compiled(const std::string& script, ModelOptions options = {.shards = 1, .lanes = 1}) {
    return {session, graph::parse(script, operators()), {}, options};
  }

  runtime::Session session{{.workers = 2}};
};

/// Sums by the tree of ranges, as `sum` makes them.
std::string sum_of(std::size_t from, std::size_t to) {
  if (to - from == 1) return std::to_string(from);
  const std::size_t middle = middle_of(from, to);
  return "(" + sum_of(from, middle) + "+" + sum_of(middle, to) + ")";
}

TEST(BatchOfUpdate, AddsInTheTreeOfShards) {
  for (int all = 1; all <= 64; ++all) {
    std::vector<std::string> waiting;
    for (int before = 0; before < all; ++before) {
      const bool is_last = before + 1 == all;
      const graph::BatchOfUpdate batch = graph::batch_of_update(all, before, is_last);
      ASSERT_EQ(batch.waiting, std::ssize(waiting));
      ASSERT_EQ(batch.batches, is_last ? all : 0);
      std::string sum = std::to_string(before);
      for (int i = 0; i < batch.added; ++i) {
        sum = "(" + waiting.back() + "+" + sum + ")";
        waiting.pop_back();
      }
      waiting.push_back(std::move(sum));
      ASSERT_LE(std::size_t{1} << (waiting.size() - 1), static_cast<std::size_t>(all));
    }
    EXPECT_EQ(waiting, std::vector{sum_of(0, static_cast<std::size_t>(all))});
  }
  EXPECT_EQ(graph::batch_of_update(8, 5, true).added, graph::batch_of_update(8, 5, true).waiting);
}

TEST_F(Accumulation, EndsInTheBitsOfOneBatchInShards) {
  const std::vector<std::string> layers{"$10 = identity($9);", "$10 = dropout($9, rate=0.3);"};
  const std::vector<std::string> settings{
      "optimizer=sgd, learning_rate=0.1, momentum=0.9",
      "optimizer=adam, learning_rate=0.01, schedule=cosine(steps=9), average(decay=0.5)",
      "optimizer=adamw, learning_rate=0.01, clip_value=0.01, clip_norm=0.1, check_loss=0"};
  for (const int batches : {2, 4, 8}) {
    for (const std::string& layer : layers) {
      for (const std::string& setting : settings) {
        Model parts = compiled(network(rows, batches, layer, setting));
        Model whole = compiled(network(rows * batches, 1, layer, setting),
                               {.shards = batches, .shards_at_once = 1});
        for (unsigned step = 0; step < 3; ++step) {
          std::vector<Batch> given;
          for (int i = 0; i < batches; ++i)
            given.push_back(batch_of(rows, 100 * step + static_cast<unsigned>(i)));
          update(parts, given);
          update(whole, {joined(given)});
        }
        EXPECT_EQ(states(parts), states(whole)) << batches << " " << layer << " " << setting;
        EXPECT_EQ(counted(parts, "accumulated"), 0);
        EXPECT_EQ(parts.runs("accumulate"), 3 * (batches - 1));
        EXPECT_EQ(parts.train_steps(), 3);
      }
    }
  }
}

TEST_F(Accumulation, IsOfAsManyBatchesAsThereWereByTheUpdate) {
  Model four = compiled(network(rows, 4)), two = compiled(network(rows, 2)),
        one = compiled(network(rows, 1));
  const std::vector<Batch> given{batch_of(rows, 1), batch_of(rows, 2)};
  update(four, given);
  update(two, given);
  EXPECT_EQ(states(four), states(two));
  for (Model* model : {&four, &two, &one}) {
    for (const StatePort& port : one.states()) model->set_state(port.name, one.state(port.name));
    update(*model, {given[1]});
  }
  EXPECT_EQ(states(four), states(one));
  EXPECT_EQ(states(two), states(one));
}

TEST_F(Accumulation, KeepsWhatElsePersistsWithEachBatch) {
  Model model = compiled(network(rows, 4));
  update(model, {batch_of(rows, 1), batch_of(5, 2), batch_of(rows, 3)});
  float seen = 0;
  std::memcpy(&seen, model.state("seen").data(), sizeof seen);
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(counted(model, "step"), 1);
}

TEST_F(Accumulation, OfABatchThatFailsIsAsIfItHadNotBeen) {
  Model model = compiled(network(rows, 4)), other = compiled(network(rows, 4));
  Batch bad = batch_of(rows, 9);
  bad.x[7] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Batch> given{batch_of(rows, 1), batch_of(rows, 2), batch_of(rows, 3),
                                 batch_of(rows, 4)};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NE(error_of([&] { model.accumulate(bad.inputs(), {}); }), "(no error)");
    EXPECT_EQ(counted(model, "accumulated"), static_cast<std::int64_t>(i));
    model.accumulate(given[i].inputs(), {});
    other.accumulate(given[i].inputs(), {});
  }
  EXPECT_NE(error_of([&] { model.train_step(bad.inputs(), {}); }), "(no error)");
  update(model, {given[3]});
  update(other, {given[3]});
  EXPECT_EQ(states(model), states(other));
}

TEST_F(Accumulation, GoesOnWhereItWasSaved) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("accumulation." + std::to_string(getpid()) + ".safetensors");
  const std::vector<Batch> given{batch_of(rows, 1), batch_of(rows, 2), batch_of(rows, 3)};
  Model model = compiled(network(rows, 3)), other = compiled(network(rows, 3));
  model.accumulate(given[0].inputs(), {});
  model.accumulate(given[1].inputs(), {});
  model.save(path);
  other.load(path);
  std::filesystem::remove(path);
  EXPECT_EQ(counted(other, "accumulated"), 2);
  update(model, {given[2]});
  update(other, {given[2]});
  EXPECT_EQ(states(model), states(other));
}

/// Where nothing waits a file is one of any model of the network.
TEST_F(Accumulation, MayChangeWhereNothingWaits) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("accumulation." + std::to_string(getpid()) + ".safetensors");
  Model three = compiled(network(rows, 3)), four = compiled(network(rows, 4)),
        one = compiled(network(rows, 1));
  update(three, {batch_of(rows, 1), batch_of(rows, 2), batch_of(rows, 3)});
  three.save(path);
  for (Model* other : {&four, &one}) {
    other->load(path);
    EXPECT_EQ(states(*other), states(three));
  }
  one.save(path);
  three.accumulate(batch_of(rows, 4).inputs(), {});
  three.load(path);
  EXPECT_EQ(counted(three, "accumulated"), 0);
  three.accumulate(batch_of(rows, 4).inputs(), {});
  three.save(path);
  // Of four other sums wait, under the same names.
  const auto refusal = [&](Model& other) { return error_of([&] { other.load(path); }); };
  const std::string found =
      path.string() + ": gradients that wait for an update by 3 batches; expected those of one by ";
  EXPECT_EQ(refusal(one), found + "1, or none (hint: save behind an update)");
  EXPECT_EQ(refusal(four), found + "4, or none (hint: save behind an update)");
  std::filesystem::remove(path);
}

/// What is the graph's own is no count of batches.
TEST_F(Accumulation, KnowsABufferOfThatName) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("accumulation." + std::to_string(getpid()) + ".safetensors");
  for (const char* most : {"1", "2"}) {
    Model model = compiled(R"(
      $1 = InputTensor(x, float32, [4]);
      $2 = ParameterTensor(w, float32, [4]);
      $3 = BufferTensor(accumulated, int64, [2]);
      $4 = mul($1, $2);
      $5 = reduce($4, axes=[0]) { sum($1) };
      train($5, optimizer=sgd, learning_rate=0.5, accumulate=)" +
                           std::string(most) + R"();
      result = $5, $3;)");
    const std::int64_t own[]{7, 9};
    model.set_state("accumulated", std::as_bytes(std::span(own)));
    model.save(path);
    model.load(path);
    EXPECT_EQ(std::memcmp(model.state("accumulated").data(), own, sizeof own), 0);
  }
  std::filesystem::remove(path);
}

/// Though their estimates differ by the update.
TEST_F(Accumulation, CutsAllBatchesOfAnUpdateAlike) {
  const graph::Graph graph = graph::parse(network(512, 4), operators());
  compile::Options how;
  const auto work = [&](const graph::BatchOfUpdate& part) {
    const compile::Compiled made = compile::lower(
        graph, {.name = "step", .train = true, .part = part}, {.shards = 1, .lanes = 1});
    return graph::estimate(made.spec.graph, how.target);
  };
  const double last = work(graph::batch_of_update(4, 3, true)),
               first = work(graph::batch_of_update(4, 0, false));
  ASSERT_LT(first, last);
  how.target.two_lanes_microseconds = how.target.four_shards_microseconds = (first + last) / 2;
  ModelPlans plans(graph, "model", how);
  const auto smaller = [&](const Way& way) {
    return plans.smaller(way, {{"rows", 500}}).program.cut;
  };
  std::optional<graph::BatchCut> cut;
  for (const Way& way : plans.ways()) {
    if (way.entry > 1) continue;
    if (!way.is_rare) {
      EXPECT_EQ(plans.largest(way).cut.shards, 4) << way.name;
    }
    if (!cut) cut = smaller(way);
    EXPECT_EQ(smaller(way), *cut) << way.name;
  }
}

/// Of the graph's own, whatever their names.
TEST_F(Accumulation, HasProgramsThatNoEntryIsTakenFor) {
  Model model = compiled(R"(
    $1 = InputTensor(x, float32, [4]);
    $2 = ParameterTensor(w, float32, [4]);
    $3 = mul($1, $2);
    $4 = reduce($3, axes=[0]) { sum($1) };
    train($4, optimizer=sgd, learning_rate=0.5, accumulate=3);
    entry "accumulate.2" = $3;
    entry "train.1" = $1;
    result = $4;)");
  const Floats x{1, 2, 3, 4};
  const std::vector<NamedBytes> inputs{named("x", x)};
  Floats found(4);
  model.accumulate(inputs, {});
  model.run("accumulate.2", inputs, std::vector<void*>{found.data()});
  EXPECT_EQ(found, Floats(4));
  model.run("train.1", inputs, std::vector<void*>{found.data()});
  EXPECT_EQ(found, x);
  model.train_step(inputs, {});
  std::memcpy(found.data(), model.state("w").data(), sizeof(float) * 4);
  EXPECT_EQ(found, (Floats{-0.5f, -1, -1.5f, -2}));
  model.train_step(inputs, {});
}

TEST_F(Accumulation, SaysWhatIsTooMuch) {
  Model model = compiled(network(rows, 2));
  const Batch batch = batch_of(rows, 1);
  EXPECT_EQ(model.entries(), (std::vector<std::string>{"train", "accumulate", "evaluate"}));
  model.accumulate(batch.inputs(), {});
  EXPECT_EQ(error_of([&] { model.accumulate(batch.inputs(), {}); }),
            "one more batch to accumulate, behind 1; expected an update by a step of training, as "
            "it takes 2 batches");
  Model plain = compiled(network(rows, 1));
  EXPECT_EQ(error_of([&] { plain.accumulate(batch.inputs(), {}); }),
            "a batch to accumulate, where each has an update of its own; expected a step of "
            "training (hint: train(…, accumulate=4) lets one update take up to 4)");
  const std::string expected =
      "'accumulated' of 2 batches of an update by 2; expected 0 to 1 of one by 2";
  const std::int64_t too_many[]{2, 2};
  EXPECT_EQ(error_of([&] { model.set_state("accumulated", std::as_bytes(std::span(too_many))); }),
            expected);
  std::memcpy(model.state("accumulated").data(), too_many, sizeof too_many);
  EXPECT_EQ(error_of([&] { model.train_step(batch.inputs(), {}); }), expected);
  const std::int64_t others[][2]{{1, 1}, {100, 1}, {-1, 2}, {0, 0}};
  for (const auto& damaged : others) {
    std::memcpy(model.state("accumulated").data(), damaged, sizeof damaged);
    EXPECT_NE(error_of([&] { model.train_step(batch.inputs(), {}); }), "(no error)");
  }
  for (const int count : {0, 65}) {
    EXPECT_NE(error_of([&] { compiled(network(rows, count)); }), "(no error)");
  }
}

}  // namespace
}  // namespace arenite
