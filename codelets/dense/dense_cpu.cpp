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
    xsmm::Columns whole, rest;
  };

  DenseForward layer;
  bool usable = true;
  std::vector<Block> blocks;

  explicit ForwardState(const OpView& op) : layer(op) {
    usable = xsmm::in_reach({layer.n, layer.i, layer.o});
    if (!usable) return;
    for (const Part& terms : split(layer.i, most_terms)) {
      Block block{.terms = terms};
      if (layer.o >= forward_tile) add(block.whole, terms, forward_tile);
      if (layer.o % forward_tile > 0) add(block.rest, terms, layer.o % forward_tile);
      blocks.push_back(block);
    }
  }

 private:
  void add(xsmm::Columns& product, const Part& terms, std::int64_t width) {
    product = xsmm::Columns({.m = width,
                             .n = layer.n,
                             .k = terms.count,
                             .lda = layer.o,
                             .ldb = layer.i,
                             .ldc = layer.o,
                             .accumulate = layer.biased || terms.first > 0});
    usable = usable && product;
  }
};

void forward_xsmm(const KernelCall& call, const ForwardState& state) {
  const DenseForward& s = state.layer;
  const float *x = call.in<float>(0), *weight = call.in<float>(1);
  const float* bias = s.biased ? call.in<float>(2) : nullptr;
  float* y = call.out<float>(0);
  for (const ForwardState::Block& block : state.blocks) {
    for (std::int64_t from = 0; from < s.o; from += forward_tile) {
      const std::int64_t width = std::min(forward_tile, s.o - from);
      // The tile starts as the bias, and the products add to it while it is in cache.
      for (std::int64_t n = 0; bias && block.terms.first == 0 && n < s.n; ++n)
        std::copy_n(bias + from, width, y + n * s.o + from);
      const float *of_weight = weight + block.terms.first * s.o + from,
                  *of_x = x + block.terms.first;
      (width == forward_tile ? block.whole : block.rest)(&of_weight, &of_x, y + from, 1);
      if (s.relu && block.terms.first + block.terms.count == s.i) relu(y + from, s.n, width, s.o);
    }
  }
}

void forward_plain(const KernelCall& call, const DenseForward& state) {
  // Plain variables: clang 14 takes no structured binding into an OpenMP loop.
  const std::int64_t n = state.n, inputs = state.i, outputs = state.o;
  const float *x = call.in<float>(0), *weight = call.in<float>(1);
  const float* bias = state.biased ? call.in<float>(2) : nullptr;
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
  DenseGradInput layer;
  TiledProduct product;
  xsmm::Transpose whole, rest;

  explicit ByWeightState(const DenseGradInput& s)
      : layer(s),
        product({.m = s.i, .n = s.n, .k = s.o, .lda = tile, .ldb = s.o, .ldc = s.i}),
        whole(xsmm::dispatch_transpose(tile, s.o, tile)),
        rest(xsmm::dispatch_transpose(s.i % tile, s.o, tile)) {}

  explicit operator bool() const noexcept {
    return product && whole && (layer.i % tile == 0 || rest);
  }
  static std::int64_t floats(const DenseSizes& s) noexcept { return tile * s.o; }
};

void grad_input_by_weight(const KernelCall& call, const ByWeightState& state) {
  const float *gradient = call.in<float>(0), *weight = call.in<float>(1),
              *output = state.layer.masked ? call.in<float>(2) : nullptr;
  float* dx = call.out<float>(0);
  auto* transposed = static_cast<float*>(call.workspace);
  const unsigned from_row = static_cast<unsigned>(state.layer.o), to_row = tile;
  state.product.for_each([&](const Product& product, std::int64_t from, std::int64_t width) {
    const xsmm::Transpose transpose = width == tile ? state.whole : state.rest;
    transpose(weight + from * state.layer.o, &from_row, transposed, &to_row);
    product(transposed, gradient, dx + from);
    if (output) relu_grad(output + from, dx + from, state.layer.n, width, state.layer.i);
  });
}

struct BySampleState {
  DenseGradInput layer;
  Product whole, rest;
  xsmm::Transpose gradient, whole_tile, rest_tile;

  explicit BySampleState(const DenseGradInput& s)
      : layer(s),
        whole(gemm(s, tile), xsmm::SamplesAre::m),
        rest(gemm(s, s.i % tile), xsmm::SamplesAre::m),
        gradient(xsmm::dispatch_transpose(s.n, s.o, s.n)),
        whole_tile(xsmm::dispatch_transpose(tile, s.n, s.i)),
        rest_tile(xsmm::dispatch_transpose(s.i % tile, s.n, s.i)) {}

  explicit operator bool() const noexcept {
    const bool tail = layer.i % tile == 0 || (rest && rest_tile);
    return gradient && whole && whole_tile && tail;
  }
  static Gemm gemm(const DenseSizes& s, std::int64_t inputs) noexcept {
    return {.m = s.n, .n = inputs, .k = s.o, .lda = s.n, .ldb = s.o, .ldc = s.n};
  }
  static std::int64_t floats(const DenseSizes& s) noexcept { return s.n * (s.o + tile); }
  /// Samples fill vectors, and their tile of dx stays in cache.
  static bool pays(const DenseSizes& s) noexcept {
    return s.n < s.o && s.n % 16 == 0 && s.n <= 256 && s.i >= tile;
  }
};

void grad_input_by_sample(const KernelCall& call, const BySampleState& state) {
  const auto [n, inputs, outputs] = static_cast<const DenseSizes&>(state.layer);
  const float *gradient = call.in<float>(0), *weight = call.in<float>(1),
              *output = state.layer.masked ? call.in<float>(2) : nullptr;
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
  const DenseGradInput layer(op);
  return xsmm::all_made(BySampleState::pays(layer) ? static_cast<bool>(BySampleState(layer))
                                                   : static_cast<bool>(ByWeightState(layer)));
}

std::int64_t grad_input_workspace(const OpView& op) {
  const DenseGradInput layer(op);
  return (BySampleState::pays(layer) ? BySampleState::floats(layer)
                                     : ByWeightState::floats(layer)) *
         float_bytes;
}

PreparedKernel prepare_grad_input(const OpView& op) {
  const DenseGradInput layer(op);
  if (BySampleState::pays(layer)) return prepared<grad_input_by_sample>(BySampleState(layer));
  return prepared<grad_input_by_weight>(ByWeightState(layer));
}

void grad_input_plain(const KernelCall& call, const DenseGradInput& layer) {
  const std::int64_t n = layer.n, inputs = layer.i, outputs = layer.o;
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
  if (layer.masked) relu_grad(call.in<float>(2), dx, n, inputs, inputs);
}

}  // namespace

std::vector<Kernel> dense_kernels() {
  return {dense_direct(),
          {.name = "xsmm",
           .jit = true,
           .supports = [](const OpView& op) { return xsmm::all_made(ForwardState(op).usable); },
           .prepare = prepare<made_of<ForwardState>, forward_xsmm>},
          {.name = "plain", .prepare = prepare<made_of<DenseForward>, forward_plain>}};
}

std::vector<Kernel> dense_grad_input_kernels() {
  return {dense_direct_grad_input(),
          {.name = "xsmm",
           .jit = true,
           .supports = grad_input_supported,
           .workspace = grad_input_workspace,
           .prepare = prepare_grad_input},
          {.name = "plain", .prepare = prepare<made_of<DenseGradInput>, grad_input_plain>}};
}

}  // namespace arenite::codelets
