// The weight gradient of kernels on few input channels, whose taps would leave most lanes empty.
//
// Lanes are outputs as they lie in memory: all channels of as many windows side by side as a vector
// holds. Each row of pixels below these windows is one vector, and a lane picks its winner's tap:
//
//   windows      0 0 0 0 1 1 1 1 2 2 2 2 …     (of 4 channels)
//   tap (0, 0)   from row 0 or 1, pixel 0 or 1 | 2 or 3 | 4 or 5 …, by the lane's code
//   tap (0, 1)   one pixel further
//   tap (1, 0)   from row 1 or 2
//
// so that a tap costs one instruction that picks from two rows and one that adds; lanes that are
// dead add 0. A kernel with more taps than registers is cut into parts, each a sweep over the
// windows.
#include "codelets/avx512.hpp"
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"
#include "codelets/words.hpp"

#include <array>
#include <utility>

namespace arenite::codelets::conv2d_relu_max_pool2d {

#ifdef ARENITE_AVX512

namespace {

constexpr int max_sums = 15;  ///< leaves registers for pixels and for where each lane finds its own
constexpr int max_rows = 3, max_run = 9;

struct Patches;

/// Where one sample's pixels, gradients and codes begin, those of a sweep's taps and channels.
struct Sample {
  const float *x, *gradient;
  const std::uint8_t* code;
};

/// Adds the share of a sample to the sums of `channels` output channels.
using AddSample = void (*)(const Patches& s, const Sample& sample, std::int64_t channels,
                           float* sums);

/// Part of the kernel: `rows` rows, `run` elements (pixels times channels) of each.
struct Sweep {
  std::int64_t y, element;  ///< the first
  std::int64_t rows, run;
  std::int64_t slot;  ///< of its sums; behind them one of the gradients themselves
  AddSample add;

  std::int64_t slots() const noexcept { return rows * run + 1; }
};

struct Patches {
  Geometry g;
  PaddedSamples x;
  std::int64_t windows = 0;  ///< side by side in a vector
  std::int64_t slots = 0;    ///< of all sweeps
  std::vector<Sweep> sweeps;
  alignas(64) std::array<std::int32_t, lanes> tap{};    ///< code → its place in two rows of lanes
  alignas(64) std::array<std::int32_t, lanes> first{};  ///< lane → its window's first pixel

  std::int64_t channels() const noexcept { return std::min(g.y.c, lanes); }  ///< in a vector
  std::int64_t sums() const noexcept { return divide_up(g.y.c, lanes) * slots * lanes; }
  /// Elements of a row below so many windows, for a sweep with runs of `run`.
  std::int64_t span(std::int64_t count, std::int64_t run) const noexcept {
    return (count * g.pool.w - 1) * g.x.c + run;
  }
};

/// `reach`: rows of a pooling window.
template <int rows, int run, int reach>
void add_sample(const Patches& s, const Sample& sample, std::int64_t channels, float* sums) {
  const Geometry& g = s.g;
  const std::int64_t row = s.x.row();
  __m512 sum[rows][run], bias = _mm512_load_ps(sums + rows * run * lanes);
#pragma GCC unroll 16
  for (int t = 0; t < rows * run; ++t) sum[t / run][t % run] = _mm512_load_ps(sums + t * lanes);
  const __m512i taps = _mm512_load_si512(s.tap.data()), first = _mm512_load_si512(s.first.data());
  const __m128i none = _mm_set1_epi8(static_cast<char>(dead)),
                last_upper = _mm_set1_epi8(static_cast<char>(2 * g.pool.w - 1));
  const auto add = [&](const float* x, const float* gradients, const std::uint8_t* code,
                       __mmask16 outputs, __mmask16 pixels) __attribute__((always_inline)) {
    const __m128i codes = _mm_maskz_loadu_epi8(outputs, code);
    const __mmask16 alive = _mm_mask_testn_epi8_mask(outputs, codes, none);
    const __mmask16 third = reach > 2 ? _mm_mask_cmpgt_epu8_mask(alive, codes, last_upper) : 0;
    const __m512 gradient = _mm512_maskz_loadu_ps(alive, gradients);
    bias = _mm512_add_ps(bias, gradient);
    const __m512i place = _mm512_add_epi32(
        first,
        _mm512_maskz_permutexvar_epi32(0xffff, _mm512_maskz_cvtepu8_epi32(0xffff, codes), taps));
    __m512i at[run];
#pragma GCC unroll 9
    for (int e = 0; e < run; ++e) at[e] = _mm512_add_epi32(place, _mm512_set1_epi32(e));
    __m512 below[reach];
#pragma GCC unroll 3
    for (int r = 0; r < reach; ++r) {
      below[r] = _mm512_maskz_loadu_ps(pixels, x);
      x += row;
    }
#pragma GCC unroll 3
    for (int t = 0; t < rows; ++t) {
#pragma GCC unroll 9
      for (int e = 0; e < run; ++e) {
        __m512 values = _mm512_permutex2var_ps(below[0], at[e], below[1]);
        if (reach > 2) {
          values = _mm512_mask_permutexvar_ps(values, third, at[e], below[reach - 1]);
        }
        sum[t][e] = _mm512_fmadd_ps(gradient, values, sum[t][e]);
      }
      if (t + 1 == rows) break;
#pragma GCC unroll 3
      for (int r = 0; r + 1 < reach; ++r) below[r] = below[r + 1];
      below[reach - 1] = _mm512_maskz_loadu_ps(pixels, x);
      x += row;
    }
  };
  const std::int64_t windows = s.windows, rest = (g.y.w - 1) % windows + 1,
                     step = windows * g.pool.w * g.x.c, all = g.y.w - rest;
  const auto lanes_of = [&](std::int64_t count) {
    return first_lanes(count == 1 ? channels : count * channels);
  };
  const __mmask16 outputs = lanes_of(windows), last_outputs = lanes_of(rest),
                  pixels = first_lanes(s.span(windows, run)),
                  last_pixels = first_lanes(s.span(rest, run));
  for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
    const float *x = sample.x + oy * g.pool.h * row, *gradient = sample.gradient + oy * g.y.row;
    const std::uint8_t* code = sample.code + oy * g.code.row;
    for (std::int64_t ox = 0; ox < all; ox += windows) {
      add(x, gradient + ox * g.y.c, code + ox * g.y.c, outputs, pixels);
      x += step;
    }
    add(x, gradient + all * g.y.c, code + all * g.y.c, last_outputs, last_pixels);
  }
#pragma GCC unroll 16
  for (int t = 0; t < rows * run; ++t) _mm512_store_ps(sums + t * lanes, sum[t / run][t % run]);
  _mm512_store_ps(sums + rows * run * lanes, bias);
}

constexpr int most_rows(std::int64_t run) noexcept {
  return std::min(max_rows, max_sums / static_cast<int>(run));
}

AddSample add_function(std::int64_t rows, std::int64_t run, std::int64_t reach) {
  AddSample found = nullptr;
  const auto look = [&]<int r, int n>(std::integer_sequence<int, r, n>) {
    if constexpr (r <= most_rows(n)) {
      if (rows == r && run == n) found = reach == 2 ? add_sample<r, n, 2> : add_sample<r, n, 3>;
    }
  };
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (look(std::integer_sequence<int, i / max_run + 1, i % max_run + 1>{}), ...);
  }
  (std::make_integer_sequence<int, max_rows * max_run>{});
  return found;
}

/// Sums → dweight and dbias, windows of a vector together, for output channels k…k+channels−1.
void store_sums(const Patches& s, const float* sums, std::int64_t k, std::int64_t channels,
                float* dw, float* db) {
  const Geometry& g = s.g;
  const auto store = [&](std::int64_t slot, float* to) {
    const float* from = sums + slot * lanes;
    std::copy_n(from, channels, to);
    for (std::int64_t w = 1; w < s.windows; ++w) {
      for (std::int64_t c = 0; c < channels; ++c) to[c] += from[w * channels + c];
    }
  };
  for (const Sweep& sweep : s.sweeps) {
    for (std::int64_t t = 0; t < sweep.rows * sweep.run; ++t) {
      const std::int64_t y = sweep.y + t / sweep.run, element = sweep.element + t % sweep.run;
      store(sweep.slot + t, dw + (y * g.window.kernel.w * g.x.c + element) * g.y.c + k);
    }
  }
  store(s.sweeps.front().slots() - 1, db + k);
}

void run(const KernelCall& call, const Patches& s) {
  const Geometry& g = s.g;
  auto* sums = static_cast<float*>(call.workspace);
  float* padded = sums + s.sums();
  std::fill_n(sums, s.sums(), 0.0f);
  s.x.clear(padded);
  for (std::int64_t i = 0; i < g.y.n; ++i) {
    const float* x = s.x.sample(call.in<float>(0), i, padded) - g.window.padding.h * s.x.row() -
                     g.window.padding.w * g.x.c;
    float* to = sums;
    for (std::int64_t k = 0; k < g.y.c; k += lanes) {
      for (const Sweep& sweep : s.sweeps) {
        sweep.add(s,
                  {x + sweep.y * s.x.row() + sweep.element, call.in<float>(1) + g.y.at(i, 0, 0) + k,
                   call.in<std::uint8_t>(2) + g.code.at(i, 0, 0) + k},
                  std::min(lanes, g.y.c - k), to + sweep.slot * lanes);
      }
      to += s.slots * lanes;
    }
  }
  for (std::int64_t k = 0; k < g.y.c; k += lanes, sums += s.slots * lanes) {
    store_sums(s, sums, k, std::min(lanes, g.y.c - k), call.out<float>(0), call.out<float>(1));
  }
}

Patches patches(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  Patches s{.g = g, .x = PaddedSamples(g.x, g.window.padding)};
  s.windows = std::clamp(lanes / g.y.c, std::int64_t{1}, g.y.w);
  const std::vector<Part> runs = split(g.window.kernel.w * g.x.c, max_run);
  const std::int64_t longest = runs.back().count;
  while (s.windows > 1 && s.span(s.windows, longest) > lanes) --s.windows;
  for (const auto [element, run] : runs) {
    for (const auto [y, rows] : split(g.window.kernel.h, most_rows(run))) {
      s.sweeps.push_back({.y = y,
                          .element = element,
                          .rows = rows,
                          .run = run,
                          .slot = s.slots,
                          .add = add_function(rows, run, g.pool.h)});
      s.slots += s.sweeps.back().slots();
    }
  }
  for (std::int64_t code = 0; code < g.pool.h * g.pool.w; ++code) {
    const Pair at = g.winner(0, 0, static_cast<std::uint8_t>(code));
    // The third row is picked from by itself.
    s.tap[static_cast<std::size_t>(code)] =
        static_cast<std::int32_t>(at.h % 2 * lanes + at.w * g.x.c);
  }
  for (std::int64_t l = 0; l < lanes; ++l) {
    s.first[static_cast<std::size_t>(l)] =
        static_cast<std::int32_t>(l / s.channels() * g.pool.w * g.x.c);
  }
  return s;
}

/// Windows of two or three rows. With more weights lists of winners are faster.
graph::Support supports(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  const Window& w = g.window;
  constexpr std::int64_t most_weights = 27;  // of an output channel
  if (const graph::Support steps = moves_by_one(w); !steps) return steps;
  if (g.pool.h != 2 && g.pool.h != 3) return "pooling over other than 2 or 3 rows";
  if (g.pool.h * g.pool.w > lanes) return "pooling over more than 16 pixels";
  if (g.taps() > most_weights || g.taps() * g.x.c > most_weights)
    return "more than 27 weights an output channel";
  if ((g.pool.w + w.kernel.w - 1) * g.x.c > lanes)
    return "a pooled output that reads more than 16 floats of a row";
  return PaddedSamples(g.x, w.padding).fits();
}

}  // namespace

Kernel sparse_patch_grad_weight() {
  return {.name = "sparse_patch",
          .supports = supports,
          .workspace =
              [](const OpView& op) {
                const Patches s = patches(op);
                return s.sums() * float_bytes + s.x.scratch_bytes();
              },
          .prepare = prepare<patches, run>,
          .wanted_halo = padding_halo<Geometry::grad_weight, 0>};
}

#else

Kernel sparse_patch_grad_weight() { return without_avx512("sparse_patch"); }

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
