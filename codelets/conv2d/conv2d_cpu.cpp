// Plain convolution kernels: any stride, dilation, padding and halo. The innermost loop always runs
// over output channels, which lie side by side in weights and outputs.
#include "codelets/conv2d/conv2d.hpp"
#include "codelets/rectify.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets::conv2d {
namespace {

void run_forward(const KernelCall& call, const Geometry& g) {
  const float *x = call.in<float>(0), *weight = call.in<float>(1),
              *bias = g.biased ? call.in<float>(2) : nullptr;
  const std::int64_t channels = g.x.c, outputs = g.y.c;
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    float* y = call.out<float>(0) + g.y.at(i, oy, ox);
    if (bias) {
      std::copy_n(bias, outputs, y);
    } else {
      std::fill_n(y, outputs, 0.0f);
    }
    for_each_tap(g.window, g.x, {oy, ox}, [&](std::int64_t tap, std::int64_t iy, std::int64_t ix) {
      const float* pixel = x + g.x.at(i, iy, ix);
      for (std::int64_t c = 0; c < channels; ++c) {
        const float* w = weight + (tap * channels + c) * outputs;
        const float value = pixel[c];
#pragma omp simd
        for (std::int64_t k = 0; k < outputs; ++k) y[k] += value * w[k];
      }
    });
    if (g.relu) rectify(y, outputs, y);
  });
  zero_halo(call.out<float>(0), g.y);
}

void run_grad_input(const KernelCall& call, const Geometry& g) {
  const float *gradient = call.in<float>(0), *weight = call.in<float>(1);
  const std::int64_t channels = g.x.c, outputs = g.y.c;
  float* dx = call.out<float>(0);
  std::fill_n(dx, g.x.n * g.x.plane, 0.0f);
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    const float* dy = gradient + g.y.at(i, oy, ox);
    for_each_tap(g.window, g.x, {oy, ox}, [&](std::int64_t tap, std::int64_t iy, std::int64_t ix) {
      float* pixel = dx + g.x.at(i, iy, ix);
      for (std::int64_t c = 0; c < channels; ++c) {
        const float* w = weight + (tap * channels + c) * outputs;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t k = 0; k < outputs; ++k) sum += dy[k] * w[k];
        pixel[c] += sum;
      }
    });
  });
  if (g.output) finish_rows(*g.output, call.in<float>(2), g.x, dx);
}

void run_grad_weight(const KernelCall& call, const Geometry& g) {
  const float *x = call.in<float>(0), *gradient = call.in<float>(1);
  const std::int64_t channels = g.x.c, outputs = g.y.c;
  float* dw = call.out<float>(0);
  std::fill_n(dw, g.taps() * channels * outputs, 0.0f);
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    const float* dy = gradient + g.y.at(i, oy, ox);
    for_each_tap(g.window, g.x, {oy, ox}, [&](std::int64_t tap, std::int64_t iy, std::int64_t ix) {
      const float* pixel = x + g.x.at(i, iy, ix);
      for (std::int64_t c = 0; c < channels; ++c) {
        float* w = dw + (tap * channels + c) * outputs;
        const float value = pixel[c];
#pragma omp simd
        for (std::int64_t k = 0; k < outputs; ++k) w[k] += value * dy[k];
      }
    });
  });
}

}  // namespace

Kernel plain_forward() {
  return plain_with_halos<prepare<Geometry::forward, run_forward>, skipped_halo<0>>();
}

Kernel plain_grad_input() {
  return plain_with_halos<prepare<Geometry::grad_input, run_grad_input>, skipped_halo<0, 2>>();
}

Kernel plain_grad_weight() {
  return {.name = "plain",
          .prepare = prepare<Geometry::grad_weight, run_grad_weight>,
          .wanted_halo = skipped_halo<0, 1>};
}

}  // namespace arenite::codelets::conv2d
