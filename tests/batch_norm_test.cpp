// Batch normalisation as training and evaluations run it: in any lanes it is what its definition
// says, computed here in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/base/testing.hpp"
#include "src/compile/compile.hpp"
#include "tests/script_in_modes.hpp"

namespace arenite {
namespace {

using testing::Floats;
using testing::random_floats;
using testing::ScriptModel;
using Doubles = std::vector<double>;

constexpr std::size_t rows = 400, inputs = 32, channels = 3;
constexpr double momentum = 0.3, eps = 1e-3;

constexpr const char* normalising = R"(
  $1 = InputTensor(x, float32, [400, 32]);
  $2 = ParameterTensor(weight, float32, [32, 3]);
  $5 = dense($1, $2);
  $6 = BufferTensor(mean, float32, [3]);
  $7 = BufferTensor(variance, float32, [3]);
  $8 = ParameterTensor(gain, float32, [3]);
  $9 = ParameterTensor(offset, float32, [3]);
  $10, $11, $12 = batch_norm($5, $6, $7, $8, $9, momentum=0.3, eps=1e-3);
  $13 = InputTensor(target, float32, [400, 3]);
  $14 = reduce($10, $13, axes=[0, 1]) { sum($1 * $2 + 0.1 * $1 * $1) };
  train($14, optimizer=sgd, learning_rate=1, parameters=[$2, $8, $9]);
  result = $14, $10;)";

/// The same in double.
struct Reference {
  Doubles weight, gain, offset;
  std::size_t rows = arenite::rows;
  Doubles mean = Doubles(channels), variance = Doubles(channels), y = Doubles(rows * channels);

  /// Returns the loss; with the batch's statistics, or with those given.
  double run(const Floats& x, const Floats& target, const Doubles* means = nullptr,
             const Doubles* variances = nullptr) {
    double loss = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      Doubles z(rows);
      for (std::size_t n = 0; n < rows; ++n) {
        for (std::size_t k = 0; k < inputs; ++k)
          z[n] += static_cast<double>(x[n * inputs + k]) * weight[k * channels + c];
      }
      mean[c] = variance[c] = 0;
      const auto count = static_cast<double>(rows);
      for (const double v : z) mean[c] += v / count;
      for (const double v : z) variance[c] += (v - mean[c]) * (v - mean[c]) / count;
      const double m = means ? (*means)[c] : mean[c], v = variances ? (*variances)[c] : variance[c];
      for (std::size_t n = 0; n < rows; ++n) {
        const double made = (z[n] - m) / std::sqrt(v + eps) * gain[c] + offset[c];
        y[n * channels + c] = made;
        loss += made * static_cast<double>(target[n * channels + c]) + 0.1 * made * made;
      }
    }
    return loss;
  }

  /// By central differences, of each element of one of the three.
  Doubles slopes(Doubles& of, const Floats& x, const Floats& target) {
    Doubles all;
    for (double& v : of) {
      const double middle = v, h = 1e-5;
      v = middle + h;
      const double above = run(x, target);
      v = middle - h;
      const double below = run(x, target);
      v = middle;
      all.push_back((above - below) / (2 * h));
    }
    return all;
  }
};

void expect_near(const Floats& found, const Doubles& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double size = 1;
  for (const double v : expected) size = std::max(size, std::fabs(v));
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(static_cast<double>(found[i]), expected[i], tolerance * size) << what << " " << i;
}

Doubles widened(const Floats& values) { return {values.begin(), values.end()}; }

TEST(BatchNorm, IsOneOfTheWholeBatchInAnyLanes) {
  const Floats x = random_floats(rows * inputs, 1, 2), target = random_floats(rows * channels, 2);
  const Floats weight = random_floats(inputs * channels, 3), gain{0.5f, 2.0f, -1.0f},
               offset{0.25f, 0.0f, -3.0f}, mean{0.0f, 1.0f, -1.0f}, variance{1.0f, 2.0f, 0.5f};
  Reference reference{widened(weight), widened(gain), widened(offset)};
  runtime::Session session({.workers = 2});
  for (const int lanes : {1, 2, 3, 4}) {
    const std::string where = std::to_string(lanes) + " lanes";
    ScriptModel run(session, normalising,
                    {{"weight", weight},
                     {"gain", gain},
                     {"offset", offset},
                     {"mean", mean},
                     {"variance", variance}},
                    {.lanes = lanes});
    const compile::Compiled step = compile::lower(
        graph::parse(normalising, operators()), {.name = "step", .train = true}, {.lanes = lanes});
    EXPECT_EQ(step.cut.lanes, lanes);
    // By the running statistics, which stay.
    const Doubles running = widened(mean), spread = widened(variance);
    reference.run(x, target, &running, &spread);
    expect_near(run.evaluate({{"x", x}, {"target", target}}).at(1), reference.y, 1e-5, where);
    EXPECT_EQ(run.state("mean"), mean);
    EXPECT_EQ(run.state("variance"), variance);

    const double loss = reference.run(x, target);
    const Doubles y = reference.y, found_mean = reference.mean, found_variance = reference.variance;
    const std::vector<Floats> outputs = run.train({{"x", x}, {"target", target}});
    expect_near(outputs.at(0), {loss}, 1e-5, where);
    expect_near(outputs.at(1), y, 1e-5, where);
    Doubles next_mean, next_variance;
    for (std::size_t c = 0; c < channels; ++c) {
      next_mean.push_back((1 - momentum) * running[c] + momentum * found_mean[c]);
      next_variance.push_back((1 - momentum) * spread[c] +
                              momentum * found_variance[c] * rows / (rows - 1));
    }
    expect_near(run.state("mean"), next_mean, 1e-6, where + ", mean");
    expect_near(run.state("variance"), next_variance, 1e-6, where + ", variance");
    // A step of rate 1 takes away the gradient.
    const auto expect_step = [&](const char* name, const Floats& first, Doubles& of) {
      const Doubles slopes = reference.slopes(of, x, target);
      Doubles expected;
      for (std::size_t i = 0; i < first.size(); ++i)
        expected.push_back(static_cast<double>(first[i]) - slopes[i]);
      expect_near(run.state(name), expected, 2e-5, where + ", " + name);
    };
    expect_step("weight", weight, reference.weight);
    expect_step("gain", gain, reference.gain);
    expect_step("offset", offset, reference.offset);
  }
}

/// What each shard makes of its samples, put together.
TEST(BatchNorm, IsOfAShardWhereItIsToldTo) {
  std::string script = normalising;
  script.replace(script.find("momentum=0.3"), 12, "per_shard=1, momentum=0.3");
  const Floats x = random_floats(rows * inputs, 1, 2), target = random_floats(rows * channels, 2);
  const Floats weight = random_floats(inputs * channels, 3), gain{0.5f, 2.0f, -1.0f},
               offset{0.25f, 0.0f, -3.0f}, mean{0.0f, 1.0f, -1.0f}, variance{1.0f, 2.0f, 0.5f};
  const std::map<std::string, Floats> first{{"weight", weight},
                                            {"gain", gain},
                                            {"offset", offset},
                                            {"mean", mean},
                                            {"variance", variance}};
  for (const int shards : {1, 3, 4}) {
    const std::string where = std::to_string(shards) + " shards";
    double loss = 0;
    Doubles y, next_mean(channels), next_variance(channels), next_weight = widened(weight);
    for (const graph::LaneRows& shard : graph::lane_rows(rows, {.shards = shards})) {
      const auto begin = static_cast<std::size_t>(shard.begin),
                 end = begin + static_cast<std::size_t>(shard.count);
      const auto part = [&](const Floats& of, std::size_t width) {
        return Floats(of.begin() + static_cast<std::ptrdiff_t>(begin * width),
                      of.begin() + static_cast<std::ptrdiff_t>(end * width));
      };
      const Floats own = part(x, inputs), own_target = part(target, channels);
      Reference reference{widened(weight), widened(gain), widened(offset), end - begin};
      loss += reference.run(own, own_target);
      y.insert(y.end(), reference.y.begin(), reference.y.end());
      const auto n = static_cast<double>(end - begin), share = n / rows;
      for (std::size_t c = 0; c < channels; ++c) {
        next_mean[c] +=
            share * ((1 - momentum) * static_cast<double>(mean[c]) + momentum * reference.mean[c]);
        next_variance[c] += share * ((1 - momentum) * static_cast<double>(variance[c]) +
                                     momentum * reference.variance[c] * n / (n - 1));
      }
      const Doubles slopes = reference.slopes(reference.weight, own, own_target);
      for (std::size_t i = 0; i < slopes.size(); ++i) next_weight[i] -= slopes[i];
    }
    std::vector<Floats> known;
    for (const int workers : {1, 2}) {
      for (const int at_once : {1, shards}) {
        runtime::Session session({.workers = workers});
        ScriptModel run(session, script, first, {.shards = shards, .shards_at_once = at_once});
        std::vector<Floats> found = run.train({{"x", x}, {"target", target}});
        expect_near(found.at(0), {loss}, 1e-5, where);
        expect_near(found.at(1), y, 1e-5, where);
        for (const char* name : {"mean", "variance", "weight"}) found.push_back(run.state(name));
        expect_near(found[2], next_mean, 1e-6, where + ", mean");
        expect_near(found[3], next_variance, 1e-6, where + ", variance");
        expect_near(found[4], next_weight, 2e-5, where + ", weight");
        if (known.empty()) known = found;
        EXPECT_EQ(found, known) << where;
      }
    }
  }
}

TEST(BatchNorm, OfAShardTakesOneLaneAndTwoSamples) {
  std::string script = normalising;
  script.replace(script.find("momentum=0.3"), 12, "per_shard=1, momentum=0.3");
  const graph::Graph graph = graph::parse(script, operators());
  const compile::Compiled step = compile::lower(graph, {.name = "step", .train = true},
                                                {.shards = 2, .lanes = 2, .remarks = true});
  EXPECT_EQ(step.cut, (graph::BatchCut{.shards = 2, .lanes = 1}));
  const auto pass =
      std::ranges::find(step.report.passes, "split_batch", &compile::PassReport::name);
  ASSERT_FALSE(pass->remarks.left.empty());
  EXPECT_EQ(pass->remarks.left.back().why, "it sees all of its shard, which has one lane then");
  // In one shard it is of the whole batch, in any lanes.
  const compile::Compiled lanes =
      compile::lower(graph, {.name = "step", .train = true}, {.shards = 1, .lanes = 2});
  EXPECT_EQ(lanes.cut, (graph::BatchCut{.shards = 1, .lanes = 2}));

  // Beside one of the whole batch shards cannot be.
  std::string both = script;
  const std::string more = R"(
  $18 = BufferTensor(another_mean, float32, [3]);
  $19 = BufferTensor(another_variance, float32, [3]);
  $15, $16, $17 = batch_norm($10, $18, $19);
  $13 = InputTensor)";
  both.replace(both.find("\n  $13 = InputTensor"), 20, more);
  both.replace(both.find("reduce($10, "), 12, "reduce($15, ");
  const std::string refused = testing::error_of([&] {
    compile::lower(graph::parse(both, operators()), {.name = "step", .train = true}, {.shards = 2});
  });
  EXPECT_TRUE(refused.starts_with("program 'step': batch_norm #1 of each of 2 shards, where "))
      << refused;

  const auto replace_all = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = script.find(from); at != std::string::npos; at = script.find(from))
      script.replace(at, from.size(), to);
  };
  replace_all("[400", "[3");
  replace_all("32]", "4096]");
  replace_all("[32,", "[4096,");
  EXPECT_EQ(testing::error_of([&] {
              compile::lower(graph::parse(script, operators()), {.name = "step", .train = true},
                             {.shards = 2});
            }),
            "batch_norm_of_shard #1: 1 of each channel in a shard of training; expected 2 or more, "
            "of which there is a variance (hint: fewer shards, or another batch size, so that the "
            "last batch has more)");
}

/// x is normalised as it is given.
std::string normalising_inputs(int samples) {
  return "$1 = InputTensor(x, float32, [" + std::to_string(samples) + R"(, 2]);
  $2 = BufferTensor(mean, float32, [2]);
  $3 = BufferTensor(variance, float32, [2]);
  $4 = ParameterTensor(gain, float32, [2]);
  $5, $6, $7 = batch_norm($1, $2, $3, $4, momentum=1);
  $8 = reduce($5, axes=[0, 1]) { sum($1 * $1) };
  train($8, optimizer=sgd, learning_rate=0, parameters=[$4]);
  result = $5;)";
}

TEST(BatchNorm, KeepsTheDigitsOfASmallVarianceAroundALargeMean) {
  constexpr std::size_t samples = 5000;
  const Floats x = random_floats(samples * 2, 4, 1e4);
  runtime::Session session({.workers = 2});
  for (const int lanes : {1, 3}) {
    ScriptModel run(session, normalising_inputs(samples), {{"gain", {1, 1}}}, {.lanes = lanes});
    const Floats y = run.train({{"x", x}}).front();
    for (std::size_t c = 0; c < 2; ++c) {
      double mean = 0, variance = 0;
      for (std::size_t n = 0; n < samples; ++n) mean += static_cast<double>(x[n * 2 + c]) / samples;
      for (std::size_t n = 0; n < samples; ++n)
        variance += std::pow(static_cast<double>(x[n * 2 + c]) - mean, 2) / samples;
      EXPECT_NEAR(
          static_cast<double>(run.state("variance")[c]) / (variance * samples / (samples - 1)), 1,
          1e-6);
      for (std::size_t n = 0; n < samples; n += 97) {
        EXPECT_NEAR(static_cast<double>(y[n * 2 + c]),
                    (static_cast<double>(x[n * 2 + c]) - mean) / std::sqrt(variance + 1e-5), 1e-5);
      }
    }
  }
}

TEST(BatchNorm, HoldsForSizesThatOnlyARunKnows) {
  std::string script = normalising_inputs(64);
  script.replace(script.find("[64, 2]"), 7, "[rows<=64, 2]");
  runtime::Session session({.workers = 1});
  const std::size_t samples = 10;
  const Floats x = random_floats(samples * 2, 5);
  ScriptModel run(session, script, {{"gain", {1, 1}}}, {.sizes = {{"rows", samples}}});
  ScriptModel plain(session, normalising_inputs(samples), {{"gain", {1, 1}}});
  EXPECT_EQ(run.train({{"x", x}}), plain.train({{"x", x}}));
  EXPECT_EQ(run.state("variance"), plain.state("variance"));
}

TEST(BatchNorm, HasLanesOfOneShardAndSaysSo) {
  const compile::Compiled step =
      compile::lower(graph::parse(normalising, operators()), {.name = "step", .train = true},
                     {.shards = 2, .lanes = 2, .remarks = true});
  EXPECT_EQ(step.cut, (graph::BatchCut{.shards = 1, .lanes = 4}));
  const auto pass =
      std::ranges::find(step.report.passes, "split_batch", &compile::PassReport::name);
  ASSERT_FALSE(pass->remarks.left.empty());
  EXPECT_EQ(pass->remarks.left.back().what, "the batch");
  EXPECT_TRUE(pass->remarks.left.back().why.starts_with("one shard instead of 2: "))
      << pass->remarks.left.back().why;
  // What an evaluation normalises by is there before.
  const compile::Compiled evaluation =
      compile::lower(graph::parse(normalising, operators()), {.name = "all"}, {.shards = 2});
  EXPECT_EQ(evaluation.cut.shards, 2);
}

}  // namespace
}  // namespace arenite
