// The input gradient from living windows alone.
//
// The (KH+1)x(KW+1) pixels below a 2x2 window (one more each way below one of 3x3) are a patch of
// sums in registers; each channel of the window that is alive adds gradient · weights to the KHxKW
// of them that its winner chose:
//
//   16·m channels   a vector is one pixel's 16 channels; the winner's column moves the weights by
//   as
//                   many vectors
//   others          a vector is 16 of a row's (pixel, channel) pairs; further copies of the
//   weights,
//                   each moved by one pixel, serve winners of the other columns
//
// A patch that has more sums than registers is cut into parts, each a sweep over the windows.
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"
#include "codelets/conv2d_relu_max_pool2d/transpose.hpp"
#include "codelets/rectify.hpp"
#include "codelets/words.hpp"

#include <utility>

namespace arenite::codelets::conv2d_relu_max_pool2d {

#ifdef ARENITE_AVX512

namespace {

using namespace sparse;

constexpr int max_sums = 28;  ///< leaves registers for the factors
constexpr int max_rows = 7, max_vectors = 12;

constexpr std::int64_t chunk = 64;  ///< output channels whose codes are one vector

struct GradInput;
struct Sweep;

/// Adds the share of output channels k…k+63 of sample i to the sums in `sample`.
using AddWindows = void (*)(const GradInput& s, const Sweep& sweep, const KernelCall& call,
                            std::int64_t i, std::int64_t k, float* sample);

/// Part of the kernel: `rows` rows, `vectors` vectors of each.
struct Sweep {
  std::int64_t y, vector;    ///< the first row and the first vector of each
  std::int64_t channel = 0;  ///< the first, where vectors are pixels
  std::int64_t rows, vectors;
  std::int64_t weights;  ///< first element in workspace: [copies, K, rows, vectors, 16]
  AddWindows add = nullptr;

  std::int64_t size() const noexcept { return rows * vectors * lanes; }
};

struct GradInput {
  Geometry g;
  bool pixels;       ///< vectors are 16 channels of a pixel
  std::int64_t row;  ///< floats of a padded row
  std::vector<Sweep> sweeps;
  std::int64_t weights = 0;  ///< floats of all sweeps' weights

  /// Of the weights: where vectors are pixels, all columns of a window share one.
  std::int64_t copies() const noexcept { return pixels ? 1 : g.pool.w; }
  /// From a vector of sums to the next of its row.
  std::int64_t step() const noexcept { return pixels ? g.x.c : lanes; }
  /// The last vector of a row may reach beyond it, the very last one beyond the sample.
  std::int64_t sample() const noexcept { return (g.x.h + 2 * g.window.padding.h) * row + lanes; }
};

/// Adds the channels `winners` to the patch, from its row y and vector x on.
template <int y, int x, int rows, int vectors, int height, int columns>
[[gnu::always_inline]] inline void add_winners(std::uint64_t winners, const float* gradient,
                                               const float* weights,
                                               __m512 (&sum)[height][columns]) {
  for (; winners; winners &= winners - 1) {
    const auto k = __builtin_ctzll(winners);
    const __m512 factor = _mm512_set1_ps(gradient[k]);
    const float* w = weights + k * (rows * vectors * lanes);
    asm("" : "+r"(w));  // one register and a displacement: indexed operands cost a second micro-op
#pragma GCC unroll 32
    for (int j = 0; j < rows * vectors; ++j) {
      __m512& to = sum[j / vectors + y][j % vectors + x];
      to = _mm512_fmadd_ps(factor, _mm512_load_ps(w + j * lanes), to);
    }
  }
}

/// Windows of side × side.
template <int side, int rows, int vectors, bool pixels>
void add_windows(const GradInput& s, const Sweep& sweep, const KernelCall& call, std::int64_t i,
                 std::int64_t k, float* sample) {
  // Of a pixel's columns, the next window has all but `side`: they stay in registers.
  constexpr int height = rows + side - 1, columns = vectors + (pixels ? side - 1 : 0),
                kept = pixels ? std::max(columns - side, 0) : 0;
  const Geometry& g = s.g;
  const std::int64_t outputs = std::min(chunk, g.y.c - k), step = s.step();
  const auto channels = ~std::uint64_t{0} >> (chunk - outputs);
  const float* weights =
      static_cast<const float*>(call.workspace) + sweep.weights + k * sweep.size();
  const std::int64_t copy = pixels ? 0 : g.y.c * sweep.size();
  for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
    const float* gradient = call.in<float>(0) + g.y.at(i, oy, 0) + k;
    const std::uint8_t* code = call.in<std::uint8_t>(1) + g.code.at(i, oy, 0) + k;
    float* patch = sample + (oy * side + sweep.y) * s.row + sweep.vector * step + sweep.channel;
    __m512 sum[height][columns];
    const auto load = [&](int from) {
#pragma GCC unroll 32
      for (int j = 0; j < height * columns; ++j) {
        const int r = j / columns, c = j % columns;
        if (c >= from) sum[r][c] = _mm512_loadu_ps(patch + r * s.row + c * step);
      }
    };
    const auto store = [&](int from, int to) {
#pragma GCC unroll 32
      for (int j = 0; j < height * columns; ++j) {
        const int r = j / columns, c = j % columns;
        if (c >= from && c < to) _mm512_storeu_ps(patch + r * s.row + c * step, sum[r][c]);
      }
    };
    load(0);
    for (std::int64_t ox = 0;;) {
      const __m512i codes = _mm512_maskz_loadu_epi8(channels, code);
      const auto winners = [&](int tap) {
        return _mm512_mask_cmpeq_epi8_mask(channels, codes,
                                           _mm512_set1_epi8(static_cast<char>(tap)));
      };
      [&]<int... tap>(std::integer_sequence<int, tap...>) {
        (add_winners<tap / side, (pixels ? tap % side : 0), rows, vectors>(
             winners(tap), gradient, weights + tap % side * copy, sum),
         ...);
      }
      (std::make_integer_sequence<int, side * side>{});
      store(0, columns - kept);
      if (++ox == g.y.w) break;
      if constexpr (kept > 0) {
#pragma GCC unroll 32
        for (int j = 0; j < height * kept; ++j) {
          sum[j / kept][j % kept] = sum[j / kept][j % kept + side];
        }
      }
      gradient += g.y.c;
      code += g.y.c;
      patch += side * g.x.c;
      load(kept);
    }
    store(columns - kept, columns);
  }
}

constexpr bool fits(std::int64_t side, std::int64_t rows, std::int64_t vectors,
                    bool pixels) noexcept {
  return rows <= max_rows && vectors <= max_vectors &&
         (rows + side - 1) * (vectors + (pixels ? side - 1 : 0)) <= max_sums;
}

template <int side>
AddWindows add_function(std::int64_t rows, std::int64_t vectors, bool pixels) {
  AddWindows found = nullptr;
  const auto look = [&]<int r, int v>(std::integer_sequence<int, r, v>) {
    if (rows != r || vectors != v) return;
    if constexpr (fits(side, r, v, true)) {
      if (pixels) found = add_windows<side, r, v, true>;
    }
    if constexpr (fits(side, r, v, false)) {
      if (!pixels) found = add_windows<side, r, v, false>;
    }
  };
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (look(std::integer_sequence<int, i / max_vectors + 1, i % max_vectors + 1>{}), ...);
  }
  (std::make_integer_sequence<int, max_rows * max_vectors>{});
  return found;
}

/// Brings a sweep's weights into the order in which they are added. Lanes without a weight are 0.
void arrange(const GradInput& s, const Sweep& sweep, const float* weight, float* to) {
  const std::int64_t outputs = s.g.y.c, inputs = s.g.x.c, run = s.g.window.kernel.w * inputs;
  for (std::int64_t copy = 0; copy < s.copies(); ++copy) {
    for (std::int64_t r = 0; r < sweep.rows; ++r) {
      for (std::int64_t v = 0; v < sweep.vectors; ++v) {
        const std::int64_t first = (sweep.vector + v) * s.step() + sweep.channel - copy * inputs;
        for (std::int64_t k = 0; k < outputs; k += lanes) {
          const __mmask16 mask = first_lanes(outputs - k);
          alignas(64) float tile[lanes * lanes];
          for (std::int64_t l = 0; l < lanes; ++l) {
            const bool inside = first + l >= 0 && first + l < run;
            const float* from = weight + ((sweep.y + r) * run + first + l) * outputs + k;
            _mm512_store_ps(tile + l * lanes, _mm512_maskz_loadu_ps(inside ? mask : 0, from));
          }
          __m512 columns[lanes];
          transpose(tile, lanes, columns);
          float* vectors =
              to + (copy * outputs + k) * sweep.size() + (r * sweep.vectors + v) * lanes;
#pragma GCC unroll 16
          for (std::int64_t c = 0; c < lanes; ++c) {
            if (k + c < outputs) _mm512_store_ps(vectors + c * sweep.size(), columns[c]);
          }
        }
      }
    }
  }
}

void run(const KernelCall& call, const GradInput& s) {
  const Geometry& g = s.g;
  auto* weights = static_cast<float*>(call.workspace);
  float *sample = weights + s.weights, *dx = call.out<float>(0);
  const float* output = g.output ? call.in<float>(3) : nullptr;
  for (const Sweep& sweep : s.sweeps) arrange(s, sweep, call.in<float>(2), weights + sweep.weights);
  for (std::int64_t i = 0; i < g.y.n; ++i) {
    std::fill_n(sample, s.sample(), 0.0f);
    for (const Sweep& sweep : s.sweeps) {
      for (std::int64_t k = 0; k < g.y.c; k += chunk) sweep.add(s, sweep, call, i, k, sample);
    }
    const float* from = sample + g.window.padding.h * s.row + g.window.padding.w * g.x.c;
    for (std::int64_t y = 0; y < g.x.h; ++y) {
      finish_row(g.output, output, i, y, from + y * s.row, g.x.w * g.x.c, dx + g.x.at(i, y, 0));
    }
  }
  zero_halo(dx, g.x);
}

GradInput grad_input(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  GradInput s{
      .g = g, .pixels = g.x.c % lanes == 0, .row = (g.x.w + 2 * g.window.padding.w) * g.x.c};
  const std::int64_t height = g.window.kernel.h,
                     vectors = s.pixels
                                   ? g.window.kernel.w
                                   : divide_up((g.window.kernel.w + g.pool.w - 1) * g.x.c, lanes);
  // As many rows as leave room for all vectors; else all rows that leave room for one.
  std::int64_t rows = std::min<std::int64_t>(height, max_rows), widest = vectors;
  while (rows > 1 && !fits(g.pool.h, rows, vectors, s.pixels)) --rows;
  if (!fits(g.pool.h, rows, vectors, s.pixels)) {
    rows = std::min<std::int64_t>(height, max_rows);
    while (!fits(g.pool.h, rows, widest, s.pixels)) --widest;
  }
  for (std::int64_t channel = 0; channel < (s.pixels ? g.x.c : 1); channel += lanes) {
    for (const Part& part : split(height, rows)) {
      for (const Part& run : split(vectors, widest)) {
        const Sweep sweep{
            .y = part.first,
            .vector = run.first,
            .channel = channel,
            .rows = part.count,
            .vectors = run.count,
            .weights = s.weights,
            .add = (g.pool.h == 2 ? add_function<2> : add_function<3>)(part.count, run.count,
                                                                       s.pixels)};
        s.weights += s.copies() * g.y.c * sweep.size();
        s.sweeps.push_back(sweep);
      }
    }
  }
  return s;
}

graph::Support supports(const OpView& op) {
  const Geometry g = Geometry::grad_input(op);
  const Window& w = g.window;
  constexpr std::int64_t most_taps = 7 * 7;
  const double padded = static_cast<double>(g.x.h + 2 * w.padding.h) *
                        static_cast<double>(g.x.w + 2 * w.padding.w) * static_cast<double>(g.x.c);
  if (const graph::Support steps = moves_by_one(w); !steps) return steps;
  if (g.pool != Pair{2, 2} && g.pool != Pair{3, 3}) return "pooling other than 2x2 and 3x3";
  if (g.taps() > most_taps || w.kernel.w > 7) return "more than 49 taps, or 7 in a row";
  if (in_proportion(padded, static_cast<double>(g.x.sample()))) return {};
  return "a padded copy out of proportion to the image";
}

}  // namespace

Kernel sparse_grad_input() {
  return {.name = "sparse",
          .supports = supports,
          .workspace =
              [](const OpView& op) {
                const GradInput s = grad_input(op);
                return (s.weights + s.sample()) * float_bytes;
              },
          .prepare = prepare<grad_input, run>,
          .wanted_halo = skipped_halo<0, 1, 3>,
          .writes_halo = true};
}

#else

Kernel sparse_grad_input() { return without_avx512("sparse"); }

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
