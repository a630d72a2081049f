// Convolutions that neither tiles nor cuDNN take, alone or with ReLU and max pooling: a thread an
// element, whatever the shape. What both forms share.
#pragma once

#include "codelets/conv2d/conv2d.hpp"
#include "codelets/cuda/sums.hpp"
#include "codelets/cuda/windows.hpp"
#include "codelets/pool2d.hpp"

namespace arenite::codelets::conv2d {
inline namespace ARENITE_GRIDS {

/// `sum`, and output channel k of the convolution at (oy, ox).
ARENITE_GPU inline float add_products(float sum, const Geometry& g, const float* x,
                                      const float* weight, std::int64_t n, std::int64_t oy,
                                      std::int64_t ox, std::int64_t k) {
  cuda::each_tap(g.window, g.x, oy, ox,
                 [&](std::int64_t tap, std::int64_t row, std::int64_t column) {
                   const float *pixel = x + cuda::index_of(g.x, n, row, column, 0),
                               *w = weight + tap * g.x.c * g.y.c + k;
                   for (std::int64_t c = 0; c < g.x.c; ++c) sum += pixel[c] * w[c * g.y.c];
                 });
  return sum;
}

template <bool pooled>
void run_grad_input(const KernelCall& call, const Geometry& g) {
  const float *gradient = call.in<float>(0), *weight = call.in<float>(pooled ? 2 : 1),
              *output = g.output ? call.in<float>(pooled ? 3 : 2) : nullptr;
  const auto* code = pooled ? call.in<std::uint8_t>(1) : nullptr;
  float* dx = call.out<float>(0);
  cuda::for_each(call, cuda::elements(g.x), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.x, i);
    float sum = 0;
    cuda::each_window(
        g.window, g.y.h * g.pool.h, g.y.w * g.pool.w, at.y, at.x,
        [&](std::int64_t tap, std::int64_t cy, std::int64_t cx) {
          const std::int64_t oy = pooled ? cy / g.pool.h : cy, ox = pooled ? cx / g.pool.w : cx,
                             from = cuda::index_of(g.y, at.n, oy, ox, 0),
                             mine = (cy - oy * g.pool.h) * g.pool.w + cx - ox * g.pool.w;
          const float* w = weight + (tap * g.x.c + at.c) * g.y.c;
          for (std::int64_t k = 0; k < g.y.c; ++k) {
            if (!pooled || code[from + k] == mine) sum += gradient[from + k] * w[k];
          }
        });
    dx[i] = output != nullptr && output[i] <= 0 ? 0 : sum;
  });
}

/// A sum for each weight, and behind pooling for each bias, over the samples' output pixels.
template <bool pooled>
cuda::Chunks chunks_of(const Geometry& g) {
  return {(g.taps() * g.x.c + (pooled ? 1 : 0)) * g.y.c, g.y.n * g.y.h * g.y.w};
}

template <bool pooled>
void run_grad_weight(const KernelCall& call, const Geometry& g) {
  const float *x = call.in<float>(0), *gradient = call.in<float>(1);
  const auto* code = pooled ? call.in<std::uint8_t>(2) : nullptr;
  float *dweight = call.out<float>(0), *dbias = pooled ? call.out<float>(1) : nullptr;
  const std::int64_t weights = g.taps() * g.x.c * g.y.c;
  constexpr std::uint8_t dead = pool2d::dead;
  cuda::sum_chunks(
      call, chunks_of<pooled>(g),
      [=] ARENITE_THREAD(std::int64_t i, std::int64_t pixel) {
        const std::int64_t k = i % g.y.c, winner = pooled ? code[pixel * g.y.c + k] : 0;
        if ((winner & dead) != 0) return 0.0f;
        const float dy = gradient[pixel * g.y.c + k];
        if (i >= weights) return dy;
        const std::int64_t c = i / g.y.c % g.x.c, tap = i / g.y.c / g.x.c;
        const std::int64_t n = pixel / g.y.w / g.y.h, oy = pixel / g.y.w % g.y.h,
                           ox = pixel % g.y.w;
        const Window& w = g.window;
        const std::int64_t row = (oy * g.pool.h + winner / g.pool.w) * w.stride.h - w.padding.h +
                                 tap / w.kernel.w * w.dilation.h;
        const std::int64_t column = (ox * g.pool.w + winner % g.pool.w) * w.stride.w - w.padding.w +
                                    tap % w.kernel.w * w.dilation.w;
        if (row < 0 || row >= g.x.h || column < 0 || column >= g.x.w) return 0.0f;
        return x[cuda::index_of(g.x, n, row, column, c)] * dy;
      },
      [=] ARENITE_THREAD(std::int64_t i, double total) {
        (i < weights ? dweight[i] : dbias[i - weights]) = static_cast<float>(total);
      });
}

/// Those of the gradients of `op`.
template <bool pooled>
void add_gradients(runtime::KernelTable& kernels, const std::string& op) {
  for (const char* input : {"_grad_input", "_grad_input_relu"})
    kernels.add(op + input, cuda::own(prepare<Geometry::grad_input, run_grad_input<pooled>>));
  kernels.add(
      op + "_grad_weight",
      cuda::own(prepare<Geometry::grad_weight, run_grad_weight<pooled>>, [](const OpView& view) {
        return chunks_of<pooled>(Geometry::grad_weight(view)).workspace();
      }));
}

}  // namespace ARENITE_GRIDS
}  // namespace arenite::codelets::conv2d
