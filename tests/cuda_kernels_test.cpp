// The GPU's own kernels, their grids run as loops on the host, against the reference.
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "codelets/testing.hpp"
#include "tests/reference/kernel_agreement.hpp"

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace arenite::codelets {
#define ARENITE_OPERATOR(folder) void register_##folder##_loops(runtime::KernelTable& kernels);
#include "cuda_operators.def"
#undef ARENITE_OPERATOR
}  // namespace arenite::codelets

namespace arenite {
namespace {

using codelets::testing::OpHarness;

runtime::KernelTable grids_as_loops() {
  runtime::KernelTable table;
#define ARENITE_OPERATOR(folder) codelets::register_##folder##_loops(table);
#include "cuda_operators.def"
#undef ARENITE_OPERATOR
  return table;
}

TEST(CudaKernels, AgreeWithTheReferenceWhenTheirGridsAreLoops) {
  const runtime::KernelTable table = grids_as_loops();
  const auto compared = reference::compare_kernels(table, DeviceKind::cuda);
  for (const std::string& op : operators().names()) {
    if (table.find(op).empty()) continue;
    const auto found = compared.find(op);
    EXPECT_TRUE(found != compared.end() && found->second > 0) << op;
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

// More terms than one grid is given, and the result where the first of them lies.
TEST(CudaKernels, AddManyTerms) {
  for (const std::size_t count : {255u, 256u, 257u, 600u}) {
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
