// What the oracle is worth: plans with one edge too few are refused by the verifier, and show in
// the bits.
#include <arenite/error.hpp>

#include <gtest/gtest.h>

#include "src/expr/formulas.hpp"
#include "tests/oracle/dropped_edges.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace arenite::oracle {
namespace {

constexpr std::uint32_t programs = ARENITE_PLAIN_KERNELS ? 24 : 120;

/// Whether one of the orders against the meeting has other bits.
bool shows(const RandomProgram& broken, const Drop& drop, const Meeting& meeting,
           const Kernels& kernels, const Trace& expected) {
  const Timeline timeline(broken);
  return std::ranges::any_of(
      orders_against(timeline, broken, drop, meeting), [&](const std::vector<Event>& order) {
        return !difference(execute(broken, kernels, order, Poison::dead), expected).empty();
      });
}

template <class Check>
void for_each_drop(const RandomProgram& program, Check check) {
  for (const Drop& drop : drops(program)) {
    SCOPED_TRACE(text(program, drop));
    const RandomProgram broken = without(program, drop);
    check(drop, broken, meetings(broken, drop));
  }
}

struct Tally {
  int edges = 0, matter = 0, caught = 0;

  void record(const std::string& name) const {
    ::testing::Test::RecordProperty(name + "_edges", edges);
    ::testing::Test::RecordProperty(name + "_matter", matter);
    ::testing::Test::RecordProperty(name + "_caught", caught);
  }
};

TEST(DroppedEdge, IsRefusedByTheVerifier) {
  for (std::uint32_t number = 0; number < programs; ++number) {
    SCOPED_TRACE("program " + std::to_string(number));
    const RandomProgram program = random_program(number);
    std::size_t reuse = 0, planned = 0;
    for_each_drop(program, [&](const Drop& drop, const RandomProgram& broken, const auto&) {
      const runtime::ProgramSpec& spec = broken.programs[drop.program];
      EXPECT_THROW(plan::verify_step(spec.graph, spec.schedule, spec.plan), Error);
      reuse += drop.reuse ? 1 : 0;
    });
    for (const runtime::ProgramSpec& spec : program.programs)
      planned += spec.plan.reuse_edges.size();
    EXPECT_EQ(reuse, planned) << "a reuse edge that others imply";
  }
}

/// With kernels that lose sight of nothing an edge shows in the bits if, and only if, it keeps
/// apart two ops of which one reads what the other spoils and has a say in what is seen. The others
/// keep apart scratch of single ops, and values that nobody needs: those are in danger only while
/// two kernels run at the same moment, which no order of whole ops can show.
TEST(DroppedEdge, ShowsInTheBitsIfItMatters) {
  Tally data, reuse;
  for (std::uint32_t number = 0; number < programs; ++number) {
    SCOPED_TRACE("program " + std::to_string(number));
    const RandomProgram program = random_program(number);
    const Kernels kernels = mixing_kernels(program);
    const Trace expected = reference(program, kernels);
    for_each_drop(program, [&](const Drop& drop, const RandomProgram& broken, const auto& met) {
      ASSERT_FALSE(met.empty());
      const bool matters = met.front().matters;
      const bool caught = std::ranges::any_of(met, [&](const Meeting& meeting) {
        return meeting.matters >= matters && shows(broken, drop, meeting, kernels, expected);
      });
      EXPECT_EQ(caught, matters);
      Tally& tally = drop.reuse ? reuse : data;
      ++tally.edges, tally.matter += matters ? 1 : 0, tally.caught += caught ? 1 : 0;
    });
  }
  data.record("data");
  reuse.record("reuse");
  if (!ARENITE_PLAIN_KERNELS) {
    EXPECT_GT(data.matter, 2000);
    EXPECT_GT(reuse.matter, 200);
  }
}

/// Windows that stand apart leave out the pixels between them.
bool steps_over_pixels(const graph::Op& op) {
  if (!op.attributes.has("kernel") || !op.attributes.has("stride")) return false;
  const auto &kernel = op.attributes.integers("kernel"), &stride = op.attributes.integers("stride");
  return !std::ranges::equal(stride, kernel, std::less_equal()) && !stride.empty();
}

/// A convolution's halo is as wide as the larger of its paddings, along the other axis too; strides
/// and dilation leave out pixels.
bool passes_over_pixels(const graph::Op& op) {
  if (!op.name().starts_with("conv2d")) return false;
  const auto& padding = op.attributes.integers("padding");
  const auto is_one = [&](const char* name) {
    return std::ranges::all_of(op.attributes.integers(name), [](auto n) { return n == 1; });
  };
  return padding.front() != padding.back() || !is_one("stride") || !is_one("dilation");
}

/// A ReLU passes on nothing of what it cuts off; of another ReLU's result, in place, it makes what
/// was there, as does a sum of one term; some rows of a weight's gradient come from some columns;
/// rows and columns that are not taken, or replaced, or come from one of several operands, play no
/// part, nor do weights in a velocity without decay; the softmax of one element is 1 whatever it
/// is; a finite loss leaves the rate as it is, and a mean may keep all or nothing; formulas choose;
/// and much of what is made of zeros is zeros.
bool may_lose_sight(const graph::Op& op) {
  return op.name() == "dense_relu" || op.name() == "conv2d_relu" ||
         op.name().ends_with("_grad_input_relu") || op.name() == "full" ||
         op.name() == "dynamic_slice" || op.name() == "replace_slice" || op.name() == "assign" ||
         op.name() == "softmax" || op.name() == "check_loss" || op.name() == "average" ||
         op.name() == "stack_columns" || op.name() == "join_columns" ||
         op.name().starts_with("sliced_softmax") || op.name() == "map" || op.name() == "reduce" ||
         expr::find_formula(op.name()) != nullptr || steps_over_pixels(op) ||
         passes_over_pixels(op) || (op.name() == "sum" && op.operands.size() == 1) ||
         (op.name() == "sgd" && op.attributes.real("weight_decay") == 0) ||
         (op.name() == "dense_grad_weight_sgd" && op.attributes.real("weight_decay") == 0) ||
         (op.name().starts_with("dense_grad_weight") && !op.attributes.integers("rows").empty());
}

/// Real kernels, but for those that may lose sight of a wrong byte.
Kernels sighted_kernels(const RandomProgram& program) {
  Kernels kernels = real_kernels(program);
  const Kernels mixing = mixing_kernels(program);
  for (std::size_t p = 0; p < kernels.size(); ++p) {
    for (std::size_t i = 0; i < kernels[p].size(); ++i) {
      if (may_lose_sight(program.programs[p].graph[graph::OpId(i)])) kernels[p][i] = mixing[p][i];
    }
  }
  return kernels;
}

TEST(DroppedEdge, ShowsInRealNumbersIfItMatters) {
  constexpr std::uint32_t other_data = 20;  // where a ReLU happens to be dead in this one
  Tally data, reuse;
  for (std::uint32_t number = 0; number < programs; ++number) {
    SCOPED_TRACE("program " + std::to_string(number));
    const RandomProgram program = random_program(number);
    if (trusts_its_data(program)) continue;
    const Kernels kernels = real_kernels(program), sighted = sighted_kernels(program);
    const Trace expected = reference(program, kernels),
                sighted_expected = reference(program, sighted);
    for_each_drop(program, [&](const Drop& drop, const RandomProgram& broken, const auto& met) {
      Tally& tally = drop.reuse ? reuse : data;
      ++tally.edges;
      if (!met.front().matters) return;
      ++tally.matter;
      const auto shows_with = [&](const RandomProgram& b, const Kernels& k, const Trace& trace) {
        return std::ranges::any_of(met, [&](const Meeting& meeting) {
          return meeting.matters && shows(b, drop, meeting, k, trace);
        });
      };
      bool caught = shows_with(broken, kernels, expected);
      tally.caught += caught ? 1 : 0;
      caught = caught || shows_with(broken, sighted, sighted_expected);
      for (std::uint32_t i = 1; !caught && i < other_data; ++i) {  // a network is compiled anew
        const RandomProgram other = random_program(number, i);
        caught = shows_with(without(other, drop), kernels, reference(other, kernels));
      }
      EXPECT_TRUE(caught);
    });
  }
  data.record("data");
  reuse.record("reuse");
}

/// Orders that know nothing of the edge.
TEST(DroppedEdge, OftenShowsInOrdersThatLookForNothing) {
  constexpr std::array policies{Policy::random,       Policy::random,       Policy::depth_first,
                                Policy::newest_first, Policy::oldest_first, Policy::latest_first};
  Tally data, reuse;
  for (std::uint32_t number = 0; number < programs; number += 4) {
    SCOPED_TRACE("program " + std::to_string(number));
    const RandomProgram program = random_program(number);
    const Kernels kernels = mixing_kernels(program);
    const Trace expected = reference(program, kernels);
    for_each_drop(program, [&](const Drop& drop, const RandomProgram& broken, const auto& met) {
      Tally& tally = drop.reuse ? reuse : data;
      ++tally.edges;
      if (!met.front().matters) return;
      ++tally.matter;
      const Timeline timeline(broken);
      for (std::uint32_t i = 0; i < policies.size(); ++i) {
        const auto order = arrange(timeline, policies[i], i);
        if (difference(execute(broken, kernels, order, Poison::dead), expected).empty()) continue;
        ++tally.caught;
        break;
      }
    });
  }
  data.record("data");
  reuse.record("reuse");
  EXPECT_GT(2 * data.caught, data.matter);
}

}  // namespace
}  // namespace arenite::oracle
