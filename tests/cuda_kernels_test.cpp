// The GPU's own kernels, their grids run as loops on the host, against the reference.
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "codelets/cuda/grid.hpp"
#include "codelets/map/map_testing.hpp"
#include "codelets/testing.hpp"
#include "src/runtime/checked.hpp"
#include "tests/grids_as_loops.hpp"
#include "tests/reference/exact_products.hpp"
#include "tests/reference/kernel_agreement.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace arenite {
namespace {

using codelets::testing::OpHarness;

runtime::KernelTable grids_as_loops() {
  runtime::KernelTable table;
  testing::add_grids_as_loops(table);
  return table;
}

TEST(CudaKernels, AgreeWithTheReferenceWhenTheirGridsAreLoops) {
  const runtime::KernelTable table = grids_as_loops();
  std::map<std::string, int> compared;
  for (const bool first : {true, false}) {
    codelets::cuda::from_the_first() = first;
    compared = reference::compare_kernels(table, DeviceKind::cuda);
  }
  for (const std::string& op : operators().names()) {
    if (kernels().find(op).empty()) continue;  // a view, or blocks
    const auto found = compared.find(op);
    EXPECT_TRUE(found != compared.end() && found->second > 0) << op << " has no kernel for GPUs";
  }
}

TEST(CudaKernels, AreTheExpressionsOfMapsToTheBit) {
  const runtime::KernelTable table = grids_as_loops();
  for (unsigned seed = 0; seed < 40 && !HasFailure(); ++seed)
    codelets::testing::RandomMap(seed).run(table.at("map", "own", DeviceKind::cuda));
}

// Threads of a phase run in either order. What reaches beyond its bytes, which checked builds look
// for, does so in both.
TEST(CudaKernels, MultiplyIntegersExactly) {
  const runtime::KernelTable table = grids_as_loops();
  for (const bool first : {true, false}) {
    if (runtime::checked_build && !first) continue;
    codelets::cuda::from_the_first() = first;
    const auto compared = reference::compare_exact_products(table);
    EXPECT_EQ(compared.size(), reference::exact_kernels);
    for (const auto& [kernel, times] : compared) {
      const bool of_few = kernel.find('.') != std::string::npos || kernel.ends_with("/winograd");
      EXPECT_GE(times, of_few ? 1 : 3) << kernel;
    }
  }
}

/// An op's own GPU kernel, its grids run as loops.
struct Loops {
  runtime::KernelTable table = grids_as_loops();
  OpHarness harness{5};

  /// The result of the op, which is added to the harness.
  graph::ValueId run(std::string_view op, std::vector<graph::ValueId> operands,
                     graph::Attributes attributes = {}, bool in_place = false) {
    const graph::ValueId result =
        harness.op(op, std::move(operands), std::move(attributes)).front();
    if (in_place) harness.in_place(0, 0);
    EXPECT_EQ(harness.run(table.at(op, "own", DeviceKind::cuda)), runtime::StatusWord::ok);
    return result;
  }
};

/// An op that a step finds at fault, and what it writes.
struct Fault {
  std::string op;
  std::vector<graph::ValueId> operands;
  graph::Attributes attributes;
};

// As the CPU's kernels: the same code in the status word, the same results.
TEST(CudaKernels, ReportFaults) {
  const runtime::KernelTable table = grids_as_loops();
  OpHarness h(7);
  const auto integers = [&](const std::string& name, DType type, std::vector<std::int64_t> values) {
    const graph::ValueId id = h.declare(name, type, {static_cast<std::int64_t>(values.size())});
    if (type == DType::int64) {
      h.write(id, values);
    } else {
      h.write(id, std::vector<std::int32_t>(values.begin(), values.end()));
    }
    return id;
  };
  const auto x = h.random("x", {4, 3}), wide = h.random("wide", {4, 40}),
             rows = h.random("rows", {2, 3}),
             images = h.declare("images", DType::uint8, {4, 3, 2, 2}),
             first = integers("first", DType::int32, {0}),
             order = integers("order", DType::int32, {0, 3, 4, -1, 2}),
             zero = integers("zero", DType::int64, {0}),
             three = integers("three", DType::int64, {3}),
             minus = integers("minus", DType::int64, {-1}),
             huge = integers("huge", DType::int64, {INT64_MAX}),
             classes = integers("classes", DType::int32, {0, 3, 2, -1});
  const graph::Attributes two{{"count", std::int64_t{2}}},
      as_int32{{"count", std::int64_t{1}}, {"type", std::string("int32")}},
      by_operand{{"prefix", std::int64_t{-1}}};
  const std::vector<Fault> faults{{"softmax_cross_entropy", {x, classes}, {}},
                                  {"softmax_cross_entropy", {wide, classes}, {}},
                                  {"draw", {images, order, minus}, two},
                                  {"draw", {images, order, huge}, two},
                                  {"draw", {images, order, three}, two},
                                  {"draw", {huge, first, zero}, as_int32},
                                  {"dynamic_slice", {x, three}, {{"rows", std::int64_t{2}}}},
                                  {"dynamic_slice", {x, minus}, {{"rows", std::int64_t{2}}}},
                                  {"replace_slice", {x, rows, huge}, {}},
                                  {"replace_slice", {x, rows, zero, three}, {}},
                                  {"sliced_softmax", {x, minus}, by_operand},
                                  {"sliced_softmax", {x, huge}, by_operand}};
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.op);
    const auto written = h.op(fault.op, fault.operands, fault.attributes);
    const auto read_all = [&] {
      std::vector<std::vector<float>> all{h.read<float>(x)};
      for (graph::ValueId id : written) {
        if (h.graph()[id].type == DType::float32) all.push_back(h.read<float>(id));
      }
      return all;
    };
    const std::uint64_t on_cpu = h.run("plain");
    const auto expected = read_all();
    EXPECT_NE(on_cpu, runtime::StatusWord::ok);
    EXPECT_EQ(h.run(table.at(fault.op, "own", DeviceKind::cuda)), on_cpu);
    const auto actual = read_all();
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
      codelets::testing::expect_close(actual[i], expected[i], 1e-5);
  }
}

// As the CPU's kernel: the first of equals is hit, and a NaN or an infinity makes its row's loss
// one, in few classes and in many.
TEST(CudaKernels, TakeLossesOfOddRows) {
  const runtime::KernelTable table = grids_as_loops();
  constexpr float inf = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t classes : {2, 10, 16, 17, 140, 300}) {
    OpHarness h(3);
    const std::int64_t rows = 8;
    const auto last = static_cast<std::int32_t>(classes - 1);
    const auto logits = h.declare("logits", DType::float32, {rows, classes}),
               labels = h.declare("labels", DType::int32, {rows});
    std::vector<float> values(static_cast<std::size_t>(rows * classes), -1);
    const auto at = [&](std::int64_t row, std::int64_t c) -> float& {
      return values[static_cast<std::size_t>(row * classes + c)];
    };
    at(1, 0) = at(1, last) = 2;  // equals
    at(2, 0) = at(2, last) = 2;
    at(3, last) = 3;
    at(6, 0) = -inf;
    h.write(labels, std::vector<std::int32_t>{0, 0, last, last, 0, last, 1, last});
    const auto weights = h.declare("weights", DType::float32, {rows});
    h.write<float>(weights, {0, 2, 1, 0.5f, 1, 1, 3, 0.25f});
    for (const auto& [numbers, weighted] :
         {std::pair{true, false}, {true, true}, {false, false}, {false, true}}) {
      if (!numbers) {  // they hide the rows' sums
        at(4, 0) = nan;
        at(5, last) = inf;
      }
      h.write(logits, values);
      const auto results = weighted ? h.op("softmax_cross_entropy", {logits, labels, weights})
                                    : h.op("softmax_cross_entropy", {logits, labels});
      EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
      const auto statistics = h.read<double>(results[1]);
      const auto gradient = h.read<float>(results[2]);
      EXPECT_EQ(h.run(table.at("softmax_cross_entropy", "own", DeviceKind::cuda)),
                runtime::StatusWord::ok);
      const auto actual = h.read<double>(results[1]);
      EXPECT_EQ(actual[1], statistics[1]) << classes;
      EXPECT_EQ(std::isnan(actual[0]), std::isnan(statistics[0]));
      if (numbers) {
        EXPECT_NEAR(actual[0], statistics[0], 1e-5 * statistics[0]);
      }
      const auto found = h.read<float>(results[2]);
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(std::isnan(found[i]), std::isnan(gradient[i])) << classes << ": " << i;
        if (!std::isnan(gradient[i])) {
          EXPECT_NEAR(found[i], gradient[i], 1e-6) << i;
        }
      }
    }
  }
}

// As many terms as a grid is given, and the result where the first of them lies.
TEST(CudaKernels, AddManyTerms) {
  for (const std::size_t count : {2u, 5u, 256u, 498u}) {
    for (const bool in_place : {false, true}) {
      Loops loops;
      std::vector<graph::ValueId> terms;
      std::vector<double> expected(7, 0);
      for (std::size_t t = 0; t < count; ++t) {
        terms.push_back(loops.harness.random("t" + std::to_string(t), {7}));
        const auto values = loops.harness.read<float>(terms.back());
        for (std::size_t i = 0; i < 7; ++i) expected[i] += static_cast<double>(values[i]);
      }
      const auto y = loops.run("sum", terms, {}, in_place);
      codelets::testing::expect_close(loops.harness.read<float>(y), expected, 1e-5,
                                      std::to_string(count));
    }
  }
}

// Sums of so many terms that several threads share one.
TEST(CudaKernels, AddLongAxes) {
  const Shape shape{1001, 6, 5};
  const auto [rows, columns, channels] = std::tuple{1001, 6, 5};
  Loops loops;
  const auto x = loops.harness.random("x", shape);
  const auto values = loops.harness.read<float>(x);
  std::vector<double> by_column(6, 0), by_channel(5, 0);
  for (int i = 0, at = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      for (int k = 0; k < channels; ++k, ++at) {
        const double value = static_cast<double>(values[static_cast<std::size_t>(at)]);
        by_column[static_cast<std::size_t>(j)] += value;
        by_channel[static_cast<std::size_t>(k)] += value;
      }
    }
  }
  const auto column = loops.run("sum_to", {x}, {{"shape", std::vector<std::int64_t>{1, 6, 1}}});
  codelets::testing::expect_close(loops.harness.read<float>(column), by_column, 1e-6);
  const auto channel = loops.run("bias_grad", {x});
  codelets::testing::expect_close(loops.harness.read<float>(channel), by_channel, 1e-6);
}

}  // namespace
}  // namespace arenite
