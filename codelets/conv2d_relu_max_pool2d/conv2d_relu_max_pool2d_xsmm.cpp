// The fused convolution on LIBXSMM.
//
//   forward   the rows of one row of windows, then their maxima while they are in cache
//   backward  one sample's gradient spread over its windows (zeros but for the winners), then the
//             convolution's own gradient products
#include "codelets/conv2d/products.hpp"
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d {
namespace {

// ---- forward -----------------------------------------------------------------------------------

struct Forward {
  Geometry g;
  PaddedSamples x;
  conv2d::RowProduct product;

  std::int64_t row() const noexcept { return g.convolved().w * g.y.c; }  ///< floats of one row
  std::int64_t rows_bytes() const noexcept {
    return round_up(g.pool.h * row() * float_bytes, default_alignment);
  }
  std::int64_t workspace_bytes() const { return rows_bytes() + x.scratch_bytes(); }
  graph::Support usable() const { return conv2d::both(product.usable(), x.fits()); }
};

Forward forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  PaddedSamples x(g.x, g.window.padding);
  return {.g = g, .x = x, .product = conv2d::forward_product(g, x.row(), g.convolved().w, false)};
}

/// `count` channels of one window; `side`: its height and width when known at compile time. Winners
/// are 32 bits wide until the end: with bytes in the loop the compiler would want 64 channels a
/// vector.
template <int count, int side>
void pool_channels(const Forward& s, const float* window, const float* bias, float* y,
                   std::uint8_t* code) {
  const std::int64_t height = side ? side : s.g.pool.h, width = side ? side : s.g.pool.w;
  float best[count];
  std::int32_t winner[count];
  std::copy_n(window, count, best);
  std::fill_n(winner, count, 0);
  for (std::int64_t py = 0; py < height; ++py) {
    for (std::int64_t px = 0; px < width; ++px) {
      const float* value = window + py * s.row() + px * s.g.y.c;
      const auto tap = static_cast<std::int32_t>(py * width + px);
#pragma omp simd
      for (int c = 0; c < count; ++c) {
        const bool wins = (value[c] > best[c]) | (value[c] != value[c]);
        best[c] = wins ? value[c] : best[c];
        winner[c] = wins ? tap : winner[c];
      }
    }
  }
#pragma omp simd
  for (int c = 0; c < count; ++c) {
    // Rounding keeps the order, so that the bias may come after the maximum (see `pool`).
    const float value = best[c] + (bias ? bias[c] : 0.0f);
    y[c] = value <= 0 ? 0 : value;
    winner[c] = value <= 0 ? dead : winner[c];
  }
  for (int c = 0; c < count; ++c) code[c] = static_cast<std::uint8_t>(winner[c]);
}

template <int side>
void run_pooled(const KernelCall& call, const Forward& s) {
  const Geometry& g = s.g;
  const float *weight = call.in<float>(1), *bias = g.biased ? call.in<float>(2) : nullptr;
  auto* rows = static_cast<float*>(call.workspace);
  float* padded = rows + s.rows_bytes() / float_bytes;
  s.x.clear(padded);
  for (std::int64_t i = 0; i < g.y.n; ++i) {
    const float* sample = s.x.sample(call.in<float>(0), i, padded);
    for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
      for (std::int64_t py = 0; py < g.pool.h; ++py) {
        s.product(sample, weight, oy * g.pool.h + py, rows + py * s.row());
      }
      for (std::int64_t ox = 0; ox < g.y.w; ++ox) {
        const float* window = rows + ox * g.pool.w * g.y.c;
        float* y = call.out<float>(0) + g.y.at(i, oy, ox);
        std::uint8_t* code = call.out<std::uint8_t>(1) + g.code.at(i, oy, ox);
        std::int64_t k = 0;
        for (; k + 16 <= g.y.c; k += 16) {
          pool_channels<16, side>(s, window + k, bias ? bias + k : nullptr, y + k, code + k);
        }
        for (; k < g.y.c; ++k) {
          pool_channels<1, side>(s, window + k, bias ? bias + k : nullptr, y + k, code + k);
        }
      }
    }
  }
  zero_halo(call.out<float>(0), g.y);
  zero_halo(call.out<std::uint8_t>(1), g.code);
}

// ---- backward ----------------------------------------------------------------------------------

/// The gradients of the convolution's outputs, as far as windows cover them, one sample's at a
/// time.
struct Spread {
  Geometry g;
  Pair border;  ///< rows and columns of zeros above and left
  Pair size;    ///< rows and columns, zeros on all sides included

  std::int64_t row() const noexcept { return size.w * g.y.c; }
  /// In floating point: with wild dilations the product might not fit an integer.
  double floats() const noexcept {
    return static_cast<double>(size.h) * static_cast<double>(size.w) * static_cast<double>(g.y.c);
  }
  std::int64_t scratch_bytes() const noexcept {
    return static_cast<std::int64_t>(floats()) * float_bytes;
  }
  graph::Support fits() const noexcept {
    const Pair covered = g.convolved();
    if (in_proportion(floats(), static_cast<double>(covered.h * covered.w * g.y.c))) return {};
    return "a padded gradient out of proportion to the image";
  }
  void clear(float* scratch) const noexcept {
    std::memset(scratch, 0, static_cast<std::size_t>(scratch_bytes()));
  }
};

/// Spreads one sample's gradient over its windows: every covered pixel is written. The codes stand
/// behind the gradient.
const float* sample_of(const Spread& s, const KernelCall& call, std::size_t operand, std::int64_t i,
                       float* scratch) {
  const Geometry& g = s.g;
  const std::int64_t row = s.row();
  float* first = scratch + s.border.h * row + s.border.w * g.y.c;
  for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
    for (std::int64_t ox = 0; ox < g.y.w; ++ox) {
      const float* dy = call.in<float>(operand) + g.y.at(i, oy, ox);
      const std::uint8_t* code = call.in<std::uint8_t>(operand + 1) + g.code.at(i, oy, ox);
      for (std::int64_t p = 0; p < g.pool.h * g.pool.w; ++p) {
        const auto tap = static_cast<std::uint8_t>(p);
        const Pair pixel = g.winner(oy, ox, tap);
        float* out = first + pixel.h * row + pixel.w * g.y.c;
#pragma omp simd
        for (std::int64_t k = 0; k < g.y.c; ++k) {
          out[k] = static_cast<std::int32_t>(code[k]) == tap ? dy[k] : 0.0f;
        }
      }
    }
  }
  return first;
}

conv2d::Correlation<Spread> grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  const Pair border = conv2d::gradient_border(g.window), all = g.window.output({g.x.h, g.x.w});
  return conv2d::input_gradient(g, Spread{g, border, {all.h + 2 * border.h, all.w + 2 * border.w}});
}

conv2d::WeightGradient<Spread> grad_weight(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  return conv2d::weight_gradient(g, Spread{g, {}, g.convolved()});
}

void run_grad_weight(const KernelCall& call, const conv2d::WeightGradient<Spread>& s) {
  conv2d::run_weight_gradient<Spread>(call, s);
  const Geometry& g = s.gradient.g;
  const std::int64_t outputs = g.y.c;
  float* db = call.out<float>(1);
  std::fill_n(db, outputs, 0.0f);
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    const float* dy = call.in<float>(1) + g.y.at(i, oy, ox);
    const std::uint8_t* code = call.in<std::uint8_t>(2) + g.code.at(i, oy, ox);
#pragma omp simd
    for (std::int64_t k = 0; k < outputs; ++k) db[k] += code[k] < dead ? dy[k] : 0.0f;
  });
}

void run_forward(const KernelCall& call, const Forward& s) {
  s.g.pool == Pair{2, 2} ? run_pooled<2>(call, s) : run_pooled<0>(call, s);
}

}  // namespace

Kernel xsmm_forward() {
  return conv2d::xsmm_kernel<forward, run_forward, padding_halo<Geometry::forward>>(true);
}
Kernel xsmm_grad_input() {
  return conv2d::xsmm_grad_input_kernel<Geometry::grad_input, grad_input,
                                        conv2d::run_input_gradient<Spread, 2>,
                                        skipped_halo<0, 1, 3>>();
}
Kernel xsmm_grad_weight() {
  return conv2d::xsmm_kernel<grad_weight, run_grad_weight, padding_halo<Geometry::grad_weight, 0>>(
      false);
}

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
