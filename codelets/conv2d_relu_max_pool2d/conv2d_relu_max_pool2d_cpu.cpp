// Plain loops for any shape: slow, never wrong.
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"
#include "codelets/rectify.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d {
namespace {

void run_forward(const KernelCall& call, const Geometry& g) {
  const float *x = call.in<float>(0), *weight = call.in<float>(1);
  const float* bias = g.biased ? call.in<float>(2) : nullptr;
  auto* value = static_cast<float*>(call.workspace);
  const std::int64_t outputs = g.y.c, channels = g.x.c;
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    float* best = call.out<float>(0) + g.y.at(i, oy, ox);
    std::uint8_t* code = call.out<std::uint8_t>(1) + g.code.at(i, oy, ox);
    for (std::int64_t p = 0; p < g.pool.h * g.pool.w; ++p) {
      const auto tap = static_cast<std::uint8_t>(p);
      if (bias) std::copy_n(bias, outputs, value);
      if (!bias) std::fill_n(value, outputs, 0.0f);
      for_each_tap(g.window, g.x, g.winner(oy, ox, tap),
                   [&](std::int64_t t, std::int64_t iy, std::int64_t ix) {
                     const float* pixel = x + g.x.at(i, iy, ix);
                     for (std::int64_t c = 0; c < channels; ++c) {
                       const float factor = pixel[c];
                       const float* w = weight + (t * channels + c) * outputs;
#pragma omp simd
                       for (std::int64_t k = 0; k < outputs; ++k) value[k] += factor * w[k];
                     }
                   });
      if (p == 0) {
        std::copy_n(value, outputs, best);
        std::fill_n(code, outputs, tap);
        continue;
      }
#pragma omp simd
      for (std::int64_t k = 0; k < outputs; ++k) {
        const bool wins = (value[k] > best[k]) | (value[k] != value[k]);
        best[k] = wins ? value[k] : best[k];
        code[k] = wins ? tap : code[k];
      }
    }
#pragma omp simd
    for (std::int64_t k = 0; k < outputs; ++k) {
      const bool off = best[k] <= 0;
      best[k] = off ? 0 : best[k];
      code[k] = off ? dead : code[k];
    }
  });
  zero_halo(call.out<float>(0), g.y);
  zero_halo(call.out<std::uint8_t>(1), g.code);
}

void run_grad_input(const KernelCall& call, const Geometry& g) {
  const float *gradient = call.in<float>(0), *weight = call.in<float>(2);
  const auto* codes = call.in<std::uint8_t>(1);
  float* dx = call.out<float>(0);
  std::fill_n(dx, g.x.n * g.x.plane, 0.0f);
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    const float* dy = gradient + g.y.at(i, oy, ox);
    const std::uint8_t* code = codes + g.code.at(i, oy, ox);
    for (std::int64_t k = 0; k < g.y.c; ++k) {
      if (code[k] & dead) continue;
      for_each_tap(g.window, g.x, g.winner(oy, ox, code[k]),
                   [&](std::int64_t t, std::int64_t iy, std::int64_t ix) {
                     const float* w = weight + t * g.x.c * g.y.c + k;
                     float* pixel = dx + g.x.at(i, iy, ix);
                     for (std::int64_t c = 0; c < g.x.c; ++c) pixel[c] += dy[k] * w[c * g.y.c];
                   });
    }
  });
  if (g.output) finish_rows(*g.output, call.in<float>(3), g.x, dx);
}

void run_grad_weight(const KernelCall& call, const Geometry& g) {
  const float *x = call.in<float>(0), *gradient = call.in<float>(1);
  const auto* codes = call.in<std::uint8_t>(2);
  float *dw = call.out<float>(0), *db = call.out<float>(1);
  std::fill_n(dw, g.taps() * g.x.c * g.y.c, 0.0f);
  std::fill_n(db, g.y.c, 0.0f);
  for_each_pixel(g.y, [&](std::int64_t i, std::int64_t oy, std::int64_t ox) {
    const float* dy = gradient + g.y.at(i, oy, ox);
    const std::uint8_t* code = codes + g.code.at(i, oy, ox);
    for (std::int64_t k = 0; k < g.y.c; ++k) {
      if (code[k] & dead) continue;
      db[k] += dy[k];
      for_each_tap(g.window, g.x, g.winner(oy, ox, code[k]),
                   [&](std::int64_t t, std::int64_t iy, std::int64_t ix) {
                     float* w = dw + t * g.x.c * g.y.c + k;
                     const float* pixel = x + g.x.at(i, iy, ix);
                     for (std::int64_t c = 0; c < g.x.c; ++c) w[c * g.y.c] += dy[k] * pixel[c];
                   });
    }
  });
}

}  // namespace

Kernel plain_forward() {
  return {.name = "plain",
          .workspace = [](const OpView& op) { return Geometry::forward(op).y.c * float_bytes; },
          .prepare = prepare<Geometry::forward, run_forward>,
          .wanted_halo = skipped_halo<0>,
          .writes_halo = true};
}

Kernel plain_grad_input() {
  return plain_with_halos<prepare<Geometry::grad_input, run_grad_input>, skipped_halo<0, 1, 3>>();
}

Kernel plain_grad_weight() {
  return {.name = "plain",
          .prepare = prepare<Geometry::grad_weight, run_grad_weight>,
          .wanted_halo = skipped_halo<0, 1, 2>};
}

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
