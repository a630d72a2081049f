// Gradients through blocks: random networks of `if`s and loops in each other, computed in double
// from the graph that the rules make, against central differences; then as programs, against the
// same.
#include <arenite/arenite.hpp>
#include <arenite/graph/regions.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"
#include "tests/random_block_network.hpp"
#include "tests/reference/differences.hpp"

#include <random>

namespace arenite {
namespace {

using graph::Graph;
using graph::RegionId;
using graph::StorageClass;
using graph::ValueId;
using reference::Evaluator;
using testing::draw;
using testing::Inputs;
using testing::RandomNetwork;

void set(Evaluator& evaluator, const Inputs& inputs) {
  for (const auto& [name, data] : inputs) evaluator[name].data = data;
}

TEST(BlockGradients, AreTheSlopesOfTheLoss) {
  std::mt19937 random(1);
  const unsigned networks = testing::fewer_where_slow(120U);
  int compared = 0, kinks = 0, branches = 0, loops = 0, deepest = 0;
  for (unsigned seed = 0; seed < networks; ++seed) {
    const RandomNetwork network(seed);
    branches += network.branches;
    loops += network.loops;
    deepest = std::max(deepest, network.deepest);
    Evaluator forward(network.forward), backward(network.graph);
    for (int round = 0; round < 4; ++round) {
      const Inputs inputs = draw(network.forward, random);
      set(forward, inputs);
      set(backward, inputs);
      forward.run();
      backward.run();
      EXPECT_EQ(backward[network.loss].data, forward[network.loss].data);
      for (std::size_t i = 0; i < network.wrt.size(); ++i) {
        const ValueId v = network.wrt[i], gradient = network.gradients[i];
        for (std::int64_t e = 0; e < forward[v].shape.elements(); ++e) {
          forward.run();
          const auto slope = reference::central_difference(
              forward, v, {{e, 1.0}}, 1e-5, [&] { return forward[network.loss][0]; });
          slope ? ++compared : ++kinks;
          if (!slope) continue;
          ASSERT_NEAR(*slope, gradient ? backward[gradient][e] : 0,
                      1e-7 * std::max(1.0, std::abs(*slope)))
              << "seed " << seed << ", " << network.forward[v].name << "[" << e << "]\n"
              << print(network.graph);
        }
      }
    }
  }
  EXPECT_GT(compared, 200 * static_cast<int>(networks));
  EXPECT_LT(kinks, compared / 20);
  EXPECT_GT(branches, static_cast<int>(networks));
  EXPECT_GT(loops, static_cast<int>(networks) / 2);
  EXPECT_GE(deepest, 3);
}

/// Of a script's result, for conditions c and d, x and w; `$5` are labels.
void compare(const std::string& rest) {
  Graph graph = graph::parse(R"($1 = InputTensor(c, int32, [1]); $2 = InputTensor(d, int32, [1]);
                                $3 = InputTensor(x, float32, [3, 4]);
                                $4 = ParameterTensor(w, float32, [4, 4]);
                                $5 = InputTensor(labels, int32, [3]);)" +
                                 rest,
                             operators());
  const Graph forward = graph;
  const ValueId loss = graph.outputs.front();
  const std::vector<ValueId> wrt{graph.find("x"), graph.find("w")};
  graph::Builder builder(graph, operators());
  const std::vector<ValueId> gradients = add_gradients(builder, {loss}, wrt);
  Evaluator slopes(forward), rules(graph);
  std::mt19937 random(3);
  for (int round = 0; round < 4; ++round) {
    Inputs inputs = draw(forward, random);
    inputs["c"] = {static_cast<double>(round % 2)};
    inputs["d"] = {static_cast<double>(round / 2)};
    set(slopes, inputs);
    set(rules, inputs);
    rules.run();
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      for (std::int64_t e = 0; e < rules[wrt[i]].shape.elements(); ++e) {
        slopes.run();
        const auto slope = reference::central_difference(slopes, wrt[i], {{e, 1.0}}, 1e-5,
                                                         [&] { return slopes[loss][0]; });
        if (!slope) continue;
        ASSERT_NEAR(*slope, gradients[i] ? rules[gradients[i]][e] : 0, 1e-7)
            << "round " << round << ", [" << e << "]\n"
            << print(graph);
      }
    }
  }
}

std::string loss_of(const std::string& value) {
  return " $90, $91, $92 = softmax_cross_entropy(" + value + ", $5, divisor=3); result = $90;";
}

TEST(BlockGradients, OfLossesThatBlocksYield) {
  compare(R"($10 = if($1) { $11 = dense($3, $4);
                            $12, $13, $14 = softmax_cross_entropy($11, $5, divisor=3); yield $12; }
                   else { $21 = relu($3); $15 = dense($21, $4);
                          $16, $17, $18 = softmax_cross_entropy($15, $5, divisor=3); yield $16; }
             result = $10;)");
  compare(R"($10 = if($1) { $20 = if($2) { $11 = dense($3, $4);
                              $12, $13, $14 = softmax_cross_entropy($11, $5, divisor=3); yield $12; }
                            else { $16, $17, $18 = softmax_cross_entropy($3, $5, divisor=3);
                                   yield $16; }
                            yield $20; }
                   else { $31, $32, $33 = softmax_cross_entropy($3, $5, divisor=1); yield $31; }
             result = $10;)");
  try {
    compare(
        "$10 = dense($3, $4); $11, $12, $13 = softmax_cross_entropy($10, $5, divisor=3); "
        "$14 = if($1) { yield $11; } else { yield $11; } result = $14;");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a loss that a block takes from outside"),
              std::string::npos)
        << error.what();
  }
}

TEST(BlockGradients, OfLossesThatLoopsCarry) {
  const std::string body = R"(($20, $21, $22) {
      $23 = dense($22, $4); $24 = relu($23);
      $25, $26, $27 = softmax_cross_entropy($23, $5, divisor=3);
      $28 = sum($21, $25); yield $28, $24; })";
  compare("$9 = full(shape=[1]); $10, $11 = loop(_, _, $9, $3, max_trips=3) " + body +
          " result = $10;");
  // In a block, and what the loop leaves is read as well.
  compare("$9 = full(shape=[1]); $80 = if($1) { $10, $11 = loop(_, _, $9, $3, max_trips=3) " +
          body +
          "$12, $13, $14 = softmax_cross_entropy($11, $5, divisor=3); $15 = sum($10, $12); "
          "yield $15; } else { yield $9; } " +
          "$90 = sum($80, $80); result = $90;");
}

// Beside the loss a loop carries what has no gradient.
TEST(BlockGradients, OfLossesThatLoopsCarryBesideStatistics) {
  compare(R"($8 = full(shape=[2], type="float64"); $9 = full(shape=[1]);
             $10, $11, $12 = loop(_, _, $9, $8, $3, max_trips=3) ($20, $21, $19, $22) {
               $23 = dense($22, $4); $24 = relu($23);
               $25, $26, $27 = softmax_cross_entropy($23, $5, divisor=3);
               $28 = sum($21, $25); $29 = sum($19, $26); yield $28, $29, $24; }
             result = $10;)");
}

// What adds losses up knows nothing of being one.
TEST(BlockGradients, OfSumsOfLosses) {
  compare(
      "$9 = dense($3, $4); $10, $11, $12 = softmax_cross_entropy($9, $5, divisor=3); "
      "$13, $14, $15 = softmax_cross_entropy($3, $5, divisor=3); $16 = sum($10, $13); "
      "result = $16;");
}

/// What add_gradients says of a script whose results are the losses.
std::string refusal(const std::string& rest) {
  Graph graph = graph::parse(
      "$1 = InputTensor(c, int32, [1]); $3 = InputTensor(x, float32, [3, 4]); "
      "$4 = InputTensor(labels, int32, [3]);" +
          rest,
      operators());
  graph::Builder builder(graph, operators());
  const std::vector<ValueId> losses = graph.outputs;
  try {
    add_gradients(builder, losses, graph.declared(StorageClass::input));
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(BlockGradients, RefuseLossesGivenTwice) {
  const std::string loss = "$5, $6, $7 = softmax_cross_entropy($3, $4, divisor=3); ";
  EXPECT_EQ(refusal(loss + "result = $5, $5;"),
            "gradients: a loss given twice, 'softmax_cross_entropy.loss'; expected each loss once "
            "(hint: its double is the sum of it and itself)");
  EXPECT_EQ(refusal("$8, $9 = if($1) { " + loss + "yield $5, $5; } else { " +
                    "$15, $16, $17 = softmax_cross_entropy($3, $4, divisor=3); yield $15, $15; } " +
                    "result = $8, $9;"),
            refusal(loss + "result = $5, $5;"));
}

TEST(BlockGradients, RefuseMoreTripsThanCanBeSaved) {
  EXPECT_EQ(refusal("$10 = InputTensor(y, float32, [1, 262144]); $11 = InputTensor(k, int32, [1]); "
                    "$12 = loop(_, _, $10, max_trips=2147483648) ($13, $14) { $15 = relu($14); "
                    "yield $15; } $16, $17, $18 = softmax_cross_entropy($12, $11, divisor=1); "
                    "result = $16;"),
            "loop #1: 'relu' of shape [1, 262144], saved in each of 2147483648 trips; expected at "
            "most 2^48 elements in all (hint: give the loop a smaller max_trips)");
}

// A value of one side that a loop in a later block of that side reads, and one that a block in a
// loop leaves for a later one in the same trip.
TEST(BlockGradients, OfWhatLoopsFindOfOneSide) {
  compare(R"($10, $11 = if($1) { $12 = dense($3, $4); $13 = relu($12); yield $12, $13; }
                         else { yield $3, _; }
             $20 = if($1) { $21 = loop(_, _, $10, max_trips=2) ($22, $23) {
                              $24 = sum($23, $11); $25 = dense($24, $4); yield $25; }
                            yield $21; }
                   else { yield $10; })" +
          loss_of("$20"));
  compare(R"($10 = loop(_, _, $3, max_trips=3) ($11, $12) {
               $13, $14 = if($1) { $15 = dense($12, $4); $16 = relu($15); yield $15, $16; }
                              else { yield $12, _; }
               $17 = if($1) { $18 = sum($13, $14); yield $18; } else { yield $13; }
               yield $17; })" +
          loss_of("$10"));
}

TEST(BlockGradients, OfWhatOneSideSaved) {
  const std::string partial =
      "$10, $30 = if($1) { $11 = dense($3, $4); yield $11, $3; } "
      "else { yield _, $3; } ";
  // Read on the same side of the same condition, there within another one on either side of it.
  compare(partial +
          "$12 = if($1) { $14 = dense($10, $4); yield $14; } else { yield $3; } "
          "$15 = if($1) { $16 = relu($10); yield $16; } else { yield $12; } "
          "$40 = sum($12, $30, $15);" +
          loss_of("$40"));
  compare(partial +
          "$12 = if($1) { $13 = if($2) { $14 = dense($10, $4); yield $14; } "
          "else { yield $3; } yield $13; } else { yield $3; } $40 = sum($12, $30);" +
          loss_of("$40"));
  compare(partial +
          "$12 = if($1) { $13 = if($2) { yield $3; } else { $14 = dense($10, $4); "
          "yield $14; } yield $13; } else { yield $3; } $40 = sum($12, $30);" +
          loss_of("$40"));
  // The later block on the condition stands in another one, or in a loop.
  compare(partial +
          "$12 = if($2) { $13 = if($1) { $14 = dense($10, $4); yield $14; } else { yield $3; } "
          "yield $13; } else { yield $3; } $40 = sum($12, $30);" +
          loss_of("$40"));
  compare(partial +
          "$12 = loop(_, _, $3, max_trips=3) ($20, $21) { $13 = if($1) { $14 = dense($10, $4); "
          "$15 = sum($14, $21); yield $15; } else { yield $21; } yield $13; } "
          "$40 = sum($12, $30);" +
          loss_of("$40"));
  // All of it within a block.
  compare("$80 = if($2) { " + partial +
          "$12 = if($1) { $14 = dense($10, $4); yield $14; } else { yield $3; } "
          "$40 = sum($12, $30); yield $40; } else { yield $3; }" +
          loss_of("$80"));
}

// What tidied networks make of their losses differs by how terms are added.
TEST(BlockGradients, AreThoseOfTheTidiedNetwork) {
  std::mt19937 random(2);
  int simpler = 0;
  const unsigned networks = testing::fewer_where_slow(200U);
  for (unsigned seed = 0; seed < networks; ++seed) {
    const RandomNetwork network(seed, true);
    Graph tidied = network.forward;
    tidied.outputs = {network.loss};
    if (graph::tidy(tidied, operators()) > 0) ++simpler;
    std::vector<ValueId> wrt;
    for (const ValueId id : network.wrt) wrt.push_back(tidied.find(network.forward[id].name));
    graph::Builder builder(tidied, operators());
    const ValueId loss = tidied.outputs.front();
    const std::vector<ValueId> gradients = add_gradients(builder, {loss}, wrt);
    tidied.outputs.insert(tidied.outputs.end(), gradients.begin(), gradients.end());
    std::erase(tidied.outputs, ValueId{});
    // And once more with the gradients, which keeps their bits.
    Graph twice = tidied;
    graph::tidy(twice, operators());
    Evaluator expected(network.graph), actual(tidied), after(twice);
    for (int round = 0; round < 3; ++round) {
      const Inputs inputs = draw(network.forward, random);
      for (Evaluator* one : {&expected, &actual, &after}) {
        set(*one, inputs);
        one->run();
      }
      EXPECT_NEAR(actual[loss][0], expected[network.loss][0], 1e-12);
      for (std::size_t i = 0; i < tidied.outputs.size(); ++i)
        EXPECT_EQ(after[twice.outputs[i]].data, actual[tidied.outputs[i]].data);
      for (std::size_t i = 0; i < wrt.size(); ++i) {
        for (std::int64_t e = 0; e < tidied[wrt[i]].shape.elements(); ++e) {
          const double slope = network.gradients[i] ? expected[network.gradients[i]][e] : 0;
          ASSERT_NEAR(gradients[i] ? actual[gradients[i]][e] : 0, slope,
                      1e-12 * std::max(1.0, std::abs(slope)))
              << "seed " << seed << ", " << print(network.forward) << print(tidied);
        }
      }
    }
  }
  EXPECT_GT(simpler, static_cast<int>(networks) / 2);
}

/// The same network, fused before its gradients are made and once more with them.
Graph fused_before(const RandomNetwork& network, int& chains) {
  Graph graph = network.forward;
  graph.outputs = {network.loss};
  chains += fuse(graph, operators());
  std::vector<ValueId> wrt;
  for (ValueId id : network.wrt) wrt.push_back(graph.find(network.forward[id].name));
  graph::Builder builder(graph, operators());
  for (ValueId id : add_gradients(builder, {graph.outputs.front()}, wrt)) {
    if (id) graph.outputs.push_back(id);
  }
  chains += fuse(graph, operators());
  return graph;
}

TEST(BlockGradients, KeepTheirBitsWhereChainsInBlocksAreFused) {
  std::mt19937 random(4);
  const unsigned networks = testing::fewer_where_slow(600U);
  int before = 0, behind = 0;
  for (unsigned seed = 0; seed < networks; ++seed) {
    const RandomNetwork network(seed);
    Graph late = network.graph;
    behind += fuse(late, operators());
    const Graph early = fused_before(network, before);
    Evaluator plain(network.graph), fused_late(late), fused_early(early);
    for (int round = 0; round < 4; ++round) {
      const Inputs inputs = draw(network.forward, random);
      set(plain, inputs);
      plain.run();
      const auto compare_with = [&](Evaluator& evaluator, const Graph& graph) {
        set(evaluator, inputs);
        evaluator.run();
        ASSERT_EQ(graph.outputs.size(), network.graph.outputs.size());
        for (std::size_t i = 0; i < graph.outputs.size(); ++i)
          ASSERT_EQ(evaluator[graph.outputs[i]].data, plain[network.graph.outputs[i]].data)
              << "seed " << seed << ", output " << i << "\n"
              << print(graph);
      };
      compare_with(fused_late, late);
      compare_with(fused_early, early);
    }
  }
  EXPECT_GT(before, static_cast<int>(networks) / 30);
  EXPECT_GT(behind, static_cast<int>(networks) / 30);
}

/// Where values share bytes, chains are fused too.
runtime::ProgramSpec program(const RandomNetwork& network, bool share, plan::StateLayout& state) {
  runtime::ProgramSpec spec{.name = "step", .graph = network.graph};
  if (share) graph::fuse(spec.graph, operators());
  graph::select(spec.graph, *runtime::kernel_selector(kernels()));
  if (share) {
    graph::in_place(spec.graph);
  } else {
    graph::join_handovers(spec.graph);  // where values swap they need a workspace
  }
  spec.schedule = graph::coarsen(spec.graph);
  spec.plan = plan::plan_step(spec.graph, spec.schedule, state, {.reuse = share});
  return spec;
}

TEST(BlockGradients, AreWhatProgramsCompute) {
  std::mt19937 random(2);
  runtime::Session session({.workers = 2});
  double worst = 0;
  for (unsigned seed = 0; seed < testing::fewer_where_slow(120U); ++seed) {
    const RandomNetwork network(seed);
    Evaluator expected(network.graph);
    for (const bool share : {false, true}) {
      plan::StateLayout state;
      std::vector<runtime::ProgramSpec> specs;
      specs.push_back(program(network, share, state));
      runtime::ProgramSet set_of(session, kernels(), std::move(specs));
      runtime::Program& step = set_of["step"];
      for (int round = 0; round < 4; ++round) {
        const Inputs inputs = draw(network.forward, random);
        set(expected, inputs);
        expected.run();
        for (const auto& [name, data] : inputs) {
          const graph::Value& value = network.graph[network.graph.find(name)];
          if (value.type == DType::int32) {
            std::ranges::copy(data, step.input<std::int32_t>(name));
          } else if (value.type == DType::int64) {
            std::ranges::copy(data, step.input<std::int64_t>(name));
          } else if (name == "x") {
            std::ranges::copy(data, step.input<float>(name));
          } else {
            std::ranges::copy(data, set_of.state<float>(name).begin());
          }
        }
        step.submit();
        for (std::size_t i = 0; i < network.graph.outputs.size(); ++i) {
          const auto seen = step.output<float>(i);
          const std::vector<double>& right = expected[network.graph.outputs[i]].data;
          const double largest = std::ranges::max(right, {}, [](double v) { return std::abs(v); });
          for (std::size_t e = 0; e < seen.size(); ++e)
            worst =
                std::max(worst, std::abs(seen[e] - right[e]) / std::max(1e-3, std::abs(largest)));
        }
        ASSERT_LT(worst, 1e-4) << "seed " << seed << (share ? ", shared\n" : "\n")
                               << print(network.graph);
      }
    }
  }
  EXPECT_GT(worst, 0);  // it is float32
}

}  // namespace
}  // namespace arenite
