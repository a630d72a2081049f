// Convolutions: images [N, H, W, C], weights [KH, KW, C, K].
//   y[n,oy,ox,k] = bias[k] + Σ x[n, oy·s−p+ky·d, ox·s−p+kx·d, c] · weight[ky,kx,c,k]
#include "tests/reference/rules.hpp"
#include "tests/reference/window.hpp"

#include <algorithm>

namespace arenite::reference {
namespace {

Window window_of(const Call& call, Pair kernel) {
  return {.kernel = kernel,
          .stride = pair_of(call.attributes(), "stride"),
          .padding = pair_of(call.attributes(), "padding"),
          .dilation = pair_of(call.attributes(), "dilation")};
}

Pair kernel_of(const Tensor& weight) { return {weight.shape[0], weight.shape[1]}; }

/// Calls f(index in x, in weight, in y) for every product of the convolution.
template <class F>
void each_product(const Window& window, const Shape& x, const Shape& y, F f) {
  const std::int64_t inputs = x[3], outputs = y[3];
  window.each_tap(x, y, [&](std::int64_t pixel, std::int64_t tap, std::int64_t output) {
    for (std::int64_t c = 0; c < inputs; ++c) {
      for (std::int64_t k = 0; k < outputs; ++k)
        f(pixel + c, (tap * inputs + c) * outputs + k, output + k);
    }
  });
}

void convolve(const Window& window, const Tensor& x, const Tensor& weight, const Tensor* bias,
              Tensor& y) {
  if (bias) {
    for (std::int64_t i = 0; i < y.shape.elements(); ++i) y[i] = (*bias)[i % y.shape[3]];
  }
  // The same products as `each_product` has, in a form that compilers see through: central
  // differences run this loop thousands of times.
  const std::int64_t inputs = x.shape[3], outputs = y.shape[3];
  window.each_tap(x.shape, y.shape, [&](std::int64_t pixel, std::int64_t tap, std::int64_t out) {
    for (std::int64_t c = 0; c < inputs; ++c) {
      const double v = x[pixel + c];
      const double* w = &weight.data[static_cast<std::size_t>((tap * inputs + c) * outputs)];
      double* sums = &y.data[static_cast<std::size_t>(out)];
#pragma omp simd
      for (std::int64_t k = 0; k < outputs; ++k) sums[k] += v * w[k];
    }
  });
}

void grad_input(const Window& window, const Tensor& gradient, const Tensor& weight, Tensor& dx) {
  each_product(window, dx.shape, gradient.shape,
               [&](auto xi, auto wi, auto yi) { dx[xi] += gradient[yi] * weight[wi]; });
}

void grad_weight(const Window& window, const Tensor& x, const Tensor& gradient, Tensor& dweight) {
  each_product(window, x.shape, gradient.shape,
               [&](auto xi, auto wi, auto yi) { dweight[wi] += x[xi] * gradient[yi]; });
}

void conv2d(Call& call) {
  convolve(window_of(call, kernel_of(call.in(1))), call.in(0), call.in(1),
           call.has(2) ? &call.in(2) : nullptr, call.out(0));
}

void conv2d_relu(Call& call) {
  conv2d(call);
  rectify(call);
}

void conv2d_grad_input(Call& call) {
  grad_input(window_of(call, kernel_of(call.in(1))), call.in(0), call.in(1), call.out(0));
}

void conv2d_grad_input_relu(Call& call) {
  conv2d_grad_input(call);
  rectify_gradient(call, 2);
}

void conv2d_grad_weight(Call& call) {
  grad_weight(window_of(call, pair_of(call.attributes(), "kernel")), call.in(0), call.in(1),
              call.out(0));
}

// conv2d_relu_max_pool2d: a code says which tap of its pooling window won (the first of equals), or
// that none was above 0.
constexpr std::int64_t dead = 128;

/// The shape of the convolution inside, which no value of the graph has.
Shape convolved(const Window& window, const Shape& x, std::int64_t outputs) {
  return {x[0], window.output_h(x[1]), window.output_w(x[2]), outputs};
}

/// Windows side by side. Rows and columns that fill none are left out, as with any stride.
Window pool_of(const Call& call) {
  const Pair pool = pair_of(call.attributes(), "pool");
  return {.kernel = pool, .stride = pool};
}

void fused_forward(Call& call) {
  const Window window = window_of(call, kernel_of(call.in(1)));
  Tensor y(convolved(window, call.in(0).shape, call.in(1).shape[3]));
  convolve(window, call.in(0), call.in(1), call.has(2) ? &call.in(2) : nullptr, y);

  Tensor &output = call.out(0), &code = call.out(1);
  // ReLU and pooling commute: start from 0, and what is not above it has no winner. `gap` is how
  // much the winner is ahead of the second, 0 being one more that takes part.
  std::ranges::fill(code.data, static_cast<double>(dead));
  Tensor nearest(output.shape);
  std::ranges::fill(nearest.data, -std::numeric_limits<double>::infinity());
  pool_of(call).each_tap(y.shape, output.shape,
                         [&](std::int64_t pixel, std::int64_t tap, std::int64_t out) {
                           for (std::int64_t k = 0; k < y.shape[3]; ++k) {
                             const double v = y[pixel + k];
                             if (v > output[out + k]) {
                               nearest[out + k] = output[out + k];
                               output[out + k] = v;
                               code[out + k] = static_cast<double>(tap);
                             } else if (v < output[out + k]) {
                               nearest[out + k] = std::max(nearest[out + k], v);
                             }
                           }
                         });
  for (std::int64_t i = 0; i < output.shape.elements(); ++i)
    call.decide(static_cast<std::int64_t>(code[i]), output[i] - nearest[i]);
}

/// Each pooled gradient at the tap that won; zeros elsewhere.
Tensor unpooled(const Call& call, const Tensor& gradient, const Tensor& code, const Shape& shape) {
  Tensor full(shape);
  pool_of(call).each_tap(shape, gradient.shape,
                         [&](std::int64_t pixel, std::int64_t tap, std::int64_t out) {
                           for (std::int64_t k = 0; k < shape[3]; ++k) {
                             if (code[out + k] == static_cast<double>(tap))
                               full[pixel + k] = gradient[out + k];
                           }
                         });
  return full;
}

void fused_grad_input(Call& call) {
  const Tensor &gradient = call.in(0), &weight = call.in(2);
  const Window window = window_of(call, kernel_of(weight));
  const Shape shape = convolved(window, call.out(0).shape, weight.shape[3]);
  grad_input(window, unpooled(call, gradient, call.in(1), shape), weight, call.out(0));
}

void fused_grad_input_relu(Call& call) {
  fused_grad_input(call);
  rectify_gradient(call, 3);
}

void fused_grad_weight(Call& call) {
  const Tensor &x = call.in(0), &gradient = call.in(1);
  const Window window = window_of(call, pair_of(call.attributes(), "kernel"));
  const Shape shape = convolved(window, x.shape, gradient.shape[3]);
  const Tensor full = unpooled(call, gradient, call.in(2), shape);
  grad_weight(window, x, full, call.out(0));
  for (std::int64_t i = 0; i < shape.elements(); ++i) call.out(1)[i % shape[3]] += full[i];
}

}  // namespace

void add_convolution_rules(Rules& rules) {
  rules["conv2d"] = conv2d;
  rules["conv2d_relu"] = conv2d_relu;
  rules["conv2d_grad_input"] = conv2d_grad_input;
  rules["conv2d_grad_input_relu"] = conv2d_grad_input_relu;
  rules["conv2d_grad_weight"] = conv2d_grad_weight;
  rules["conv2d_relu_max_pool2d"] = fused_forward;
  rules["conv2d_relu_max_pool2d_grad_input"] = fused_grad_input;
  rules["conv2d_relu_max_pool2d_grad_input_relu"] = fused_grad_input_relu;
  rules["conv2d_relu_max_pool2d_grad_weight"] = fused_grad_weight;
}

}  // namespace arenite::reference
