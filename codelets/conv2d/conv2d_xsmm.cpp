// Convolution kernels on LIBXSMM's batch-reduce GEMM: m = output channels, n = pixels of a row,
// k = input channels, and one address a tap, so that padding, stride and dilation are only
// addresses and leading dimensions.
#include "codelets/conv2d/conv2d.hpp"
#include "codelets/xsmm.hpp"

namespace arenite::codelets::conv2d {
namespace {

using graph::OpView;
using runtime::KernelCall;

constexpr std::int64_t max_taps = 256;  ///< address arrays live on the stack
constexpr std::int64_t max_rows = 64;   ///< of one weight-gradient batch

/// target[row] = Σ over taps of weight[tap] · source[row shifted by the tap]: the forward pass, and
/// with transposed weights the input gradient.
struct Correlation {
  PaddedSamples source;
  Image target;
  std::int64_t step;                      ///< source rows from one target row to the next
  std::vector<std::int64_t> tap_offsets;  ///< in the source, in elements
  xsmm::BatchReduce gemm;
  bool biased;
  std::int64_t scratch;  ///< bytes before the padded sample in the workspace

  void run(const float* from, const float* weight, const float* bias, float* to,
           void* workspace) const;
};

void Correlation::run(const float* from, const float* weight, const float* bias, float* to,
                      void* workspace) const {
  const float *a[max_taps], *b[max_taps];
  const xsmm::Count taps = tap_offsets.size();
  const std::int64_t outputs = target.c, tap_size = source.image().c * outputs;
  for (std::size_t t = 0; t < taps; ++t) a[t] = weight + static_cast<std::int64_t>(t) * tap_size;
  auto* padded = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + scratch);
  source.clear(padded);
  for (std::int64_t i = 0; i < target.n; ++i) {
    const float* sample = source.sample(from, i, padded);
    for (std::int64_t y = 0; y < target.h; ++y) {
      const float* row = sample + y * step * source.row();
      for (std::size_t t = 0; t < taps; ++t) b[t] = row + tap_offsets[t];
      float* out = to + target.at(i, y, 0);
      if (bias) {
        for (std::int64_t x = 0; x < target.w; ++x) std::copy_n(bias, outputs, out + x * outputs);
      }
      gemm(a, b, out, &taps);
    }
  }
  zero_halo(to, target);
}

Correlation forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  PaddedSamples x(g.x, g.window.padding);
  return {.source = x,
          .target = g.y,
          .step = g.window.stride.h,
          .tap_offsets = g.tap_offsets(x.row()),
          .gemm = xsmm::dispatch({.m = g.y.c,
                                  .n = g.y.w,
                                  .k = g.x.c,
                                  .lda = g.y.c,
                                  .ldb = g.window.stride.w * g.x.c,
                                  .ldc = g.y.c,
                                  .accumulate = g.biased}),
          .biased = g.biased,
          .scratch = 0};
}

void run_forward(const KernelCall& call) {
  const auto& s = *static_cast<const Correlation*>(call.state);
  s.run(call.in<float>(0), call.in<float>(1), s.biased ? call.in<float>(2) : nullptr,
        call.out<float>(0), call.workspace);
}

/// Rows and columns that input gradients need around the output gradient.
Pair gradient_border(const Window& window) {
  const Pair reach = window.reach();
  return {std::max<std::int64_t>(reach.h - window.padding.h, 0),
          std::max<std::int64_t>(reach.w - window.padding.w, 0)};
}

/// Stride 1 only: the gradient is then correlated with the weights turned by 180 degrees.
Correlation grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  PaddedSamples gradient(g.y, gradient_border(g.window));
  std::vector<std::int64_t> offsets;
  for (std::int64_t ky = 0; ky < g.window.kernel.h; ++ky) {
    for (std::int64_t kx = 0; kx < g.window.kernel.w; ++kx) {
      offsets.push_back((g.window.padding.h - ky * g.window.dilation.h) * gradient.row() +
                        (g.window.padding.w - kx * g.window.dilation.w) * g.y.c);
    }
  }
  const std::int64_t weights = g.taps() * g.x.c * g.y.c * static_cast<std::int64_t>(sizeof(float));
  return {.source = gradient,
          .target = g.x,
          .step = 1,
          .tap_offsets = std::move(offsets),
          .gemm = xsmm::dispatch(
              {.m = g.x.c, .n = g.x.w, .k = g.y.c, .lda = g.x.c, .ldb = g.y.c, .ldc = g.x.c}),
          .biased = false,
          .scratch = round_up(weights, default_alignment)};
}

void run_grad_input(const KernelCall& call) {
  const auto& s = *static_cast<const Correlation*>(call.state);
  const float* weight = call.in<float>(1);
  const std::int64_t channels = s.target.c, outputs = s.source.image().c;
  auto* transposed = static_cast<float*>(call.workspace);
  for (std::size_t t = 0; t < s.tap_offsets.size(); ++t) {
    const std::int64_t tap = static_cast<std::int64_t>(t) * channels * outputs;
    for (std::int64_t k = 0; k < outputs; ++k) {
      for (std::int64_t c = 0; c < channels; ++c) {
        transposed[tap + k * channels + c] = weight[tap + c * outputs + k];
      }
    }
  }
  s.run(call.in<float>(0), transposed, nullptr, call.out<float>(0), call.workspace);
}

/// dw[tap] += Σ over rows of gradient[row] · x[row shifted by the tap]ᵀ.
struct GradWeight {
  PaddedSamples x;
  Image gradient;
  std::int64_t step;
  std::vector<std::int64_t> tap_offsets;
  xsmm::BatchReduce gemm;
};

GradWeight grad_weight(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  PaddedSamples x(g.x, g.window.padding);
  return {.x = x,
          .gradient = g.y,
          .step = g.window.stride.h,
          .tap_offsets = g.tap_offsets(x.row()),
          .gemm = xsmm::dispatch({.m = g.y.c,
                                  .n = g.x.c,
                                  .k = g.y.w,
                                  .lda = g.y.c,
                                  .ldb = g.window.stride.w * g.x.c,
                                  .ldc = g.y.c,
                                  .transpose_b = true,
                                  .accumulate = true})};
}

void run_grad_weight(const KernelCall& call) {
  const auto& s = *static_cast<const GradWeight*>(call.state);
  const float *a[max_rows], *b[max_rows];
  const std::int64_t tap_size = s.x.image().c * s.gradient.c;
  auto* padded = static_cast<float*>(call.workspace);
  float* dw = call.out<float>(0);
  std::fill_n(dw, static_cast<std::int64_t>(s.tap_offsets.size()) * tap_size, 0.0f);
  s.x.clear(padded);
  for (std::int64_t i = 0; i < s.gradient.n; ++i) {
    const float* sample = s.x.sample(call.in<float>(0), i, padded);
    for (std::int64_t top = 0; top < s.gradient.h; top += max_rows) {
      const xsmm::Count rows = static_cast<xsmm::Count>(std::min(max_rows, s.gradient.h - top));
      for (std::size_t t = 0; t < s.tap_offsets.size(); ++t) {
        for (std::int64_t r = 0; r < static_cast<std::int64_t>(rows); ++r) {
          a[r] = call.in<float>(1) + s.gradient.at(i, top + r, 0);
          b[r] = sample + (top + r) * s.step * s.x.row() + s.tap_offsets[t];
        }
        s.gemm(a, b, dw + static_cast<std::int64_t>(t) * tap_size, &rows);
      }
    }
  }
}

bool usable(const Correlation& s) { return s.gemm && s.source.fits(); }
bool usable(const GradWeight& s) { return s.gemm && s.x.fits(); }

template <auto build, auto run>
runtime::PreparedKernel prepare(const OpView& op) {
  auto state = build(op);
  return {run, std::make_shared<const decltype(state)>(std::move(state))};
}

}  // namespace

runtime::Kernel xsmm_forward() {
  return {.name = "xsmm",
          .jit = true,
          .supports =
              [](const OpView& op) {
                return Geometry::forward(op).taps() <= max_taps && usable(forward(op));
              },
          .workspace = [](const OpView& op) { return forward(op).source.scratch_bytes(); },
          .prepare = prepare<forward, run_forward>,
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
                const Window window = Geometry::grad_input(op).window;
                return window.stride == Pair{1, 1} && window.area() <= max_taps &&
                       usable(grad_input(op));
              },
          .workspace =
              [](const OpView& op) {
                const Correlation s = grad_input(op);
                return s.scratch + s.source.scratch_bytes();
              },
          .prepare = prepare<grad_input, run_grad_input>,
          .wanted_halo =
              [](const OpView& op, std::size_t i) {
                return i == 0 ? halo_for(gradient_border(Geometry::grad_input(op).window)) : -1;
              },
          .writes_halo = true};
}

runtime::Kernel xsmm_grad_weight() {
  return {.name = "xsmm",
          .jit = true,
          .supports =
              [](const OpView& op) {
                return Geometry::grad_weight(op).taps() <= max_taps && usable(grad_weight(op));
              },
          .workspace = [](const OpView& op) { return grad_weight(op).x.scratch_bytes(); },
          .prepare = prepare<grad_weight, run_grad_weight>,
          .wanted_halo =
              [](const OpView& op, std::size_t i) {
                return i == 0 ? halo_for(Geometry::grad_weight(op).window.padding) : 0;
              }};
}

}  // namespace arenite::codelets::conv2d
