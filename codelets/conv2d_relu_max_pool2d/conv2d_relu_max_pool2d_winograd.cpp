// Winograd's F(2×2, 3×3): a 2×2 tile of outputs from 16 products a channel instead of 36 (Lavin and
// Gray, "Fast algorithms for convolutional neural networks", 2016). The tile is the pooling window,
// so that pooling happens where the products are turned back into outputs.
//
//   V = Bᵀ d B    a tile's 4×4 pixels, 16 channels a vector
//   U = G g Gᵀ    a 3×3 kernel, 16 output channels a vector
//   M = Σ_c U·V   for each of the 16 elements a product of a block of tiles × channels with
//                 channels × output channels
//   y = Aᵀ M A    the window's four outputs
//
// Where a pixel or a weight is infinite, the transforms may turn an infinite output into a NaN.
#include "codelets/conv2d_relu_max_pool2d/forward_cost.hpp"
#include "codelets/conv2d_relu_max_pool2d/pooling.hpp"

#include <array>
#include <utility>

namespace arenite::codelets::conv2d_relu_max_pool2d {

using graph::OpView;
using runtime::Kernel;
using runtime::KernelCall;

#ifdef ARENITE_AVX512
namespace {

constexpr std::int64_t elements = 16;      ///< of a transformed tile
constexpr int max_tiles = 14;              ///< at a time: with 2 vectors of channels, 28 sums
constexpr std::int64_t panel = 2 * lanes;  ///< output channels at a time

struct Winograd {
  Geometry g;
  PaddedSamples x;
  std::int64_t block;  ///< tiles at a time

  std::int64_t tiles() const noexcept { return g.y.n * g.y.h * g.y.w; }
  std::int64_t groups() const noexcept { return divide_up(g.x.c, lanes); }  ///< of channels
  /// From a group of a block's channels to the next: [group][tile][16 channels].
  std::int64_t group_step() const noexcept { return block * lanes; }
  /// From an element of the transformed input (of the products) to the next. The odd line keeps a
  /// tile's 16 elements in different cache sets.
  std::int64_t input_step() const noexcept { return groups() * group_step() + lanes; }
  std::int64_t product_step() const noexcept { return block * panel + lanes; }

  std::int64_t weights_bytes() const noexcept {
    return elements * g.x.c * round_up(g.y.c, lanes) * float_bytes;
  }
  std::int64_t input_bytes() const noexcept { return elements * input_step() * float_bytes; }
  std::int64_t products_bytes() const noexcept { return elements * product_step() * float_bytes; }
};

Winograd winograd(const Geometry& g) {
  return {.g = g,
          .x = PaddedSamples(g.x, g.window.padding),
          .block = std::min<std::int64_t>(g.y.n * g.y.h * g.y.w, max_tiles)};
}

// ---- transforms --------------------------------------------------------------------------------

/// 16 output channels of one input channel's 3×3 kernel, whose taps lie `tap` elements apart.
void transform_weights(const float* weight, std::int64_t tap, __mmask16 mask, std::int64_t step,
                       float* to) {
  const __m512 half = _mm512_set1_ps(0.5f);
  const auto spread = [&](__m512 a, __m512 b, __m512 c, __m512* out) {
    const __m512 outer = _mm512_mul_ps(_mm512_add_ps(a, c), half), middle = _mm512_mul_ps(b, half);
    out[0] = a;
    out[1] = _mm512_add_ps(outer, middle);
    out[2] = _mm512_sub_ps(outer, middle);
    out[3] = c;
  };
  __m512 columns[3][4];
  for (int x = 0; x < 3; ++x) {
    const auto load = [&](int y) {
      return _mm512_maskz_loadu_ps(mask, weight + (3 * y + x) * tap);
    };
    spread(load(0), load(1), load(2), columns[x]);
  }
  for (int y = 0; y < 4; ++y) {
    __m512 row[4];
    spread(columns[0][y], columns[1][y], columns[2][y], row);
    for (int x = 0; x < 4; ++x) _mm512_storeu_ps(to + (4 * y + x) * step, row[x]);
  }
}

/// All weights: [panel][element][channel][32 output channels, or 16 in the last panel].
void transform_weights(const Winograd& s, const float* weight, float* to) {
  const std::int64_t channels = s.g.x.c, outputs = s.g.y.c, all = round_up(outputs, lanes);
  for (std::int64_t k = 0; k < all; k += lanes) {
    const std::int64_t first = k / panel * panel, width = std::min(panel, all - first);
    float* out = to + first * elements * channels + (k - first);
    for (std::int64_t c = 0; c < channels; ++c) {
      transform_weights(weight + c * outputs + k, channels * outputs, first_lanes(outputs - k),
                        channels * width, out + c * width);
    }
  }
}

/// 16 channels of one tile; x: its first pixel.
void transform_input(const float* x, std::int64_t row, std::int64_t pixel, __mmask16 mask,
                     std::int64_t step, float* to) {
  const auto spread = [](__m512 a, __m512 b, __m512 c, __m512 d, __m512* out) {
    out[0] = _mm512_sub_ps(a, c);
    out[1] = _mm512_add_ps(b, c);
    out[2] = _mm512_sub_ps(c, b);
    out[3] = _mm512_sub_ps(b, d);
  };
  __m512 columns[4][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const float* p = x + j * pixel;
    spread(_mm512_maskz_loadu_ps(mask, p), _mm512_maskz_loadu_ps(mask, p + row),
           _mm512_maskz_loadu_ps(mask, p + 2 * row), _mm512_maskz_loadu_ps(mask, p + 3 * row),
           columns[j]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    __m512 out[4];
    spread(columns[0][i], columns[1][i], columns[2][i], columns[3][i], out);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) _mm512_store_ps(to + (4 * i + j) * step, out[j]);
  }
}

/// One tile's four outputs in 16 channels.
void transform_products(const float* products, std::int64_t step, __m512 (&out)[4]) {
  const auto gather = [](__m512 a, __m512 b, __m512 c, __m512 d, __m512* to) {
    to[0] = _mm512_add_ps(a, _mm512_add_ps(b, c));
    to[1] = _mm512_sub_ps(_mm512_sub_ps(b, c), d);
  };
  __m512 columns[4][2];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const float* p = products + j * step;
    gather(_mm512_load_ps(p), _mm512_load_ps(p + 4 * step), _mm512_load_ps(p + 8 * step),
           _mm512_load_ps(p + 12 * step), columns[j]);
  }
  gather(columns[0][0], columns[1][0], columns[2][0], columns[3][0], &out[0]);
  gather(columns[0][1], columns[1][1], columns[2][1], columns[3][1], &out[2]);
}

// ---- products ----------------------------------------------------------------------------------

/// products[tile][k] = Σ_c input[tile][c] · weights[c][k] for one element.
template <int tiles, int vectors>
void multiply(const float* input, std::int64_t group_step, std::int64_t channels,
              const float* weights, float* products) {
  __m512 sum[tiles][vectors];
#pragma GCC unroll 14
  for (auto& row : sum) {
#pragma GCC unroll 2
    for (auto& s : row) s = _mm512_setzero_ps();
  }
  for (std::int64_t from = 0; from < channels; from += lanes, input += group_step) {
    const float *x = input, *end = input + std::min(lanes, channels - from);
    for (; x < end; ++x, weights += vectors * lanes) {
      // Without this GCC reads several channels ahead, and has no registers for them.
      asm("" : "+r"(x));
      __m512 w[vectors];
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) w[j] = _mm512_load_ps(weights + j * lanes);
#pragma GCC unroll 14
      for (int t = 0; t < tiles; ++t) {
        const __m512 pixel = _mm512_set1_ps(x[t * lanes]);
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) sum[t][j] = _mm512_fmadd_ps(pixel, w[j], sum[t][j]);
      }
    }
  }
#pragma GCC unroll 14
  for (int t = 0; t < tiles; ++t) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      _mm512_store_ps(products + t * panel + j * lanes, sum[t][j]);
    }
  }
}

using Multiply = void (*)(const float*, std::int64_t, std::int64_t, const float*, float*);

template <int vectors>
constexpr auto multiplies = []<int... count>(std::integer_sequence<int, count...>) {
  return std::array<Multiply, max_tiles>{multiply<count + 1, vectors>...};
}
(std::make_integer_sequence<int, max_tiles>{});

/// `tiles` tiles and one panel, all elements.
void multiply_panel(const Winograd& s, std::int64_t tiles, std::int64_t width, const float* input,
                    const float* weights, float* products) {
  const auto& kernels = width == panel ? multiplies<2> : multiplies<1>;
  const Multiply kernel = kernels[static_cast<std::size_t>(tiles - 1)];
  for (std::int64_t e = 0; e < elements; ++e) {
    kernel(input + e * s.input_step(), s.group_step(), s.g.x.c, weights + e * s.g.x.c * width,
           products + e * s.product_step());
  }
}

// ---- the kernel --------------------------------------------------------------------------------

/// Steps through the windows of all samples.
struct Cursor {
  std::int64_t i = 0, y = 0, x = 0;

  void next(const Image& image) noexcept {
    if (++x < image.w) return;
    x = 0;
    if (++y < image.h) return;
    y = 0;
    ++i;
  }
};

void run(const KernelCall& call) {
  const auto& s = *static_cast<const Winograd*>(call.state);
  const Geometry& g = s.g;
  const float* bias = g.biased ? call.in<float>(2) : nullptr;
  auto* weights = static_cast<float*>(call.workspace);
  float* input = weights + s.weights_bytes() / float_bytes;
  float* products = input + s.input_bytes() / float_bytes;
  float* padded = products + s.products_bytes() / float_bytes;
  transform_weights(s, call.in<float>(1), weights);
  s.x.clear(padded);
  const std::int64_t all = round_up(g.y.c, lanes), row = s.x.row();
  const float* sample = nullptr;
  std::int64_t sample_number = -1;
  Cursor read, written;
  for (std::int64_t from = 0; from < s.tiles(); from += s.block) {
    const std::int64_t tiles = std::min(s.block, s.tiles() - from);
    for (std::int64_t t = 0; t < tiles; ++t, read.next(g.y)) {
      if (read.i != sample_number) {
        sample_number = read.i;
        sample = s.x.sample(call.in<float>(0), sample_number, padded);
      }
      const float* x = sample + (2 * read.y - g.window.padding.h) * row +
                       (2 * read.x - g.window.padding.w) * g.x.c;
      for (std::int64_t group = 0; group < s.groups(); ++group) {
        const std::int64_t c = group * lanes;
        transform_input(x + c, row, g.x.c, first_lanes(g.x.c - c), s.input_step(),
                        input + group * s.group_step() + t * lanes);
      }
    }
    Cursor next = written;
    for (std::int64_t first = 0; first < all; first += panel) {
      const std::int64_t width = std::min(panel, all - first);
      multiply_panel(s, tiles, width, input, weights + first * elements * g.x.c, products);
      next = written;
      for (std::int64_t t = 0; t < tiles; ++t, next.next(g.y)) {
        float* y = call.out<float>(0) + g.y.at(next.i, next.y, next.x);
        std::uint8_t* code = call.out<std::uint8_t>(1) + g.code.at(next.i, next.y, next.x);
        for (std::int64_t k = first; k < first + width; k += lanes) {
          const __mmask16 mask = first_lanes(g.y.c - k);
          __m512 taps[4];
          transform_products(products + t * panel + (k - first), s.product_step(), taps);
          const Pooled best =
              pool(taps, bias ? _mm512_maskz_loadu_ps(mask, bias + k) : _mm512_setzero_ps());
          _mm512_mask_storeu_ps(y + k, mask, best.value);
          _mm_mask_storeu_epi8(code + k, mask, best.code);
        }
      }
    }
    written = next;
  }
  zero_halo(call.out<float>(0), g.y);
  zero_halo(call.out<std::uint8_t>(1), g.code);
}

/// Where this is fastest, by measurement: enough tiles to pay for transforming the weights, and
/// enough channels to pay for transforming the tiles.
bool supports(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  const Window& w = g.window;
  constexpr std::int64_t least = 32;  // tiles
  if (w.kernel != Pair{3, 3} || w.stride != Pair{1, 1} || w.dilation != Pair{1, 1} ||
      g.pool != Pair{2, 2} || g.y.n * g.y.h * g.y.w < least ||
      !PaddedSamples(g.x, w.padding).fits()) {
    return false;
  }
  return winograd_cycles(g) < direct_cycles(g);
}

}  // namespace

Kernel winograd_forward() {
  return {.name = "winograd",
          .supports = supports,
          .workspace =
              [](const OpView& op) {
                const Winograd s = winograd(Geometry::forward(op));
                return s.weights_bytes() + s.input_bytes() + s.products_bytes() +
                       s.x.scratch_bytes();
              },
          .prepare = [](const OpView& op) -> runtime::PreparedKernel {
            return {run, std::make_shared<const Winograd>(winograd(Geometry::forward(op)))};
          },
          .wanted_halo = padding_halo<Geometry::forward>,
          .writes_halo = true};
}

#else

Kernel winograd_forward() { return without_avx512("winograd"); }

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
