// Convolutions that neither tiles nor cuDNN take: a thread an element, whatever the shape.
#include "codelets/conv2d/conv2d.hpp"
#include "codelets/cuda/sums.hpp"
#include "codelets/cuda/windows.hpp"

namespace arenite::codelets {
namespace {

using conv2d::Geometry;

void run_forward(const KernelCall& call) {
  const Geometry g = *static_cast<const Geometry*>(call.state);
  const float *x = call.in<float>(0), *weight = call.in<float>(1),
              *bias = g.biased ? call.in<float>(2) : nullptr;
  float* y = call.out<float>(0);
  cuda::for_each(call, cuda::elements(g.y), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.y, i);
    float sum = bias != nullptr ? bias[at.c] : 0;
    cuda::each_tap(g.window, g.x, at.y, at.x,
                   [&](std::int64_t tap, std::int64_t row, std::int64_t column) {
                     const float *pixel = x + cuda::index_of(g.x, at.n, row, column, 0),
                                 *w = weight + tap * g.x.c * g.y.c + at.c;
                     for (std::int64_t c = 0; c < g.x.c; ++c) sum += pixel[c] * w[c * g.y.c];
                   });
    y[i] = g.relu && sum <= 0 ? 0 : sum;
  });
}

void run_grad_input(const KernelCall& call) {
  const Geometry g = *static_cast<const Geometry*>(call.state);
  const float *gradient = call.in<float>(0), *weight = call.in<float>(1),
              *output = g.output ? call.in<float>(2) : nullptr;
  float* dx = call.out<float>(0);
  cuda::for_each(call, cuda::elements(g.x), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.x, i);
    float sum = 0;
    cuda::each_window(g.window, g.y.h, g.y.w, at.y, at.x,
                      [&](std::int64_t tap, std::int64_t oy, std::int64_t ox) {
                        const float *dy = gradient + cuda::index_of(g.y, at.n, oy, ox, 0),
                                    *w = weight + (tap * g.x.c + at.c) * g.y.c;
                        for (std::int64_t k = 0; k < g.y.c; ++k) sum += dy[k] * w[k];
                      });
    dx[i] = output != nullptr && output[i] <= 0 ? 0 : sum;
  });
}

/// A sum for each weight, over the samples' output pixels.
cuda::Chunks chunks_of(const Geometry& g) {
  return {g.window.area() * g.x.c * g.y.c, g.y.n * g.y.h * g.y.w};
}

void run_grad_weight(const KernelCall& call) {
  const Geometry g = *static_cast<const Geometry*>(call.state);
  const float *x = call.in<float>(0), *gradient = call.in<float>(1);
  float* dweight = call.out<float>(0);
  cuda::sum_chunks(
      call, chunks_of(g),
      [=] ARENITE_THREAD(std::int64_t i, std::int64_t pixel) {
        const std::int64_t k = i % g.y.c, c = i / g.y.c % g.x.c, tap = i / g.y.c / g.x.c;
        const std::int64_t n = pixel / g.y.w / g.y.h, oy = pixel / g.y.w % g.y.h,
                           ox = pixel % g.y.w;
        const Window& w = g.window;
        const std::int64_t row = oy * w.stride.h - w.padding.h + tap / w.kernel.w * w.dilation.h;
        const std::int64_t column = ox * w.stride.w - w.padding.w + tap % w.kernel.w * w.dilation.w;
        if (row < 0 || row >= g.x.h || column < 0 || column >= g.x.w) return 0.0f;
        return x[cuda::index_of(g.x, n, row, column, c)] * gradient[pixel * g.y.c + k];
      },
      [=] ARENITE_THREAD(std::int64_t i, double total) { dweight[i] = static_cast<float>(total); });
}

}  // namespace

void ARENITE_TILED_KERNELS(conv2d_behind_libraries)(runtime::KernelTable& kernels);

void ARENITE_CUDA_KERNELS(conv2d)(runtime::KernelTable& kernels) {
  ARENITE_TILED_KERNELS(conv2d_behind_libraries)(kernels);
  for (const char* op : {"conv2d", "conv2d_relu"})
    kernels.add(op, cuda::own(prepare<Geometry::forward, run_forward>));
  for (const char* op : {"conv2d_grad_input", "conv2d_grad_input_relu"})
    kernels.add(op, cuda::own(prepare<Geometry::grad_input, run_grad_input>));
  kernels.add("conv2d_grad_weight",
              cuda::own(prepare<Geometry::grad_weight, run_grad_weight>, [](const OpView& op) {
                return chunks_of(Geometry::grad_weight(op)).workspace();
              }));
}

}  // namespace arenite::codelets
