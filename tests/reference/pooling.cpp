// Poolings over images [N, H, W, C], each channel for itself.
#include "tests/reference/rules.hpp"
#include "tests/reference/window.hpp"

#include <algorithm>

namespace arenite::reference {
namespace {

/// An empty stride is the kernel's size: windows side by side.
Window window_of(const Call& call) {
  const Pair kernel = pair_of(call.attributes(), "kernel");
  return {.kernel = kernel,
          .stride = pair_of(call.attributes(), "stride", kernel),
          .padding = pair_of(call.attributes(), "padding")};
}

/// The code is the number of the tap that won, the first of equals; padding never does.
void max_pool2d(Call& call) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Tensor& x = call.in(0);
  Tensor &output = call.out(0), &code = call.out(1);
  Tensor second(output.shape);
  std::ranges::fill(output.data, -infinity);
  std::ranges::fill(second.data, -infinity);
  window_of(call).each_tap(x.shape, output.shape,
                           [&](std::int64_t pixel, std::int64_t tap, std::int64_t out) {
                             for (std::int64_t c = 0; c < x.shape[3]; ++c) {
                               const double v = x[pixel + c];
                               if (v > output[out + c]) {
                                 second[out + c] = output[out + c];
                                 output[out + c] = v;
                                 code[out + c] = static_cast<double>(tap);
                               } else if (v < output[out + c]) {
                                 // Exact equals are zeros that a ReLU made: they do not part when
                                 // the input moves.
                                 second[out + c] = std::max(second[out + c], v);
                               }
                             }
                           });
  for (std::int64_t i = 0; i < output.shape.elements(); ++i)
    call.decide(static_cast<std::int64_t>(code[i]), output[i] - second[i]);
}

void max_pool2d_grad(Call& call) {
  const Tensor &gradient = call.in(0), &code = call.in(1);
  Tensor& dx = call.out(0);
  window_of(call).each_tap(dx.shape, gradient.shape,
                           [&](std::int64_t pixel, std::int64_t tap, std::int64_t out) {
                             for (std::int64_t c = 0; c < dx.shape[3]; ++c) {
                               if (code[out + c] == static_cast<double>(tap))
                                 dx[pixel + c] += gradient[out + c];
                             }
                           });
}

/// What each window's sum is divided by: its taps inside the image, or all of them.
Tensor divisors(const Call& call, const Shape& x, const Shape& y) {
  const Window window = window_of(call);
  Tensor counts(y);
  if (call.attributes().integer("count_padding") != 0) {
    std::ranges::fill(counts.data, static_cast<double>(window.kernel.h * window.kernel.w));
    return counts;
  }
  window.each_tap(x, y, [&](std::int64_t, std::int64_t, std::int64_t out) {
    for (std::int64_t c = 0; c < y[3]; ++c) counts[out + c] += 1;
  });
  return counts;
}

void avg_pool2d(Call& call) {
  const Tensor& x = call.in(0);
  Tensor& y = call.out(0);
  const Tensor divisor = divisors(call, x.shape, y.shape);
  window_of(call).each_tap(x.shape, y.shape,
                           [&](std::int64_t pixel, std::int64_t, std::int64_t out) {
                             for (std::int64_t c = 0; c < x.shape[3]; ++c)
                               y[out + c] += x[pixel + c] / divisor[out + c];
                           });
}

void avg_pool2d_grad(Call& call) {
  const Tensor& gradient = call.in(0);
  Tensor& dx = call.out(0);
  const Tensor divisor = divisors(call, dx.shape, gradient.shape);
  window_of(call).each_tap(dx.shape, gradient.shape,
                           [&](std::int64_t pixel, std::int64_t, std::int64_t out) {
                             for (std::int64_t c = 0; c < dx.shape[3]; ++c)
                               dx[pixel + c] += gradient[out + c] / divisor[out + c];
                           });
}

}  // namespace

void add_pooling_rules(Rules& rules) {
  rules["max_pool2d"] = max_pool2d;
  rules["max_pool2d_grad"] = max_pool2d_grad;
  rules["avg_pool2d"] = avg_pool2d;
  rules["avg_pool2d_grad"] = avg_pool2d_grad;
}

}  // namespace arenite::reference
