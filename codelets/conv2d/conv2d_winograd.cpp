// Convolution kernels on Winograd's algorithm: the forward pass, and the input gradient, which is
// the same convolution of the output's gradient with the weights turned by 180 degrees.
#include "codelets/conv2d/products.hpp"
#include "codelets/winograd.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets::conv2d {

#ifdef ARENITE_AVX512

namespace {

struct Winograd {
  winograd::Convolution convolution;
  Image target;
  bool biased, relu;
  std::optional<Image> output;  ///< as Geometry has it

  void run(const float* from, const winograd::Weights& weights, const float* bias,
           const float* output_of_relu, float* to, void* workspace) const;
};

void Winograd::run(const float* from, const winograd::Weights& weights, const float* bias,
                   const float* output_of_relu, float* to, void* workspace) const {
  const Image &y = target, &before = output ? *output : target;
  const bool rectified = relu;
  convolution.run(from, weights, workspace, [&](const winograd::Tile& tile) {
    float* first = to + y.at(tile.i, 2 * tile.y, 2 * tile.x);
    const float* living =
        output_of_relu ? output_of_relu + before.at(tile.i, 2 * tile.y, 2 * tile.x) : nullptr;
    const std::int64_t row = y.row, pixel = y.c, row_before = before.row;
    const bool right = 2 * tile.x + 1 < y.w, below = 2 * tile.y + 1 < y.h;
    return [=](std::int64_t k, __mmask16 mask, const __m512(&taps)[4]) {
      const __m512 b = bias ? _mm512_maskz_loadu_ps(mask, bias + k) : _mm512_setzero_ps();
      const auto put = [&](std::int64_t down, std::int64_t across, __m512 tap) {
        __m512 sum = _mm512_add_ps(tap, b);
        if (rectified) sum = codelets::relu(sum);
        if (living != nullptr) {
          const float* relu_there = living + down * row_before + across * pixel + k;
          sum = relu_grad(_mm512_maskz_loadu_ps(mask, relu_there), sum);
        }
        _mm512_mask_storeu_ps(first + down * row + across * pixel + k, mask, sum);
      };
      put(0, 0, taps[0]);
      if (right) put(0, 1, taps[1]);
      if (below) put(1, 0, taps[2]);
      if (right && below) put(1, 1, taps[3]);
    };
  });
  zero_halo(to, y);
}

Winograd forward(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  const Pair padding = g.window.padding;
  return {.convolution = {PaddedSamples(g.x, padding), padding, {g.y.h, g.y.w}, g.y.c},
          .target = g.y,
          .biased = g.biased,
          .relu = g.relu,
          .output = {}};
}

void run_forward(const KernelCall& call, const Winograd& s) {
  const std::int64_t outputs = s.target.c;
  s.run(call.in<float>(0),
        {.first = call.in<float>(1),
         .tap = s.convolution.channels() * outputs,
         .channel = outputs,
         .output = 1},
        s.biased ? call.in<float>(2) : nullptr, nullptr, call.out<float>(0), call.workspace);
}

/// From gradient (y, x) back to the first pixel that its window reaches, from pixel (y, x).
Pair reach_back(const Window& window) {
  const Pair reach = window.reach();
  return {reach.h - window.padding.h, reach.w - window.padding.w};
}

Winograd grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  return {.convolution = {PaddedSamples(g.y, gradient_border(g.window)),
                          reach_back(g.window),
                          {g.x.h, g.x.w},
                          g.x.c},
          .target = g.x,
          .biased = false,
          .relu = false,
          .output = g.output};
}

void run_grad_input(const KernelCall& call, const Winograd& s) {
  const std::int64_t outputs = s.convolution.channels(), tap = s.target.c * outputs;
  s.run(call.in<float>(0),
        {.first = call.in<float>(1) + 8 * tap, .tap = -tap, .channel = 1, .output = outputs},
        nullptr, s.output ? call.in<float>(2) : nullptr, call.out<float>(0), call.workspace);
}

/// Where this is faster than a GEMM over the taps, in cycles fitted to measurements of both: by
/// tile the products and transforms back by output channels and the transform of its pixels, then
/// once the weights' transform. Fewer channels than a vector are left to the direct kernel.
graph::Support pays(const Image& source, const Image& target) {
  if (source.c < lanes) return "fewer than 16 channels to sum over";
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  const double channels = count(source.c), groups = count(divide_up(source.c, lanes)),
               vectors = count(divide_up(target.c, lanes)), samples = count(target.n),
               tiles = samples * count(divide_up(target.h, 2) * divide_up(target.w, 2)),
               pixels = samples * count(target.h * target.w);
  const double winograd =
      tiles * (vectors * (8.7 * channels + 70) + 60 * groups) + 250 * channels * vectors;
  if (winograd < pixels * vectors * 4.7 * channels) return {};
  return "transforms that cost more than the products they save";
}

graph::Support supports(const Window& w, const PaddedSamples& source, const Image& target) {
  if (w.kernel != Pair{3, 3}) return "a kernel other than 3x3";
  if (const graph::Support steps = moves_by_one(w); !steps) return steps;
  if (const graph::Support fits = source.fits(); !fits) return fits;
  return pays(source.image(), target);
}

}  // namespace

Kernel winograd_forward() {
  return {.name = "winograd",
          .supports =
              [](const OpView& op) {
                const Geometry g = Geometry::forward(op);
                return supports(g.window, PaddedSamples(g.x, g.window.padding), g.y);
              },
          .workspace = [](const OpView& op) { return forward(op).convolution.workspace_bytes(); },
          .prepare = prepare<forward, run_forward>,
          .wanted_halo = padding_halo<Geometry::forward>,
          .writes_halo = true};
}

Kernel winograd_grad_input() {
  return {
      .name = "winograd",
      .supports =
          [](const OpView& op) {
            const Geometry g = Geometry::grad_input(op);
            return supports(g.window, PaddedSamples(g.y, gradient_border(g.window)), g.x);
          },
      .workspace = [](const OpView& op) { return grad_input(op).convolution.workspace_bytes(); },
      .prepare = prepare<grad_input, run_grad_input>,
      .wanted_halo = grad_input_halo,
      .writes_halo = true};
}

#else

Kernel winograd_forward() { return without_avx512("winograd"); }
Kernel winograd_grad_input() { return without_avx512("winograd"); }

#endif

}  // namespace arenite::codelets::conv2d
