// In LIBXSMM's column-major eyes the row-major x [N, I] is I×N, weight [I, O] is O×I and y [N, O]
// is O×N.
#include "codelets/dense/dense.hpp"
#include "codelets/dense/product.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/rectify.hpp"
#include "codelets/sizes.hpp"
#include "codelets/words.hpp"

#include <algorithm>
#include <vector>

namespace arenite::codelets {
namespace {

using xsmm::Gemm;
using xsmm::Product;
using xsmm::tile;
using xsmm::TiledProduct;

using Sizes = DenseSizes;

struct PlainState {
  Sizes size;
  bool has_third = false;  ///< forward: the bias; backward: what a ReLU made of the layer before
  bool relu = false;       ///< forward
};

bool has_relu(const OpView& op) { return op.op().name() == "dense_relu"; }

void relu(float* y, std::int64_t rows, std::int64_t width, std::int64_t stride) noexcept {
  for (std::int64_t r = 0; r < rows; ++r, y += stride) rectify(y, width, y);
}

/// dx becomes 0 where the ReLU's output is.
void relu_grad(const float* output, float* dx, std::int64_t rows, std::int64_t width,
               std::int64_t stride) noexcept {
  for (std::int64_t r = 0; r < rows; ++r, dx += stride, output += stride)
    rectify_gradient(output, dx, width, dx);
}

// y = x · weight + bias.

/// Tiles of 48 outputs (three AVX-512 vectors by eight samples stay in registers), of few enough
/// terms of each sum at a time for their weights to stay in the first-level cache.
constexpr std::int64_t forward_tile = 48, most_terms = 256;

struct ForwardState {
  /// What adds some terms to the sums: to whole tiles of outputs, and to the rest.
  struct Block {
    Part terms{};
    xsmm::BatchReduce whole = nullptr, rest = nullptr;
  };

  Sizes size;
  bool has_bias = false, relu = false, usable = true;
  std::vector<Block> blocks;

  explicit ForwardState(const OpView& op)
      : size(Sizes::forward(op)), has_bias(op.has_operand(2)), relu(has_relu(op)) {
    usable = xsmm::in_reach({size.n, size.i, size.o});
    if (!usable) return;
    for (const Part& terms : split(size.i, most_terms)) {
      Block block{.terms = terms};
      if (size.o >= forward_tile) add(block.whole, terms, forward_tile);
      if (size.o % forward_tile > 0) add(block.rest, terms, size.o % forward_tile);
      blocks.push_back(block);
    }
  }

 private:
  void add(xsmm::BatchReduce& product, const Part& terms, std::int64_t width) {
    product = xsmm::dispatch({.m = width,
                              .n = size.n,
                              .k = terms.count,
                              .lda = size.o,
                              .ldb = size.i,
                              .ldc = size.o,
                              .accumulate = has_bias || terms.first > 0});
    usable = usable && product;
  }
};

void forward_xsmm(const KernelCall& call) {
  const auto& state = *static_cast<const ForwardState*>(call.state);
  const Sizes& s = state.size;
  const float *x = call.in<float>(0), *weight = call.in<float>(1);
  const float* bias = state.has_bias ? call.in<float>(2) : nullptr;
  float* y = call.out<float>(0);
  for (const ForwardState::Block& block : state.blocks) {
    for (std::int64_t from = 0; from < s.o; from += forward_tile) {
      const std::int64_t width = std::min(forward_tile, s.o - from);
      // The tile starts as the bias, and the products add to it while it is in cache.
      for (std::int64_t n = 0; bias && block.terms.first == 0 && n < s.n; ++n)
        std::copy_n(bias + from, width, y + n * s.o + from);
      const float *of_weight = weight + block.terms.first * s.o + from,
                  *of_x = x + block.terms.first;
      const xsmm::Count one = 1;
      (width == forward_tile ? block.whole : block.rest)(&of_weight, &of_x, y + from, &one);
      if (state.relu && block.terms.first + block.terms.count == s.i)
        relu(y + from, s.n, width, s.o);
    }
  }
}

void forward_plain(const KernelCall& call) {
  const auto& state = *static_cast<const PlainState*>(call.state);
  // Plain variables: clang 14 takes no structured binding into an OpenMP loop.
  const std::int64_t n = state.size.n, inputs = state.size.i, outputs = state.size.o;
  const float *x = call.in<float>(0), *weight = call.in<float>(1);
  const float* bias = state.has_third ? call.in<float>(2) : nullptr;
  float* y = call.out<float>(0);
  for (std::int64_t s = 0; s < n; ++s) {
    if (bias) std::copy_n(bias, outputs, y + s * outputs);
    if (!bias) std::fill_n(y + s * outputs, outputs, 0.0f);
  }
  // A block of weights serves all samples before the next one comes from memory.
  for (std::int64_t from = 0; from < inputs; from += tile) {
    const std::int64_t to = std::min(from + tile, inputs);
    for (std::int64_t s = 0; s < n; ++s) {
      float* row = y + s * outputs;
      for (std::int64_t i = from; i < to; ++i) {
        const float factor = x[s * inputs + i];
        const float* w = weight + i * outputs;
#pragma omp simd
        for (std::int64_t o = 0; o < outputs; ++o) row[o] += factor * w[o];
      }
    }
  }
  if (state.relu) relu(y, n, outputs, outputs);
}

// dx = gradient · weightᵀ. LIBXSMM 1.17 multiplies by no transposed A, so something has to be
// transposed: the weights, a tile of inputs at a time, or, when there are fewer samples than
// outputs, the (smaller) gradient and dx.

struct ByWeightState {
  Sizes size;
  bool masked;
  TiledProduct product;
  xsmm::Transpose whole, rest;

  explicit ByWeightState(const Sizes& s, bool masked_by_output = false)
      : size(s),
        masked(masked_by_output),
        product({.m = s.i, .n = s.n, .k = s.o, .lda = tile, .ldb = s.o, .ldc = s.i}),
        whole(xsmm::dispatch_transpose(tile, s.o, tile)),
        rest(xsmm::dispatch_transpose(s.i % tile, s.o, tile)) {}

  explicit operator bool() const noexcept {
    return product && whole && (size.i % tile == 0 || rest);
  }
  static std::int64_t floats(const Sizes& s) noexcept { return tile * s.o; }
};

void grad_input_by_weight(const KernelCall& call) {
  const auto& state = *static_cast<const ByWeightState*>(call.state);
  const float *gradient = call.in<float>(0), *weight = call.in<float>(1),
              *output = state.masked ? call.in<float>(2) : nullptr;
  float* dx = call.out<float>(0);
  auto* transposed = static_cast<float*>(call.workspace);
  const unsigned from_row = static_cast<unsigned>(state.size.o), to_row = tile;
  state.product.for_each([&](const Product& product, std::int64_t from, std::int64_t width) {
    const xsmm::Transpose transpose = width == tile ? state.whole : state.rest;
    transpose(weight + from * state.size.o, &from_row, transposed, &to_row);
    product(transposed, gradient, dx + from);
    if (output) relu_grad(output + from, dx + from, state.size.n, width, state.size.i);
  });
}

struct BySampleState {
  Sizes size;
  bool masked;
  Product whole, rest;
  xsmm::Transpose gradient, whole_tile, rest_tile;

  explicit BySampleState(const Sizes& s, bool masked_by_output = false)
      : size(s),
        masked(masked_by_output),
        whole(gemm(s, tile)),
        rest(gemm(s, s.i % tile)),
        gradient(xsmm::dispatch_transpose(s.n, s.o, s.n)),
        whole_tile(xsmm::dispatch_transpose(tile, s.n, s.i)),
        rest_tile(xsmm::dispatch_transpose(s.i % tile, s.n, s.i)) {}

  explicit operator bool() const noexcept {
    const bool tail = size.i % tile == 0 || (rest && rest_tile);
    return gradient && whole && whole_tile && tail;
  }
  static Gemm gemm(const Sizes& s, std::int64_t inputs) noexcept {
    return {.m = s.n, .n = inputs, .k = s.o, .lda = s.n, .ldb = s.o, .ldc = s.n};
  }
  static std::int64_t floats(const Sizes& s) noexcept { return s.n * (s.o + tile); }
  /// Samples fill vectors, and their tile of dx stays in cache.
  static bool pays(const Sizes& s) noexcept {
    return s.n < s.o && s.n % 16 == 0 && s.n <= 256 && s.i >= tile;
  }
};

void grad_input_by_sample(const KernelCall& call) {
  const auto& state = *static_cast<const BySampleState*>(call.state);
  const auto [n, inputs, outputs] = state.size;
  const float *gradient = call.in<float>(0), *weight = call.in<float>(1),
              *output = state.masked ? call.in<float>(2) : nullptr;
  float* dx = call.out<float>(0);
  auto* transposed = static_cast<float*>(call.workspace);
  float* product_tile = transposed + n * outputs;
  const unsigned o_row = static_cast<unsigned>(outputs), n_row = static_cast<unsigned>(n),
                 i_row = static_cast<unsigned>(inputs);
  state.gradient(gradient, &o_row, transposed, &n_row);
  for (std::int64_t from = 0; from < inputs; from += tile) {
    const bool whole = from + tile <= inputs;
    (whole ? state.whole : state.rest)(transposed, weight + from * outputs, product_tile);
    (whole ? state.whole_tile : state.rest_tile)(product_tile, &n_row, dx + from, &i_row);
    if (output) relu_grad(output + from, dx + from, n, std::min(tile, inputs - from), inputs);
  }
}

graph::Support grad_input_supported(const OpView& op) {
  const Sizes size = Sizes::grad_input(op);
  return xsmm::all_made(BySampleState::pays(size) ? static_cast<bool>(BySampleState(size))
                                                  : static_cast<bool>(ByWeightState(size)));
}

std::int64_t grad_input_workspace(const OpView& op) {
  const Sizes size = Sizes::grad_input(op);
  const std::int64_t floats =
      BySampleState::pays(size) ? BySampleState::floats(size) : ByWeightState::floats(size);
  return floats * static_cast<std::int64_t>(sizeof(float));
}

PreparedKernel prepare_grad_input(const OpView& op) {
  const Sizes size = Sizes::grad_input(op);
  const bool masked = op.has_operand(2);
  if (BySampleState::pays(size))
    return {grad_input_by_sample, std::make_shared<const BySampleState>(size, masked)};
  return {grad_input_by_weight, std::make_shared<const ByWeightState>(size, masked)};
}

void grad_input_plain(const KernelCall& call) {
  const auto& state = *static_cast<const PlainState*>(call.state);
  const Sizes& size = state.size;
  const std::int64_t n = size.n, inputs = size.i, outputs = size.o;
  const float *gradient = call.in<float>(0), *weight = call.in<float>(1);
  float* dx = call.out<float>(0);
  for (std::int64_t from = 0; from < inputs; from += tile) {
    const std::int64_t to = std::min(from + tile, inputs);
    for (std::int64_t s = 0; s < n; ++s) {
      const float* g = gradient + s * outputs;
      for (std::int64_t i = from; i < to; ++i) {
        const float* w = weight + i * outputs;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t o = 0; o < outputs; ++o) sum += g[o] * w[o];
        dx[s * inputs + i] = sum;
      }
    }
  }
  if (state.has_third) relu_grad(call.in<float>(2), dx, n, inputs, inputs);
}

template <auto sizes>
PlainState plain_state(const OpView& op) {
  return {sizes(op), op.has_operand(2), has_relu(op)};
}

}  // namespace

std::vector<Kernel> dense_kernels() {
  return {dense_direct(),
          {.name = "xsmm",
           .jit = true,
           .supports = [](const OpView& op) { return xsmm::all_made(ForwardState(op).usable); },
           .prepare = prepare<made_of<ForwardState>, forward_xsmm>},
          {.name = "plain", .prepare = prepare<plain_state<Sizes::forward>, forward_plain>}};
}

std::vector<Kernel> dense_grad_input_kernels() {
  return {dense_direct_grad_input(),
          {.name = "xsmm",
           .jit = true,
           .supports = grad_input_supported,
           .workspace = grad_input_workspace,
           .prepare = prepare_grad_input},
          {.name = "plain", .prepare = prepare<plain_state<Sizes::grad_input>, grad_input_plain>}};
}

}  // namespace arenite::codelets
