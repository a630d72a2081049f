// Convolution kernels for few channels, where a GEMM over channels would leave most lanes empty.
//
// A row of outputs is taken as the flat run of (pixel, channel) pairs that it is in memory, 16
// pairs a vector. The lanes' channels repeat after `period` vectors, so a weight becomes one vector
// a phase, and the input pixels of a vector are one short load, spread over the lanes by a
// permutation:
//
//   K = 4     y:  p0k0 p0k1 p0k2 p0k3 p1k0 … p3k3      phase 0, and that is all: period 1
//             x:  p0   p0   p0   p0   p1   … p3        4 floats loaded, spread by {0,0,0,0,1, …, 3}
#include "codelets/avx512.hpp"
#include "codelets/conv2d/conv2d.hpp"
#include "codelets/words.hpp"

#include <array>
#include <numeric>

namespace arenite::codelets::conv2d {

#ifdef ARENITE_AVX512

namespace {

constexpr std::int64_t max_weights = 128;  ///< taps · input channels

/// What the lanes of every period-th vector have in common.
struct Phase {
  alignas(
      64) std::array<std::int32_t, lanes> spread;  ///< lane → input element after the first pixel
  std::int64_t first = 0;    ///< input element of lane 0, from the row's first
  __mmask16 reads = 0;       ///< input elements that a whole vector needs
  __mmask16 last_reads = 0;  ///< the same for the row's last vector
};

struct Direct {
  PaddedSamples x;
  Image y;
  bool biased, relu;
  std::int64_t step;                  ///< input rows from one output row to the next
  std::vector<std::int64_t> offsets;  ///< one a weight: tap-major, channels inside
  std::vector<Phase> phases;
  std::int64_t period_input;  ///< input elements from a vector to the next of its phase
  std::int64_t vectors;       ///< in a row of outputs
  __mmask16 last;             ///< lanes of the row's last vector

  std::int64_t period() const noexcept { return static_cast<std::int64_t>(phases.size()); }
  std::int64_t weights() const noexcept { return static_cast<std::int64_t>(offsets.size()); }
  std::int64_t channel(std::int64_t phase, std::int64_t lane) const noexcept {
    return (phase * lanes + lane) % y.c;
  }
  /// Bytes of one vector a weight and phase.
  std::int64_t table_bytes() const noexcept { return weights() * period() * 64; }
};

Direct direct(const Geometry& g) {
  Direct d{.x = PaddedSamples(g.x, g.window.padding),
           .y = g.y,
           .biased = g.biased,
           .relu = g.relu,
           .step = g.window.stride.h};
  for (const std::int64_t tap : g.tap_offsets(d.x.row())) {
    for (std::int64_t c = 0; c < g.x.c; ++c) d.offsets.push_back(tap + c);
  }
  const std::int64_t outputs = g.y.c, row = g.y.w * outputs, pixel = g.window.stride.w * g.x.c;
  d.phases.resize(static_cast<std::size_t>(outputs / std::gcd(outputs, lanes)));
  d.period_input = lanes * d.period() / outputs * pixel;
  d.vectors = divide_up(row, lanes);
  const std::int64_t rest = row - (d.vectors - 1) * lanes;
  d.last = first_lanes(rest);
  for (std::int64_t p = 0; p < d.period(); ++p) {
    Phase& phase = d.phases[static_cast<std::size_t>(p)];
    phase.first = p * lanes / outputs * pixel;
    for (std::int64_t l = 0; l < lanes; ++l) {
      const std::int64_t at = (p * lanes + l) / outputs * pixel - phase.first;
      phase.spread[static_cast<std::size_t>(l)] = static_cast<std::int32_t>(at);
      const auto bit = static_cast<__mmask16>(1u << std::min<std::int64_t>(at, lanes - 1));
      phase.reads |= bit;
      if (l < rest) phase.last_reads |= bit;
    }
  }
  return d;
}

/// Few channels, and every vector's input within one load. Where output channels fill the lanes of
/// a GEMM, that is faster as soon as there is more than one input channel; for one channel the
/// measured limit is `single`.
graph::Support supports(const Geometry& g, std::int64_t single) {
  const bool few = g.x.c == 1 ? g.y.c <= single : g.y.c < 24 && g.y.c % lanes != 0;
  if (!few) return "output channels enough to fill a GEMM's vectors";
  if (g.taps() > max_weights || g.x.c > max_weights || g.taps() * g.x.c > max_weights)
    return "more than 128 weights an output channel";
  const std::int64_t pixel = g.window.stride.w * g.x.c, spanned = divide_up(lanes - 1, g.y.c);
  if (pixel >= lanes || spanned * pixel >= lanes)
    return "a vector of outputs reads more than 16 floats of a row";
  return PaddedSamples(g.x, g.window.padding).fits();
}

/// Loads the first input elements that `reads` names, at most `width`, and spreads them over the
/// lanes. Narrow loads seldom cross a cache line; a masked wide one pays as if it read its whole
/// width. (The masked permutation, because GCC 12 warns of an uninitialised value inside the plain
/// one.)
template <int width>
__m512 load_spread(const float* x, __mmask16 reads, __m512i spread) {
  __m512 pixels;
  if constexpr (width == 4) {
    pixels = _mm512_castps128_ps512(_mm_maskz_loadu_ps(static_cast<__mmask8>(reads), x));
  } else if constexpr (width == 8) {
    pixels = _mm512_castps256_ps512(_mm256_maskz_loadu_ps(static_cast<__mmask8>(reads), x));
  } else {
    pixels = _mm512_maskz_loadu_ps(reads, x);
  }
  return _mm512_maskz_permutexvar_ps(0xffff, spread, pixels);
}

/// Vectors j, j + period, … of one row; `count` of them, the last perhaps the row's last.
template <int width, int count>
void forward_block(const Direct& d, const Phase& phase, const float* x, const float* table,
                   __m512 bias, float* y, bool ends_row) {
  const __m512i spread = _mm512_load_si512(phase.spread.data());
  const __mmask16 last_reads = ends_row ? phase.last_reads : phase.reads;
  __m512 sum[count];
  for (auto& s : sum) s = bias;
  for (const std::int64_t offset : d.offsets) {
    const __m512 weight = _mm512_load_ps(table);
    table += lanes;
#pragma GCC unroll 8
    for (int v = 0; v < count; ++v) {
      const __mmask16 reads = v + 1 < count ? phase.reads : last_reads;
      const __m512 pixels = load_spread<width>(x + offset + v * d.period_input, reads, spread);
      sum[v] = _mm512_fmadd_ps(weight, pixels, sum[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < count; ++v) {
    float* to = y + v * d.period() * lanes;
    if (d.relu) sum[v] = relu(sum[v]);
    if (ends_row && v + 1 == count) {
      _mm512_mask_storeu_ps(to, d.last, sum[v]);
    } else {
      _mm512_storeu_ps(to, sum[v]);
    }
  }
}

template <int width>
void run_forward(const KernelCall& call, const Direct& d) {
  const float *weight = call.in<float>(1), *bias = d.biased ? call.in<float>(2) : nullptr;
  auto* table = static_cast<float*>(call.workspace);
  float* biases = table + d.weights() * d.period() * lanes;
  float* padded = biases + d.period() * lanes;
  for (std::int64_t p = 0; p < d.period(); ++p) {
    for (std::int64_t l = 0; l < lanes; ++l) {
      const std::int64_t k = d.channel(p, l);
      biases[p * lanes + l] = bias ? bias[k] : 0.0f;
      for (std::int64_t i = 0; i < d.weights(); ++i) {
        table[(p * d.weights() + i) * lanes + l] = weight[i * d.y.c + k];
      }
    }
  }
  d.x.clear(padded);
  const std::int64_t period = d.period();
  for (std::int64_t i = 0; i < d.y.n; ++i) {
    const float* sample = d.x.sample(call.in<float>(0), i, padded);
    for (std::int64_t oy = 0; oy < d.y.h; ++oy) {
      const float* row = sample + oy * d.step * d.x.row();
      float* y = call.out<float>(0) + d.y.at(i, oy, 0);
      for (std::int64_t p = 0; p < period; ++p) {
        const Phase& phase = d.phases[static_cast<std::size_t>(p)];
        const float* vectors = table + p * d.weights() * lanes;
        const __m512 start = _mm512_load_ps(biases + p * lanes);
        const float* x = row + phase.first;
        std::int64_t j = p;
        const auto block = [&]<int count>(std::integral_constant<int, count>) {
          const bool ends_row = j + (count - 1) * period == d.vectors - 1;
          forward_block<width, count>(d, phase, x, vectors, start, y + j * lanes, ends_row);
          j += count * period;
          x += count * d.period_input;
        };
        while (j + 3 * period < d.vectors) block(std::integral_constant<int, 4>{});
        while (j + 2 * period < d.vectors) block(std::integral_constant<int, 3>{});
        while (j + period < d.vectors) block(std::integral_constant<int, 2>{});
        if (j < d.vectors) block(std::integral_constant<int, 1>{});
      }
    }
  }
  zero_halo(call.out<float>(0), d.y);
}

/// Adds one sample's share to `count` sums, each a vector over the lanes of a phase.
template <int width, int count>
void grad_weight_block(const Direct& d, std::int64_t p, const float* sample,
                       const std::int64_t* offsets, const float* gradient, float* sums) {
  const Phase& phase = d.phases[static_cast<std::size_t>(p)];
  const __m512i spread = _mm512_load_si512(phase.spread.data());
  __m512 sum[count];
#pragma GCC unroll 16
  for (int t = 0; t < count; ++t) sum[t] = _mm512_load_ps(sums + t * lanes);
  const auto add = [&](const float* x, const float* dy, __mmask16 reads, __mmask16 mask) {
    const __m512 g = _mm512_maskz_loadu_ps(mask, dy);
#pragma GCC unroll 16
    for (int t = 0; t < count; ++t) {
      sum[t] = _mm512_fmadd_ps(g, load_spread<width>(x + offsets[t], reads, spread), sum[t]);
    }
  };
  for (std::int64_t oy = 0; oy < d.y.h; ++oy) {
    const float* x = sample + oy * d.step * d.x.row() + phase.first;
    const float* dy = gradient + oy * d.y.row;
    std::int64_t j = p;
    for (; j < d.vectors - 1; j += d.period(), x += d.period_input) {
      add(x, dy + j * lanes, phase.reads, 0xffff);
    }
    if (j == d.vectors - 1) add(x, dy + j * lanes, phase.last_reads, d.last);
  }
#pragma GCC unroll 16
  for (int t = 0; t < count; ++t) _mm512_store_ps(sums + t * lanes, sum[t]);
}

constexpr int max_block = 13;  ///< two of them make 5×5

using GradWeightBlock = void (*)(const Direct&, std::int64_t, const float*, const std::int64_t*,
                                 const float*, float*);

template <int width>
constexpr auto grad_weight_blocks = []<int... count>(std::integer_sequence<int, count...>) {
  return std::array<GradWeightBlock, max_block>{grad_weight_block<width, count + 1>...};
}
(std::make_integer_sequence<int, max_block>{});

template <int width>
void run_grad_weight(const KernelCall& call, const Direct& d) {
  auto* sums = static_cast<float*>(call.workspace);
  float* padded = sums + d.weights() * d.period() * lanes;
  std::fill(sums, padded, 0.0f);
  d.x.clear(padded);
  const std::int64_t blocks = divide_up(d.weights(), max_block);
  for (std::int64_t i = 0; i < d.y.n; ++i) {
    const float* sample = d.x.sample(call.in<float>(0), i, padded);
    const float* gradient = call.in<float>(1) + d.y.at(i, 0, 0);
    for (std::int64_t p = 0; p < d.period(); ++p) {
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t from = b * d.weights() / blocks, to = (b + 1) * d.weights() / blocks;
        grad_weight_blocks<width>[static_cast<std::size_t>(to - from - 1)](
            d, p, sample, d.offsets.data() + from, gradient,
            sums + (p * d.weights() + from) * lanes);
      }
    }
  }
  float* dw = call.out<float>(0);
  std::fill_n(dw, d.weights() * d.y.c, 0.0f);
  for (std::int64_t p = 0; p < d.period(); ++p) {
    for (std::int64_t t = 0; t < d.weights(); ++t) {
      const float* sum = sums + (p * d.weights() + t) * lanes;
      for (std::int64_t l = 0; l < lanes; ++l) dw[t * d.y.c + d.channel(p, l)] += sum[l];
    }
  }
}

template <auto geometry>
Direct build(const OpView& op) {
  return direct(geometry(op));
}

/// A `Kernel::prepare` of it: the function for its width of load.
template <auto geometry, auto of_4, auto of_8, auto of_16>
PreparedKernel by_width(const OpView& op) {
  const Direct d = build<geometry>(op);
  __mmask16 reads = 0;
  for (const Phase& phase : d.phases) reads |= phase.reads;
  return reads < 1 << 4   ? prepared<of_4>(d)
         : reads < 1 << 8 ? prepared<of_8>(d)
                          : prepared<of_16>(d);
}

}  // namespace

Kernel direct_forward() {
  return {.name = "direct",
          .supports = [](const OpView& op) { return supports(Geometry::forward(op), 24); },
          .workspace =
              [](const OpView& op) {
                const Direct d = build<Geometry::forward>(op);
                return d.table_bytes() + d.period() * 64 + d.x.scratch_bytes();
              },
          .prepare = by_width<Geometry::forward, run_forward<4>, run_forward<8>, run_forward<16>>,
          .wanted_halo = padding_halo<Geometry::forward>,
          .writes_halo = true};
}

Kernel direct_grad_weight() {
  return {.name = "direct",
          .supports = [](const OpView& op) { return supports(Geometry::grad_weight(op), 32); },
          .workspace =
              [](const OpView& op) {
                const Direct d = build<Geometry::grad_weight>(op);
                return d.table_bytes() + d.x.scratch_bytes();
              },
          .prepare = by_width<Geometry::grad_weight, run_grad_weight<4>, run_grad_weight<8>,
                              run_grad_weight<16>>,
          .wanted_halo = padding_halo<Geometry::grad_weight, 0>};
}

#else

Kernel direct_forward() { return without_avx512("direct"); }
Kernel direct_grad_weight() { return without_avx512("direct"); }

#endif

}  // namespace arenite::codelets::conv2d
