// Convolution kernels on LIBXSMM: whole batches of what products.hpp does for a row or a sample.
#include "codelets/conv2d/products.hpp"
#include "codelets/rectify.hpp"

namespace arenite::codelets::conv2d {
namespace {

/// Row products over all rows of all samples: the forward pass, and with transposed weights the
/// input gradient.
struct Correlation {
  PaddedSamples source;
  Image target;
  RowProduct product;
  bool biased, relu;
  std::optional<Image> output;  ///< as Geometry has it
  std::int64_t scratch;         ///< bytes before the padded sample in the workspace

  graph::Support usable() const { return both(product.usable(), source.fits()); }
  std::int64_t workspace_bytes() const { return scratch + source.scratch_bytes(); }
  void run(const float* from, const float* weight, const float* bias, const float* output_of_relu,
           float* to, void* workspace) const;
};

void Correlation::run(const float* from, const float* weight, const float* bias,
                      const float* output_of_relu, float* to, void* workspace) const {
  auto* padded = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + scratch);
  source.clear(padded);
  for (std::int64_t i = 0; i < target.n; ++i) {
    const float* sample = source.sample(from, i, padded);
    for (std::int64_t y = 0; y < target.h; ++y) {
      float* out = to + target.at(i, y, 0);
      if (bias) {
        for (std::int64_t x = 0; x < target.w; ++x) {
          std::copy_n(bias, target.c, out + x * target.c);
        }
      }
      product(sample, weight, y, out);
      if (relu) rectify(out, target.w * target.c, out);
      finish_row(output, output_of_relu, i, y, out, target.w * target.c, out);
    }
  }
  zero_halo(to, target);
}

Correlation forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  PaddedSamples x(g.x, g.window.padding);
  return {.source = x,
          .target = g.y,
          .product = forward_product(g, x.row(), g.y.w, g.biased),
          .biased = g.biased,
          .relu = g.relu,
          .output = {},
          .scratch = 0};
}

void run_forward(const KernelCall& call) {
  const auto& s = *static_cast<const Correlation*>(call.state);
  s.run(call.in<float>(0), call.in<float>(1), s.biased ? call.in<float>(2) : nullptr, nullptr,
        call.out<float>(0), call.workspace);
}

/// Stride 1 only.
Correlation grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  PaddedSamples gradient(g.y, gradient_border(g.window));
  const std::int64_t weights = g.taps() * g.x.c * g.y.c * float_bytes;
  return {.source = gradient,
          .target = g.x,
          .product = grad_input_product(g, gradient.row()),
          .biased = false,
          .relu = false,
          .output = g.output,
          .scratch = round_up(weights, default_alignment)};
}

void run_grad_input(const KernelCall& call) {
  const auto& s = *static_cast<const Correlation*>(call.state);
  auto* transposed = static_cast<float*>(call.workspace);
  transpose_weights(call.in<float>(1), static_cast<std::int64_t>(s.product.tap_offsets.size()),
                    s.target.c, s.source.image().c, transposed);
  s.run(call.in<float>(0), transposed, nullptr, s.output ? call.in<float>(2) : nullptr,
        call.out<float>(0), call.workspace);
}

struct GradWeight {
  PaddedSamples x;
  Image gradient;
  WeightProduct product;

  graph::Support usable() const { return both(xsmm::all_made(product.gemm), x.fits()); }
  std::int64_t workspace_bytes() const { return x.scratch_bytes(); }
};

GradWeight grad_weight(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  PaddedSamples x(g.x, g.window.padding);
  return {.x = x, .gradient = g.y, .product = weight_product(g, x.row(), g.y.w)};
}

void run_grad_weight(const KernelCall& call) {
  const auto& s = *static_cast<const GradWeight*>(call.state);
  auto* padded = static_cast<float*>(call.workspace);
  float* dw = call.out<float>(0);
  std::fill_n(dw, s.product.weights(), 0.0f);
  s.x.clear(padded);
  for (std::int64_t i = 0; i < s.gradient.n; ++i) {
    s.product(s.x.sample(call.in<float>(0), i, padded), call.in<float>(1) + s.gradient.at(i, 0, 0),
              s.gradient.row, s.gradient.h, dw);
  }
}

}  // namespace

Kernel xsmm_forward() {
  return xsmm_kernel<forward, run_forward, padding_halo<Geometry::forward>>(true);
}
Kernel xsmm_grad_input() {
  return xsmm_grad_input_kernel<Geometry::grad_input, grad_input, run_grad_input,
                                grad_input_halo>();
}
Kernel xsmm_grad_weight() {
  return xsmm_kernel<grad_weight, run_grad_weight, padding_halo<Geometry::grad_weight, 0>>(false);
}

}  // namespace arenite::codelets::conv2d
