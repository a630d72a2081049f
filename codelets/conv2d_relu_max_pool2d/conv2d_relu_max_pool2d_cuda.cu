// The fused operation where neither tiles nor cuDNN take it: a thread an element, whatever the
// shape.
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"
#include "codelets/cuda/sums.hpp"
#include "codelets/cuda/windows.hpp"

namespace arenite::codelets {
namespace {

using conv2d_relu_max_pool2d::Geometry;

/// Output channel k of the convolution at (oy, ox), without the bias.
ARENITE_GPU float convolved(const Geometry& g, const float* x, const float* weight, std::int64_t n,
                            std::int64_t oy, std::int64_t ox, std::int64_t k) {
  float sum = 0;
  cuda::each_tap(g.window, g.x, oy, ox,
                 [&](std::int64_t tap, std::int64_t row, std::int64_t column) {
                   const float *pixel = x + cuda::index_of(g.x, n, row, column, 0),
                               *w = weight + tap * g.x.c * g.y.c + k;
                   for (std::int64_t c = 0; c < g.x.c; ++c) sum += pixel[c] * w[c * g.y.c];
                 });
  return sum;
}

void run_forward(const KernelCall& call) {
  const Geometry g = *static_cast<const Geometry*>(call.state);
  const float *x = call.in<float>(0), *weight = call.in<float>(1),
              *bias = g.biased ? call.in<float>(2) : nullptr;
  float* y = call.out<float>(0);
  auto* code = call.out<std::uint8_t>(1);
  constexpr std::uint8_t dead = pool2d::dead;
  cuda::for_each(call, cuda::elements(g.y), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.y, i);
    const float offset = bias != nullptr ? bias[at.c] : 0;
    float best = 0;
    std::uint8_t winner = dead;
    for (std::int64_t tap = 0; tap < g.pool.h * g.pool.w; ++tap) {
      const float value = offset + convolved(g, x, weight, at.n, at.y * g.pool.h + tap / g.pool.w,
                                             at.x * g.pool.w + tap % g.pool.w, at.c);
      // The first of equals; a NaN wins.
      if (!(value > best) && value == value) continue;
      best = value;
      winner = static_cast<std::uint8_t>(tap);
    }
    y[i] = best;
    code[i] = winner;
  });
}

void run_grad_input(const KernelCall& call) {
  const Geometry g = *static_cast<const Geometry*>(call.state);
  const float *gradient = call.in<float>(0), *weight = call.in<float>(2),
              *output = g.output ? call.in<float>(3) : nullptr;
  const auto* code = call.in<std::uint8_t>(1);
  float* dx = call.out<float>(0);
  cuda::for_each(call, cuda::elements(g.x), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.x, i);
    float sum = 0;
    cuda::each_window(g.window, g.y.h * g.pool.h, g.y.w * g.pool.w, at.y, at.x,
                      [&](std::int64_t tap, std::int64_t cy, std::int64_t cx) {
                        const std::int64_t pixel =
                            cuda::index_of(g.y, at.n, cy / g.pool.h, cx / g.pool.w, 0);
                        const std::int64_t mine = cy % g.pool.h * g.pool.w + cx % g.pool.w;
                        const float* w = weight + (tap * g.x.c + at.c) * g.y.c;
                        for (std::int64_t k = 0; k < g.y.c; ++k) {
                          if (code[pixel + k] == mine) sum += gradient[pixel + k] * w[k];
                        }
                      });
    dx[i] = output != nullptr && output[i] <= 0 ? 0 : sum;
  });
}

/// A sum for each weight and then each bias, over the samples' pooled pixels.
cuda::Chunks chunks_of(const Geometry& g) {
  return {(g.window.area() * g.x.c + 1) * g.y.c, g.y.n * g.y.h * g.y.w};
}

void run_grad_weight(const KernelCall& call) {
  const Geometry g = *static_cast<const Geometry*>(call.state);
  const float *x = call.in<float>(0), *gradient = call.in<float>(1);
  const auto* code = call.in<std::uint8_t>(2);
  float *dweight = call.out<float>(0), *dbias = call.out<float>(1);
  const std::int64_t weights = g.window.area() * g.x.c * g.y.c;
  constexpr std::uint8_t dead = pool2d::dead;
  cuda::sum_chunks(
      call, chunks_of(g),
      [=] ARENITE_THREAD(std::int64_t i, std::int64_t pixel) {
        const std::int64_t k = i % g.y.c, winner = code[pixel * g.y.c + k];
        if ((winner & dead) != 0) return 0.0f;
        const float dy = gradient[pixel * g.y.c + k];
        if (i >= weights) return dy;
        const std::int64_t c = i / g.y.c % g.x.c, tap = i / g.y.c / g.x.c;
        const std::int64_t n = pixel / g.y.w / g.y.h, py = pixel / g.y.w % g.y.h,
                           px = pixel % g.y.w;
        const Window& w = g.window;
        const std::int64_t row = (py * g.pool.h + winner / g.pool.w) * w.stride.h - w.padding.h +
                                 tap / w.kernel.w * w.dilation.h;
        const std::int64_t column = (px * g.pool.w + winner % g.pool.w) * w.stride.w - w.padding.w +
                                    tap % w.kernel.w * w.dilation.w;
        if (row < 0 || row >= g.x.h || column < 0 || column >= g.x.w) return 0.0f;
        return x[cuda::index_of(g.x, n, row, column, c)] * dy;
      },
      [=] ARENITE_THREAD(std::int64_t i, double total) {
        (i < weights ? dweight[i] : dbias[i - weights]) = static_cast<float>(total);
      });
}

}  // namespace

void ARENITE_CUDA_KERNELS(conv2d_relu_max_pool2d)(runtime::KernelTable& kernels) {
  kernels.add("conv2d_relu_max_pool2d", cuda::own(prepare<Geometry::forward, run_forward>));
  for (const char* op :
       {"conv2d_relu_max_pool2d_grad_input", "conv2d_relu_max_pool2d_grad_input_relu"})
    kernels.add(op, cuda::own(prepare<Geometry::grad_input, run_grad_input>));
  kernels.add("conv2d_relu_max_pool2d_grad_weight",
              cuda::own(prepare<Geometry::grad_weight, run_grad_weight>, [](const OpView& op) {
                return chunks_of(Geometry::grad_weight(op)).workspace();
              }));
}

}  // namespace arenite::codelets
