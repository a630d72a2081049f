// Winograd's algorithm with the pooling window as its tile, so that pooling happens where the
// products are turned back into outputs.
#include "codelets/conv2d_relu_max_pool2d/forward_cost.hpp"
#include "codelets/conv2d_relu_max_pool2d/pooling.hpp"
#include "codelets/winograd.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d {

#ifdef ARENITE_AVX512

namespace {

struct Winograd {
  Geometry g;
  winograd::Convolution convolution;
};

Winograd build(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  return {g, winograd::Convolution(PaddedSamples(g.x, g.window.padding), g.window.padding,
                                   g.convolved(), g.y.c)};
}

void run(const KernelCall& call, const Winograd& s) {
  const Geometry& g = s.g;
  const float* bias = g.biased ? call.in<float>(2) : nullptr;
  auto* y = call.out<float>(0);
  auto* code = call.out<std::uint8_t>(1);
  const winograd::Weights weights{
      .first = call.in<float>(1), .tap = g.x.c * g.y.c, .channel = g.y.c, .output = 1};
  s.convolution.run(call.in<float>(0), weights, call.workspace, [&](const winograd::Tile& tile) {
    float* pooled = y + g.y.at(tile.i, tile.y, tile.x);
    std::uint8_t* winners = code + g.code.at(tile.i, tile.y, tile.x);
    return [=](std::int64_t k, __mmask16 mask, const __m512(&taps)[4]) {
      const Pooled best =
          pool(taps, bias ? _mm512_maskz_loadu_ps(mask, bias + k) : _mm512_setzero_ps());
      _mm512_mask_storeu_ps(pooled + k, mask, best.value);
      _mm_mask_storeu_epi8(winners + k, mask, best.code);
    };
  });
  zero_halo(y, g.y);
  zero_halo(code, g.code);
}

/// Where this is fastest, by measurement: enough tiles to pay for transforming the weights, and
/// enough channels to pay for transforming the tiles.
graph::Support supports(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  const Window& w = g.window;
  constexpr std::int64_t least = 32;  // tiles
  if (w.kernel != Pair{3, 3}) return "a kernel other than 3x3";
  if (const graph::Support steps = moves_by_one(w); !steps) return steps;
  if (g.pool != Pair{2, 2}) return "pooling other than 2x2";
  if (g.y.n * g.y.h * g.y.w < least) return "fewer than 32 pooled pixels";
  if (const graph::Support fits = PaddedSamples(g.x, w.padding).fits(); !fits) return fits;
  if (winograd_cycles(g) < direct_cycles(g)) return {};
  return "transforms that cost more than the products they save";
}

}  // namespace

Kernel winograd_forward() {
  return {.name = "winograd",
          .supports = supports,
          .workspace = [](const OpView& op) { return build(op).convolution.workspace_bytes(); },
          .prepare = prepare<build, run>,
          .wanted_halo = padding_halo<Geometry::forward>,
          .writes_halo = true};
}

#else

Kernel winograd_forward() { return without_avx512("winograd"); }

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
