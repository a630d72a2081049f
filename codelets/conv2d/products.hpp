// What convolutions on LIBXSMM's batch-reduce GEMM are made of: one sample, one row at a time, and
// whole batches of them, alone or with ReLU and max pooling.
//
// m = output channels, n = pixels of a row, k = input channels, and one address a tap, so that
// padding, stride and dilation are only addresses and leading dimensions. The functions that make a
// product compile its kernel (take locks, may allocate); the product is used from any thread. Its
// `gemm` is nullptr where LIBXSMM has none, or a row product would have too many taps.
#pragma once

#include "codelets/conv2d/conv2d.hpp"
#include "codelets/rectify.hpp"
#include "codelets/words.hpp"
#include "codelets/xsmm.hpp"

#include <cstdint>
#include <vector>

namespace arenite::codelets::conv2d {

/// out[x][k] = [out +] Σ over taps and channels of weight[tap][c][k] · source[x moved by the
/// tap][c], for one row of outputs.
struct RowProduct {
  static constexpr std::int64_t max_taps = 256;  ///< their addresses stand on the stack

  std::int64_t row_step = 0;              ///< source elements from one row of outputs to the next
  std::vector<std::int64_t> tap_offsets;  ///< in the source, in elements
  std::int64_t tap_size = 0;              ///< elements of one tap's weights
  xsmm::BatchReduce gemm = nullptr;

  graph::Support usable() const noexcept {
    if (tap_offsets.empty()) return "more than 256 taps";
    return xsmm::all_made(gemm != nullptr);
  }

  void operator()(const float* sample, const float* weight, std::int64_t y, float* out) const {
    const float *a[max_taps], *b[max_taps];
    const xsmm::Count taps = tap_offsets.size();
    const float* row = sample + y * row_step;
    for (std::size_t t = 0; t < taps; ++t) {
      a[t] = weight + static_cast<std::int64_t>(t) * tap_size;
      b[t] = row + tap_offsets[t];
    }
    gemm(a, b, out, &taps);
  }
};

/// The forward pass over samples whose rows lie `row` elements apart: `columns` outputs a row.
inline RowProduct forward_product(const Geometry& g, std::int64_t row, std::int64_t columns,
                                  bool accumulate) {
  if (g.taps() > RowProduct::max_taps) return {};
  return {.row_step = g.window.stride.h * row,
          .tap_offsets = g.tap_offsets(row),
          .tap_size = g.x.c * g.y.c,
          .gemm = xsmm::dispatch({.m = g.y.c,
                                  .n = columns,
                                  .k = g.x.c,
                                  .lda = g.y.c,
                                  .ldb = g.window.stride.w * g.x.c,
                                  .ldc = g.y.c,
                                  .accumulate = accumulate})};
}

/// The input gradient for stride 1: the output's gradient, correlated with the weights turned by
/// 180 degrees (see `transpose_weights`).
inline RowProduct grad_input_product(const Geometry& g, std::int64_t row) {
  if (g.taps() > RowProduct::max_taps) return {};
  std::vector<std::int64_t> offsets;
  for (std::int64_t ky = 0; ky < g.window.kernel.h; ++ky) {
    for (std::int64_t kx = 0; kx < g.window.kernel.w; ++kx) {
      offsets.push_back((g.window.padding.h - ky * g.window.dilation.h) * row +
                        (g.window.padding.w - kx * g.window.dilation.w) * g.y.c);
    }
  }
  return {.row_step = row,
          .tap_offsets = std::move(offsets),
          .tap_size = g.x.c * g.y.c,
          .gemm = xsmm::dispatch(
              {.m = g.x.c, .n = g.x.w, .k = g.y.c, .lda = g.x.c, .ldb = g.y.c, .ldc = g.x.c})};
}

/// Rows and columns that input gradients need around the output gradient.
inline Pair gradient_border(const Window& window) {
  const Pair reach = window.reach();
  return {std::max<std::int64_t>(reach.h - window.padding.h, 0),
          std::max<std::int64_t>(reach.w - window.padding.w, 0)};
}

/// `Kernel::wanted_halo` of input gradients that read that border of operand 0; a ReLU's output,
/// operand 2, may have any.
inline int grad_input_halo(const OpView& op, std::size_t operand) {
  if (operand == 2) return 0;
  return operand == 0 ? halo_for(gradient_border(Geometry::grad_input(op).window)) : -1;
}

/// [taps][C][K] → [taps][K][C], as the input gradient's product reads weights.
inline void transpose_weights(const float* weight, std::int64_t taps, std::int64_t channels,
                              std::int64_t outputs, float* transposed) {
  for (std::int64_t t = 0; t < taps; ++t, weight += channels * outputs) {
    for (std::int64_t k = 0; k < outputs; ++k) {
      for (std::int64_t c = 0; c < channels; ++c) *transposed++ = weight[c * outputs + k];
    }
  }
}

/// dw[tap] += Σ over one sample's rows of gradient[row] · x[row moved by the tap]ᵀ.
struct WeightProduct {
  Window window;
  std::int64_t row = 0;       ///< x elements from a pixel to the one below
  std::int64_t channels = 0;  ///< and to the one on the right
  std::int64_t outputs = 0;
  xsmm::BatchReduce gemm = nullptr;

  /// Elements of all taps' weights.
  std::int64_t weights() const noexcept { return window.area() * channels * outputs; }

  /// `rows` rows of gradients lie `gradient_row` elements apart.
  void operator()(const float* sample, const float* gradient, std::int64_t gradient_row,
                  std::int64_t rows, float* dw) const {
    const float *a[max_rows], *b[max_rows];
    const std::int64_t step = window.stride.h * row, tap_size = channels * outputs;
    for (std::int64_t top = 0; top < rows; top += max_rows) {
      const std::int64_t n = std::min(max_rows, rows - top);
      const auto count = static_cast<xsmm::Count>(n);
      for (std::int64_t ky = 0; ky < window.kernel.h; ++ky) {
        for (std::int64_t kx = 0; kx < window.kernel.w; ++kx) {
          const float* first = sample + (ky * window.dilation.h - window.padding.h) * row +
                               (kx * window.dilation.w - window.padding.w) * channels;
          for (std::int64_t r = 0; r < n; ++r) {
            a[r] = gradient + (top + r) * gradient_row;
            b[r] = first + (top + r) * step;
          }
          gemm(a, b, dw + (ky * window.kernel.w + kx) * tap_size, &count);
        }
      }
    }
  }

 private:
  static constexpr std::int64_t max_rows = 64;  ///< of one batch
};

/// For samples whose rows lie `row` elements apart, with `columns` gradients a row.
inline WeightProduct weight_product(const Geometry& g, std::int64_t row, std::int64_t columns) {
  return {.window = g.window,
          .row = row,
          .channels = g.x.c,
          .outputs = g.y.c,
          .gemm = xsmm::dispatch({.m = g.y.c,
                                  .n = g.x.c,
                                  .k = columns,
                                  .lda = g.y.c,
                                  .ldb = g.window.stride.w * g.x.c,
                                  .ldc = g.y.c,
                                  .transpose_b = true,
                                  .accumulate = true})};
}

/// Whether two things can be had.
inline graph::Support both(graph::Support one, graph::Support other) noexcept {
  return one ? other : one;
}

/// Where the first pixel of sample i of an operand stands, or is made to stand in scratch. What
/// else the whole batches below ask of their Samples: fits(), scratch_bytes(), clear(), row().
inline const float* sample_of(const PaddedSamples& samples, const KernelCall& call,
                              std::size_t operand, std::int64_t i, float* scratch) {
  return samples.sample(call.in<float>(operand), i, scratch);
}

/// Row products over all rows of all samples of operand 0: the forward pass, and with transposed
/// weights the input gradient.
template <class Samples>
struct Correlation {
  Samples source;
  Image target;
  RowProduct product;
  bool biased = false, relu = false;
  std::optional<Image> output = std::nullopt;  ///< as Geometry has it
  std::int64_t scratch = 0;                    ///< bytes before the samples' in the workspace

  /// There is no product where the source does not fit.
  graph::Support usable() const { return both(source.fits(), product.usable()); }
  std::int64_t workspace_bytes() const { return scratch + source.scratch_bytes(); }

  void run(const KernelCall& call, const float* weight, const float* bias,
           const float* output_of_relu) const {
    auto* samples = static_cast<float*>(call.workspace) + scratch / float_bytes;
    float* to = call.out<float>(0);
    source.clear(samples);
    for (std::int64_t i = 0; i < target.n; ++i) {
      const float* sample = sample_of(source, call, 0, i, samples);
      for (std::int64_t y = 0; y < target.h; ++y) {
        float* out = to + target.at(i, y, 0);
        if (bias) {
          for (std::int64_t x = 0; x < target.w; ++x) {
            std::copy_n(bias, target.c, out + x * target.c);
          }
        }
        product(sample, weight, y, out);
        if (relu) rectify(out, target.w * target.c, out);
        finish_row(output, output_of_relu, i, y, out, target.w * target.c, out);
      }
    }
    zero_halo(to, target);
  }
};

/// Stride 1 only.
template <class Samples>
Correlation<Samples> input_gradient(const Geometry& g, const Samples& gradient) {
  return {.source = gradient,
          .target = g.x,
          .product = gradient.fits() ? grad_input_product(g, gradient.row()) : RowProduct{},
          .output = g.output,
          .scratch = round_up(g.taps() * g.x.c * g.y.c * float_bytes, default_alignment)};
}

/// `weight`: its operand; a ReLU's output may follow.
template <class Samples, std::size_t weight>
void run_input_gradient(const KernelCall& call, const Correlation<Samples>& s) {
  auto* transposed = static_cast<float*>(call.workspace);
  transpose_weights(call.in<float>(weight), static_cast<std::int64_t>(s.product.tap_offsets.size()),
                    s.target.c, s.product.tap_size / s.target.c, transposed);
  s.run(call, transposed, nullptr, s.output ? call.in<float>(weight + 1) : nullptr);
}

/// Of operands x and gradient, whose samples have no border, so that they fit and need no zeros.
template <class Samples>
struct WeightGradient {
  PaddedSamples x;
  Samples gradient;
  std::int64_t rows;
  WeightProduct product;

  graph::Support usable() const { return both(xsmm::all_made(product.gemm), x.fits()); }
  std::int64_t gradient_bytes() const {
    return round_up(gradient.scratch_bytes(), default_alignment);
  }
  std::int64_t workspace_bytes() const { return gradient_bytes() + x.scratch_bytes(); }
};

template <class Samples>
WeightGradient<Samples> weight_gradient(const Geometry& g, const Samples& gradient) {
  const PaddedSamples x(g.x, g.window.padding);
  return {.x = x,
          .gradient = gradient,
          .rows = g.convolved().h,
          .product = weight_product(g, x.row(), g.convolved().w)};
}

template <class Samples>
void run_weight_gradient(const KernelCall& call, const WeightGradient<Samples>& s) {
  auto* gradients = static_cast<float*>(call.workspace);
  float *padded = gradients + s.gradient_bytes() / float_bytes, *dw = call.out<float>(0);
  std::fill_n(dw, s.product.weights(), 0.0f);
  s.x.clear(padded);
  for (std::int64_t i = 0; i < s.x.image().n; ++i) {
    s.product(s.x.sample(call.in<float>(0), i, padded),
              sample_of(s.gradient, call, 1, i, gradients), s.gradient.row(), s.rows, dw);
  }
}

/// Of a state that `build` makes of the op, and that knows whether it is `usable` and its
/// `workspace_bytes`.
template <auto build, auto run, auto wanted_halo>
Kernel xsmm_kernel(bool writes_halo) {
  return {.name = "xsmm",
          .jit = true,
          .supports = [](const OpView& op) { return build(op).usable(); },
          .workspace = [](const OpView& op) { return build(op).workspace_bytes(); },
          .prepare = prepare<build, run>,
          .wanted_halo = wanted_halo,
          .writes_halo = writes_halo};
}

/// The same for an input gradient, of stride 1 alone.
template <auto geometry, auto build, auto run, auto wanted_halo>
Kernel xsmm_grad_input_kernel() {
  Kernel kernel = xsmm_kernel<build, run, wanted_halo>(true);
  kernel.supports = [](const OpView& op) -> graph::Support {
    if (geometry(op).window.stride != Pair{1, 1}) return "a stride above 1";
    return build(op).usable();
  };
  return kernel;
}

}  // namespace arenite::codelets::conv2d
