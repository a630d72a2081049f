// Dense layers by cuBLAS. The ReLU is a sweep of our own: the library's max(x, 0) need not keep a
// NaN, which a layer passes on.
#include "codelets/cuda/cublas.hpp"
#include "codelets/cuda/rectify.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/image.hpp"
#include "codelets/sgd/step_one.hpp"

#include <algorithm>
#include <vector>

namespace arenite::codelets {
namespace {

using cuda::Gemm;
using runtime::Compute;

constexpr int least_alignment = 4;  ///< bytes: a float's

struct Forward : DenseForward, Gemm {
  bool by_library;  ///< whether the library adds the bias

  Forward(const OpView& op, Compute compute)
      : DenseForward(op), Gemm(product(op, *this, compute)), by_library(library_adds_bias(op)) {}

 private:
  /// Kernels that it chooses may read a bias by vectors, however that lies.
  static bool library_adds_bias(const OpView& op) {
    return op.has_operand(2) && cuda::alignment_of(op.operand(2)) == 16;
  }

  static cuda::Product product(const OpView& op, const DenseSizes& s, Compute compute) {
    return {.rows = s.n,
            .inner = s.i,
            .columns = s.o,
            .biased = library_adds_bias(op),
            .compute = compute,
            .a_alignment = cuda::alignment_of(op.operand(0)),
            .b_alignment = cuda::alignment_of(op.operand(1)),
            .c_alignment = cuda::alignment_of(op.result(0))};
  }
};

void run_forward(const KernelCall& call, const Forward& s) {
  float* y = call.out<float>(0);
  const float* bias = s.biased ? call.in<float>(2) : nullptr;
  s.run(call, call.workspace, call.in<float>(0), call.in<float>(1), s.by_library ? bias : nullptr,
        y);
  if (s.by_library) bias = nullptr;
  if (bias == nullptr && !s.relu) return;
  const std::int64_t outputs = s.o;
  const bool relu = s.relu;
  cuda::for_each(call, s.n * outputs, [=] ARENITE_THREAD(std::int64_t i) {
    const float value = bias != nullptr ? y[i] + bias[i % outputs] : y[i];
    y[i] = relu && value <= 0 ? 0 : value;
  });
}

struct GradInput : DenseGradInput, Gemm {
  GradInput(const OpView& op, Compute compute)
      : DenseGradInput(op), Gemm(product(op, *this, compute)) {}

 private:
  static cuda::Product product(const OpView& op, const DenseSizes& s, Compute compute) {
    return {.rows = s.n,
            .inner = s.o,
            .columns = s.i,
            .transpose_b = true,
            .compute = compute,
            .a_alignment = cuda::alignment_of(op.operand(0)),
            .b_alignment = cuda::alignment_of(op.operand(1)),
            .c_alignment = cuda::alignment_of(op.result(0))};
  }
};

void run_grad_input(const KernelCall& call, const GradInput& s) {
  float* dx = call.out<float>(0);
  s.run(call, call.workspace, call.in<float>(0), call.in<float>(1), nullptr, dx);
  if (s.masked) cuda::rectify_gradient(call, s.n * s.i, call.in<float>(2), dx);
}

/// Σ xᵀ · gradient: a product for each pair, added to those before.
struct WeightGradient {
  DensePairs pairs;
  std::vector<Gemm> products;
  std::int64_t scratch = 0;  ///< bytes; the products take turns

  WeightGradient(const OpView& op, Compute compute, std::size_t first_pair, int c_alignment)
      : pairs(op, first_pair) {
    for (std::size_t p = 0; p < pairs.samples.size(); ++p) {
      const std::size_t x = first_pair + 2 * p;
      // A range of rows begins within those of x.
      int a_alignment = cuda::alignment_of(op.operand(x));
      while (pairs.begin * 4 % a_alignment != 0) a_alignment /= 2;
      products.emplace_back(cuda::Product{.rows = pairs.end - pairs.begin,
                                          .inner = pairs.samples[p],
                                          .columns = pairs.outputs,
                                          .transpose_a = true,
                                          .a_stride = pairs.inputs,
                                          .accumulate = p > 0,
                                          .compute = compute,
                                          .a_alignment = a_alignment,
                                          .b_alignment = cuda::alignment_of(op.operand(x + 1)),
                                          .c_alignment = c_alignment});
      scratch = std::max(scratch, products.back().workspace());
    }
  }

  bool usable() const {
    return !pairs.tree &&
           std::all_of(products.begin(), products.end(), [](const Gemm& g) { return g.usable(); });
  }
  void expect_usable() const {
    for (const Gemm& product : products) product.expect_usable();
  }
  std::int64_t elements() const noexcept { return (pairs.end - pairs.begin) * pairs.outputs; }

  void run(const KernelCall& call, void* workspace, float* dweight) const {
    for (std::size_t p = 0; p < products.size(); ++p) {
      products[p].run(call, workspace, pairs.x(call, p) + pairs.begin, pairs.gradient(call, p),
                      nullptr, dweight);
    }
  }
};

struct GradWeight : WeightGradient {
  GradWeight(const OpView& op, Compute compute)
      : WeightGradient(op, compute, 0, cuda::alignment_of(op.result(0))) {}

  std::int64_t workspace() const noexcept { return scratch; }
};

void run_grad_weight(const KernelCall& call, const GradWeight& s) {
  s.run(call, call.workspace, call.out<float>(0));
}

/// The library leaves the gradient in the workspace: only a grid of ours keeps from weights once a
/// step has failed.
struct Update : WeightGradient {
  sgd::Rule rule;
  bool has_velocity;
  cuda::Scratch places;
  std::int64_t gradient, products_scratch;

  Update(const OpView& op, Compute compute)
      : WeightGradient(op, compute, DensePairs::of_update, 16),
        rule(op),
        has_velocity(op.has_operand(2)) {
    gradient = places.add(elements() * float_bytes);
    products_scratch = places.add(scratch);
  }

  std::int64_t workspace() const noexcept { return places.bytes(); }
};

void run_update(const KernelCall& call, const Update& s) {
  auto* gradient = cuda::at<float>(call.workspace, s.gradient);
  s.run(call, cuda::at<void>(call.workspace, s.products_scratch), gradient);
  const sgd::States states(call, {.velocity = 2}, s.has_velocity);
  const float* rate = call.in<float>(1);
  const sgd::Rule rule = s.rule;
  cuda::for_each(call, s.elements(),
                 [=] ARENITE_THREAD(std::int64_t i) { states.step(rule, *rate, gradient[i], i); });
}

}  // namespace

void register_dense_cublas(runtime::KernelTable& kernels) {
  for (const Compute compute : cuda::all_computes) {
    const auto forward =
        cuda::library_kernel<Forward, run_forward, least_alignment>("cublas", compute);
    kernels.add("dense", forward);
    kernels.add("dense_relu", forward);
    const auto grad_input =
        cuda::library_kernel<GradInput, run_grad_input, least_alignment>("cublas", compute);
    kernels.add("dense_grad_input", grad_input);
    kernels.add("dense_grad_input_relu", grad_input);
    kernels.add(
        "dense_grad_weight",
        cuda::library_kernel<GradWeight, run_grad_weight, least_alignment>("cublas", compute));
    kernels.add("dense_grad_weight_sgd",
                cuda::library_kernel<Update, run_update, least_alignment>("cublas", compute, true));
  }
}

}  // namespace arenite::codelets
