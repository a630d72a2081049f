// Convolution kernels on LIBXSMM: the whole batches of products.hpp on images as they lie in
// memory, or padded copies of them.
#include "codelets/conv2d/products.hpp"

namespace arenite::codelets::conv2d {
namespace {

using Padded = Correlation<PaddedSamples>;

Padded forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  const PaddedSamples x(g.x, g.window.padding);
  return {.source = x,
          .target = g.y,
          .product = forward_product(g, x.row(), g.y.w, g.biased),
          .biased = g.biased,
          .relu = g.relu};
}

void run_forward(const KernelCall& call, const Padded& s) {
  s.run(call, call.in<float>(1), s.biased ? call.in<float>(2) : nullptr, nullptr);
}

Padded grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  return input_gradient(g, PaddedSamples(g.y, gradient_border(g.window)));
}

WeightGradient<PaddedSamples> grad_weight(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  return weight_gradient(g, PaddedSamples(g.y, {0, 0}));
}

}  // namespace

Kernel xsmm_forward() {
  return xsmm_kernel<forward, run_forward, padding_halo<Geometry::forward>>(true);
}
Kernel xsmm_grad_input() {
  return xsmm_grad_input_kernel<Geometry::grad_input, grad_input,
                                run_input_gradient<PaddedSamples, 1>, grad_input_halo>();
}
Kernel xsmm_grad_weight() {
  return xsmm_kernel<grad_weight, run_weight_gradient<PaddedSamples>,
                     padding_halo<Geometry::grad_weight, 0>>(false);
}

}  // namespace arenite::codelets::conv2d
