// Why an op did not get a kernel that stands before its own in the table.
#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include "codelets/avx512.hpp"
#include "src/expr/simd/isa.hpp"

namespace arenite::codelets::testing {
namespace {

/// A reason of kernels that only a build with AVX-512 has.
std::string in_avx512(const std::string& why) {
  return built_with_avx512() ? why : "a build without AVX-512";
}

/// A reason of kernels that are there for all instructions but the plainest.
std::string in_vectors(const std::string& why) {
  return expr::isa() != "baseline" ? why : "no AVX2";
}

/// A reason of kernels that sanitizer builds leave out.
std::string in_jit(const std::string& why) {
  return ARENITE_PLAIN_KERNELS ? "code that sanitizers cannot see into" : why;
}

struct Refusals : ::testing::Test {
  graph::Graph graph;
  graph::Builder builder{graph, operators()};

  ValueId declare(Shape shape, DType type = DType::float32) {
    return builder.declare("v" + std::to_string(graph.value_count()), type, std::move(shape),
                           graph::StorageClass::input);
  }

  /// Why the op that was added last does not get the kernel; "taken": it does; "": it gets one that
  /// stands before.
  std::string why(const std::string& kernel, runtime::KernelWishes wishes = {}) const {
    const OpView op(graph, graph[graph[graph::Graph::body].ops.back()]);
    const auto selector = runtime::kernel_selector(kernels(), std::move(wishes));
    const std::string taken = selector->choose(op);
    std::string found = taken == kernel ? "taken" : "";
    for (const graph::Refusal& refusal : selector->refused(op)) {
      EXPECT_NE(refusal.kernel, taken);
      EXPECT_NE(refusal.why, "") << refusal.kernel;
      if (refusal.kernel == kernel) found = refusal.why;
    }
    return found;
  }
  void convolve(const Shape& x, const Shape& weight, const char* attribute, std::int64_t both) {
    builder.add("conv2d", {declare(x), declare(weight), {}},
                {{attribute, std::vector<std::int64_t>{both, both}}});
  }
};

TEST_F(Refusals, OfConvolutions) {
  convolve({8, 16, 16, 64}, {3, 3, 64, 64}, "padding", 1);
  EXPECT_EQ(why("winograd"), in_avx512("taken"));
  convolve({8, 16, 16, 64}, {5, 5, 64, 64}, "padding", 2);
  EXPECT_EQ(why("winograd"), in_avx512("a kernel other than 3x3"));
  EXPECT_EQ(why("direct"), in_avx512("output channels enough to fill a GEMM's vectors"));
  EXPECT_EQ(why("xsmm"), in_jit("taken"));
  EXPECT_EQ(why("plain"), ARENITE_PLAIN_KERNELS ? "taken" : "");
  convolve({8, 16, 16, 64}, {3, 3, 64, 64}, "stride", 2);
  EXPECT_EQ(why("winograd"), in_avx512("a stride above 1"));
  convolve({8, 16, 16, 64}, {3, 3, 64, 64}, "dilation", 2);
  EXPECT_EQ(why("winograd"), in_avx512("a dilation above 1"));
  convolve({8, 28, 28, 3}, {3, 3, 3, 32}, "stride", 1);
  EXPECT_EQ(why("winograd"), in_avx512("fewer than 16 channels to sum over"));
  convolve({8, 28, 28, 1}, {17, 17, 1, 4}, "stride", 1);
  EXPECT_EQ(why("direct"), in_avx512("more than 128 weights an output channel"));
  EXPECT_EQ(why("xsmm"), in_jit("more than 256 taps"));
  convolve({1, 2, 2, 1}, {3, 3, 1, 32}, "padding", 3000);
  EXPECT_EQ(why("xsmm"), in_jit("a padded copy out of proportion to the image"));
  EXPECT_EQ(why("plain"), "taken");
}

TEST_F(Refusals, OfFusedConvolutions) {
  builder.add("conv2d_relu_max_pool2d", {declare({8, 30, 30, 64}), declare({5, 5, 64, 64}), {}},
              {{"pool", std::vector<std::int64_t>{2, 2}}});
  EXPECT_EQ(why("winograd"), in_avx512("a kernel other than 3x3"));
  EXPECT_EQ(why("direct"), in_avx512("more than 160 weights an output channel"));
  EXPECT_EQ(why("xsmm"), in_jit("taken"));
  builder.add("conv2d_relu_max_pool2d", {declare({8, 30, 30, 64}), declare({5, 5, 64, 15}), {}},
              {{"pool", std::vector<std::int64_t>{2, 2}}});
  EXPECT_EQ(why("direct"), in_avx512("channels enough for a GEMM to be faster"));
}

TEST_F(Refusals, OfDenseLayers) {
  builder.add("dense", {declare({4, 20}), declare({20, 30}), {}});
  EXPECT_EQ(why("direct"), in_vectors("taken"));
  builder.add("dense", {declare({64, 20}), declare({20, 30}), {}});
  EXPECT_EQ(why("direct"), in_vectors("more than 6 samples"));
  EXPECT_EQ(why("xsmm"), in_jit("taken"));
  builder.add("dense", {declare({64, 1 << 23}), declare({1 << 23, 2}), {}});
  EXPECT_EQ(why("xsmm"), in_jit("sizes that LIBXSMM makes no code for"));
  builder.add("dense_grad_input", {declare({4, 30}), declare({20, 30})});
  EXPECT_EQ(why("direct"), in_vectors("fewer than 96 outputs to sum over"));
  builder.add("dense_grad_input", {declare({14, 100}), declare({20, 100})});
  EXPECT_EQ(why("direct"), in_vectors("fewer than 192 outputs to sum over, for over 12 samples"));
  builder.add("dense_grad_input", {declare({64, 100}), declare({20, 100})});
  EXPECT_EQ(why("direct"), in_vectors("more than 16 samples"));
}

TEST_F(Refusals, OfProducts) {
  builder.add("matmul", {declare({7, 13}), declare({13, 5})});
  EXPECT_EQ(why("xsmm"), in_jit("taken"));
  builder.add("matmul", {declare({7, 13}, DType::float64), declare({13, 5}, DType::float64)});
  EXPECT_EQ(why("xsmm"), in_jit("elements that are not float32"));
  builder.add("matmul", {declare({3, 13}), declare({5, 13})}, {{"transpose_b", std::int64_t{1}}});
  EXPECT_EQ(why("xsmm"), in_jit("at most 4 rows by a transposed matrix"));
  builder.add("matmul", {declare({7, 1}), declare({1, 1 << 23})});
  EXPECT_EQ(why("xsmm"), in_jit("sizes that LIBXSMM makes no code for"));
  EXPECT_EQ(why("plain"), "taken");
}

TEST_F(Refusals, OfWishes) {
  builder.add("dense", {declare({64, 20}), declare({20, 30}), {}});
  EXPECT_EQ(why("xsmm", {.without = "xsmm"}), "left out, as was asked for");
  EXPECT_EQ(why("direct_bf16", {.compute = runtime::Compute::bfloat16}),
            in_vectors("more than 6 samples"));
  EXPECT_EQ(why("direct", {.compute = runtime::Compute::bfloat16}), "");
}

}  // namespace
}  // namespace arenite::codelets::testing
