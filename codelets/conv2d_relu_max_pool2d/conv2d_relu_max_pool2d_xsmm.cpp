// The fused convolution on LIBXSMM.
//
//   forward   the rows of one row of windows, then their maxima while they are in cache
//   backward  one sample's gradient spread over its windows (zeros but for the winners), then the
//             convolution's own gradient products
#include "codelets/conv2d/conv2d_xsmm.hpp"
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d {
namespace {

using graph::OpView;
using runtime::KernelCall;

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));

/// The convolution's own output, as far as windows cover it: `samples` of it, never in the plan.
Image convolved_image(const Geometry& g, std::int64_t samples, std::int64_t halo) {
  const Pair size = g.convolved();
  graph::Value value;
  value.shape = Shape{samples, size.h, size.w, g.y.c};
  value.layout.halo = static_cast<int>(halo);
  return Image(value);
}

conv2d::Geometry convolution(const Geometry& g, std::int64_t halo = 0) {
  return {.x = g.x, .y = convolved_image(g, g.y.n, halo), .window = g.window, .biased = g.biased};
}

// ---- forward -----------------------------------------------------------------------------------

struct Forward {
  Geometry g;
  PaddedSamples x;
  conv2d::RowProduct product;

  std::int64_t row() const noexcept { return g.convolved().w * g.y.c; }  ///< floats of one row
  std::int64_t rows_bytes() const noexcept {
    return round_up(g.pool.h * row() * float_bytes, default_alignment);
  }
};

Forward forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  PaddedSamples x(g.x, g.window.padding);
  return {.g = g,
          .x = x,
          .product = conv2d::forward_product(convolution(g), x.row(), g.convolved().w, false)};
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
    // Rounding keeps the order, so that the bias may come after the maximum.
    const float value = best[c] + (bias ? bias[c] : 0.0f);
    y[c] = value <= 0 ? 0 : value;
    winner[c] = value <= 0 ? dead : winner[c];
  }
  for (int c = 0; c < count; ++c) code[c] = static_cast<std::uint8_t>(winner[c]);
}

template <int side>
void run_forward(const KernelCall& call) {
  const auto& s = *static_cast<const Forward*>(call.state);
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

/// Spreads one sample's gradient over its windows: every covered pixel of `to` is written.
void spread(const Geometry& g, std::int64_t i, const float* gradient, const std::uint8_t* codes,
            const Image& convolved, float* to) {
  for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
    for (std::int64_t ox = 0; ox < g.y.w; ++ox) {
      const float* dy = gradient + g.y.at(i, oy, ox);
      const std::uint8_t* code = codes + g.code.at(i, oy, ox);
      for (std::int64_t p = 0; p < g.pool.h * g.pool.w; ++p) {
        const auto tap = static_cast<std::uint8_t>(p);
        const Pair pixel = g.winner(oy, ox, tap);
        float* out = to + convolved.at(0, pixel.h, pixel.w);
#pragma omp simd
        for (std::int64_t k = 0; k < g.y.c; ++k) {
          out[k] = static_cast<std::int32_t>(code[k]) == tap ? dy[k] : 0.0f;
        }
      }
    }
  }
}

struct GradInput {
  Geometry g;
  Image convolved;  ///< one sample, with the zeros that the products read around it
  conv2d::RowProduct product;

  std::int64_t weights_bytes() const noexcept {
    return round_up(g.taps() * g.x.c * g.y.c * float_bytes, default_alignment);
  }
};

/// Stride 1 only.
GradInput grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  const Pair border = conv2d::gradient_border(g.window), covered = g.convolved(),
             all = g.window.output({g.x.h, g.x.w});
  const std::int64_t halo = std::max(border.h + all.h - covered.h, border.w + all.w - covered.w);
  const Image convolved = convolved_image(g, 1, halo);
  return {.g = g,
          .convolved = convolved,
          .product = conv2d::grad_input_product(convolution(g, halo), convolved.row)};
}

void run_grad_input(const KernelCall& call) {
  const auto& s = *static_cast<const GradInput*>(call.state);
  auto* transposed = static_cast<float*>(call.workspace);
  float* sample = transposed + s.weights_bytes() / float_bytes;
  float* dx = call.out<float>(0);
  conv2d::transpose_weights(call.in<float>(2), s.g.taps(), s.g.x.c, s.g.y.c, transposed);
  zero_halo(sample, s.convolved);
  for (std::int64_t i = 0; i < s.g.y.n; ++i) {
    spread(s.g, i, call.in<float>(0), call.in<std::uint8_t>(1), s.convolved, sample);
    for (std::int64_t y = 0; y < s.g.x.h; ++y) {
      s.product(sample + s.convolved.at(0, 0, 0), transposed, y, dx + s.g.x.at(i, y, 0));
    }
  }
  zero_halo(dx, s.g.x);
}

struct GradWeight {
  Geometry g;
  Image convolved;  ///< one sample
  PaddedSamples x;
  conv2d::WeightProduct product;

  std::int64_t sample_bytes() const noexcept {
    return round_up(convolved.plane * float_bytes, default_alignment);
  }
};

GradWeight grad_weight(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  PaddedSamples x(g.x, g.window.padding);
  return {.g = g,
          .convolved = convolved_image(g, 1, 0),
          .x = x,
          .product = conv2d::weight_product(convolution(g), x.row(), g.convolved().w)};
}

void run_grad_weight(const KernelCall& call) {
  const auto& s = *static_cast<const GradWeight*>(call.state);
  auto* spread_out = static_cast<float*>(call.workspace);
  float* padded = spread_out + s.sample_bytes() / float_bytes;
  const float* gradient = call.in<float>(1);
  const auto* codes = call.in<std::uint8_t>(2);
  float *dw = call.out<float>(0), *db = call.out<float>(1);
  const std::int64_t outputs = s.g.y.c;
  std::fill_n(dw, s.g.taps() * s.g.x.c * outputs, 0.0f);
  std::fill_n(db, outputs, 0.0f);
  s.x.clear(padded);
  for (std::int64_t i = 0; i < s.g.y.n; ++i) {
    spread(s.g, i, gradient, codes, s.convolved, spread_out);
    s.product(s.x.sample(call.in<float>(0), i, padded), spread_out, s.convolved.row, s.convolved.h,
              dw);
    for (std::int64_t oy = 0; oy < s.g.y.h; ++oy) {
      for (std::int64_t ox = 0; ox < s.g.y.w; ++ox) {
        const float* dy = gradient + s.g.y.at(i, oy, ox);
        const std::uint8_t* code = codes + s.g.code.at(i, oy, ox);
#pragma omp simd
        for (std::int64_t k = 0; k < outputs; ++k) db[k] += code[k] == dead ? 0.0f : dy[k];
      }
    }
  }
}

// ---- kernels -----------------------------------------------------------------------------------

bool usable(const Forward& s) { return s.product.gemm && s.x.fits(); }
bool usable(const GradInput& s) { return s.product.gemm; }
bool usable(const GradWeight& s) { return s.product.gemm && s.x.fits(); }

template <auto geometry, auto build>
bool supports(const OpView& op) {
  const Geometry g = geometry(op);
  const Pair border = g.window.reach(), size = g.convolved();
  // In floating point: what is too large for scratch might not fit an integer.
  const double spread_out = static_cast<double>(size.h + 2 * border.h + 2 * g.pool.h) *
                            static_cast<double>(size.w + 2 * border.w + 2 * g.pool.w) *
                            static_cast<double>(g.y.c);
  constexpr double most = 1 << 28;  // floats
  return g.taps() <= conv2d::max_taps && spread_out <= most && usable(build(op));
}

template <auto build>
runtime::PreparedKernel prepare(const OpView& op, runtime::KernelFunction run) {
  auto state = build(op);
  return {run, std::make_shared<const decltype(state)>(std::move(state))};
}

}  // namespace

runtime::Kernel xsmm_forward() {
  return {.name = "xsmm",
          .jit = true,
          .supports = supports<Geometry::forward, forward>,
          .workspace =
              [](const OpView& op) {
                const Forward s = forward(op);
                return s.rows_bytes() + s.x.scratch_bytes();
              },
          .prepare =
              [](const OpView& op) {
                const bool common = Geometry::forward(op).pool == Pair{2, 2};
                return prepare<forward>(op, common ? run_forward<2> : run_forward<0>);
              },
          .wanted_halo =
              [](const OpView& op, std::size_t i) {
                return i == 0 ? halo_for(Geometry::forward(op).window.padding) : -1;
              },
          .writes_halo = true};
}

runtime::Kernel xsmm_grad_input() {
  return {.name = "xsmm",
          .jit = true,
          .supports =
              [](const OpView& op) {
                return Geometry::grad_input(op).window.stride == Pair{1, 1} &&
                       supports<Geometry::grad_input, grad_input>(op);
              },
          .workspace =
              [](const OpView& op) {
                const GradInput s = grad_input(op);
                return s.weights_bytes() + s.convolved.plane * float_bytes;
              },
          .prepare = [](const OpView& op) { return prepare<grad_input>(op, run_grad_input); },
          .wanted_halo = skipped_halo<0, 1>,
          .writes_halo = true};
}

runtime::Kernel xsmm_grad_weight() {
  return {.name = "xsmm",
          .jit = true,
          .supports = supports<Geometry::grad_weight, grad_weight>,
          .workspace =
              [](const OpView& op) {
                const GradWeight s = grad_weight(op);
                return s.sample_bytes() + s.x.scratch_bytes();
              },
          .prepare = [](const OpView& op) { return prepare<grad_weight>(op, run_grad_weight); },
          .wanted_halo =
              [](const OpView& op, std::size_t i) {
                return i == 0 ? halo_for(Geometry::grad_weight(op).window.padding) : 0;
              }};
}

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
