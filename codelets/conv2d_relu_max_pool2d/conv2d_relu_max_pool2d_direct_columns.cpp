// The direct forward kernel for fewer than 16 output channels: a vector of pixels times one weight,
// for the 4 taps of the windows of up to 6 channels, 24 sums, or the 9 taps of 2 channels. The
// columns of a sample are dealt out first, because neighbouring windows of 2x2 read every other
// pixel:
//
//   row:  p0 p1 p2 p3 p4 p5 …    →    p0 p2 p4 …   p1 p3 p5 …
//   left taps at kernel column 0, 1, 2:   p0 p2 …   p1 p3 …   p2 p4 …
#include "codelets/conv2d_relu_max_pool2d/direct.hpp"
#include "codelets/conv2d_relu_max_pool2d/pooling.hpp"

#include <array>
#include <utility>

namespace arenite::codelets::conv2d_relu_max_pool2d::direct {

#ifdef ARENITE_AVX512
namespace {

constexpr std::int64_t max_stride = 4;  ///< of columns

/// Output channels at a time: as many as leave registers for a window's pixels.
constexpr int max_block(int pool) noexcept { return pool == 2 ? 6 : 2; }

struct Columns;

/// Where some output channels of a sample are read and written.
struct Sample {
  const float *x, *weight;
  const float* bias;  ///< or null
  float* y;
  std::uint8_t* code;
};

using AddSample = void (*)(const Columns& s, const Sample& sample);

struct Channels {
  std::int64_t first;
  AddSample run;
};

struct Columns {
  Geometry g;
  std::int64_t phases;  ///< column p of the padded sample lies at p / phases of run p % phases
  std::int64_t length;  ///< of a run
  std::vector<Channels> channels;
  /// Where a weight's pixels lie, for the first column of a window and the others, from the first
  /// of the row that the window begins in; one a weight: tap-major, channels inside.
  std::vector<std::array<std::int64_t, 3>> taps;

  std::int64_t run(std::int64_t phase) const noexcept { return phase * length; }
  std::int64_t channel() const noexcept { return phases * length; }
  std::int64_t pixels() const noexcept { return g.x.c * channel(); }  ///< floats of a row
  std::int64_t rows() const noexcept { return g.x.h + 2 * g.window.padding.h; }
  std::int64_t bytes() const noexcept { return rows() * pixels() * float_bytes; }
};

// ---- dealing out -------------------------------------------------------------------------------

/// Both runs of rows of single pixels, 32 pixels at a time. `even` and `odd`: where the first pixel
/// and the second go.
void deal_pairs(const Image& x, const float* from, float* even, float* odd, std::int64_t to_row) {
  const __m512i pick = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                next = _mm512_add_epi32(pick, _mm512_set1_epi32(1));
  for (std::int64_t at = 0; at < x.w; at += 2 * lanes) {
    const std::int64_t left = x.w - at;
    const __mmask16 low = first_lanes(left),
                    high = first_lanes(std::max(left - lanes, std::int64_t{0})),
                    evens = first_lanes((left + 1) / 2), odds = first_lanes(left / 2);
    for (std::int64_t y = 0; y < x.h; ++y) {
      const float* pixels = from + y * x.row + at;
      const __m512 a = _mm512_maskz_loadu_ps(low, pixels),
                   b = _mm512_maskz_loadu_ps(high, pixels + lanes);
      _mm512_mask_storeu_ps(even + y * to_row + at / 2, evens, _mm512_permutex2var_ps(a, pick, b));
      _mm512_mask_storeu_ps(odd + y * to_row + at / 2, odds, _mm512_permutex2var_ps(a, next, b));
    }
  }
}

/// `count` pixels, `step` elements apart.
void deal_run(const float* from, std::int64_t step, std::int64_t count, float* to) {
  const __m512i ramp = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                at = _mm512_mullo_epi32(ramp, _mm512_set1_epi32(static_cast<int>(step)));
  for (std::int64_t j = 0; j < count; j += lanes) {
    const __mmask16 mask = first_lanes(count - j);
    const __m512 dealt =
        _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, at, from + j * step, 4);
    _mm512_mask_storeu_ps(to + j, mask, dealt);
  }
}

/// Deals one sample's columns out; the zeros around it are there.
void deal_sample(const Columns& s, const float* x, std::int64_t i, float* to) {
  const Image& image = s.g.x;
  const Pair padding = s.g.window.padding;
  const float* first = x + image.at(i, 0, 0);
  const auto run = [&](std::int64_t column) {
    const std::int64_t p = column + padding.w;
    return to + padding.h * s.pixels() + s.run(p % s.phases) + p / s.phases;
  };
  if (s.phases == 2 && image.c == 1) {
    deal_pairs(image, first, run(0), run(1), s.pixels());
    return;
  }
  for (std::int64_t column = 0; column < std::min(s.phases, image.w); ++column) {
    const std::int64_t count = divide_up(image.w - column, s.phases);
    for (std::int64_t y = 0; y < image.h; ++y) {
      for (std::int64_t c = 0; c < image.c; ++c) {
        deal_run(first + y * image.row + column * image.c + c, s.phases * image.c, count,
                 run(column) + y * s.pixels() + c * s.channel());
      }
    }
  }
}

// ---- outputs -----------------------------------------------------------------------------------

template <int side, int count>
using Sums = __m512[count][side * side];

template <int side, int count>
[[gnu::always_inline]] inline void add_products(const float* weight,
                                                const __m512 (&pixels)[side][side],
                                                Sums<side, count>& sum) {
#pragma GCC unroll 6
  for (int k = 0; k < count; ++k) {
    const __m512 w = _mm512_set1_ps(weight[k]);
#pragma GCC unroll 9
    for (int t = 0; t < side * side; ++t) {
      sum[k][t] = _mm512_fmadd_ps(w, pixels[t / side][t % side], sum[k][t]);
    }
  }
}

/// Any stride and dilation.
template <int side, int count>
[[gnu::always_inline]] inline void add_taps(const Columns& s, const float* x, const float* weight,
                                            Sums<side, count>& sum) {
  const std::int64_t row = s.g.window.stride.h * s.pixels();
  for (const std::array<std::int64_t, 3>& columns : s.taps) {
    __m512 pixels[side][side];
#pragma GCC unroll 9
    for (int t = 0; t < side * side; ++t) {
      pixels[t / side][t % side] = _mm512_loadu_ps(x + t / side * row + columns[t % side]);
    }
    add_products<side, count>(weight, pixels, sum);
    weight += s.g.y.c;
  }
}

/// Taps side by side: most of what one reads the next one needs too. Rows of the kernel are a true
/// loop: unrolled, GCC has no registers for what it keeps.
template <int side, int kernel, int count>
[[gnu::always_inline]] inline void add_rows(const Columns& s, const float* x, const float* weight,
                                            Sums<side, count>& sum) {
  const std::int64_t step = s.g.x.c * s.g.y.c, row = s.pixels();
  for (std::int64_t c = 0; c < s.g.x.c; ++c) {
    const float *from = x + c * s.channel(), *w = weight + c * s.g.y.c;
    for (std::int64_t ky = 0; ky < s.g.window.kernel.h; ++ky, from += row) {
      asm("" : "+r"(from), "+r"(w));
      __m512 pixels[side][side];
      const auto load = [&](int column, int to) __attribute__((always_inline)) {
#pragma GCC unroll 3
        for (int r = 0; r < side; ++r) {
          pixels[r][to] = _mm512_loadu_ps(from + r * row + s.run(column % side) + column / side);
        }
      };
#pragma GCC unroll 3
      for (int column = 0; column + 1 < side; ++column) load(column, column);
#pragma GCC unroll 5
      for (int kx = 0; kx < kernel; ++kx, w += step) {
        load(kx + side - 1, side - 1);
        add_products<side, count>(w, pixels, sum);
#pragma GCC unroll 9
        for (int t = 0; t < side * (side - 1); ++t) {
          pixels[t % side][t / side] = pixels[t % side][t / side + 1];
        }
      }
    }
  }
}

/// Four channels of 16 windows, windows side by side.
struct Quads {
  alignas(64) float value[4 * lanes];
  alignas(16) std::uint8_t code[4 * lanes];
};

inline void interleave(const Pooled (&of)[4], Quads& to) {
  const __m512i pairs = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                twos = _mm512_setr_epi32(0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23),
                half = _mm512_set1_epi32(8);
  const auto low = [](__m512 a, __m512i how, __m512 b) {
    return _mm512_permutex2var_ps(a, how, b);
  };
  const auto high = [&](__m512 a, __m512i how, __m512 b) {
    return _mm512_permutex2var_ps(a, _mm512_add_epi32(how, half), b);
  };
  const __m512 a = low(of[0].value, pairs, of[1].value), b = high(of[0].value, pairs, of[1].value),
               c = low(of[2].value, pairs, of[3].value), d = high(of[2].value, pairs, of[3].value);
  _mm512_store_ps(to.value, low(a, twos, c));
  _mm512_store_ps(to.value + lanes, high(a, twos, c));
  _mm512_store_ps(to.value + 2 * lanes, low(b, twos, d));
  _mm512_store_ps(to.value + 3 * lanes, high(b, twos, d));
  const auto at = [&](std::int64_t j) { return reinterpret_cast<__m128i*>(to.code + j * lanes); };
  const __m128i e = _mm_unpacklo_epi8(of[0].code, of[1].code),
                f = _mm_unpackhi_epi8(of[0].code, of[1].code),
                g = _mm_unpacklo_epi8(of[2].code, of[3].code),
                h = _mm_unpackhi_epi8(of[2].code, of[3].code);
  _mm_store_si128(at(0), _mm_unpacklo_epi16(e, g));
  _mm_store_si128(at(1), _mm_unpackhi_epi16(e, g));
  _mm_store_si128(at(2), _mm_unpacklo_epi16(f, h));
  _mm_store_si128(at(3), _mm_unpackhi_epi16(f, h));
}

/// Four channels that are all there are lie in memory as they come.
inline void store_quads(const Quads& quads, std::int64_t windows, float* y, std::uint8_t* code) {
  for (std::int64_t at = 0; at < 4 * windows; at += lanes) {
    const __mmask16 mask = first_lanes(4 * windows - at);
    _mm512_mask_storeu_ps(y + at, mask, _mm512_load_ps(quads.value + at));
    _mm_mask_storeu_epi8(code + at, mask,
                         _mm_load_si128(reinterpret_cast<const __m128i*>(quads.code + at)));
  }
}

/// `count` of the `channels` that there are.
template <int count>
inline void store(const Quads* quads, std::int64_t windows, std::int64_t channels, float* y,
                  std::uint8_t* code) {
  constexpr int rest = count % 4;
  for (std::int64_t j = 0; j < windows; ++j, y += channels, code += channels) {
#pragma GCC unroll 2
    for (int k = 0; k < count; k += 4) {
      const Quads& from = quads[k / 4];
      if (k + 4 <= count) {
        _mm_storeu_ps(y + k, _mm_load_ps(from.value + 4 * j));
        std::memcpy(code + k, from.code + 4 * j, 4);
      } else {
        std::memcpy(y + k, from.value + 4 * j, rest * sizeof(float));
        std::memcpy(code + k, from.code + 4 * j, rest);
      }
    }
  }
}

/// Windows of side × side; `kernel`: its columns where there is neither stride nor dilation and
/// they are few, else 0.
template <int side, int kernel, int count>
void add_sample(const Columns& s, const Sample& sample) {
  const Geometry& g = s.g;
  constexpr int quads = (count + 3) / 4;
  float bias[count] = {};
  if (sample.bias) std::copy_n(sample.bias, count, bias);
  for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
    const float* x = sample.x + oy * side * g.window.stride.h * s.pixels();
    float* y = sample.y + oy * g.y.row;
    std::uint8_t* code = sample.code + oy * g.code.row;
    for (std::int64_t ox = 0; ox < g.y.w; ox += lanes) {
      Sums<side, count> sum;
#pragma GCC unroll 32
      for (int t = 0; t < count * side * side; ++t) {
        sum[t / (side * side)][t % (side * side)] = _mm512_setzero_ps();
      }
      if constexpr (kernel == 0) {
        add_taps<side, count>(s, x + ox, sample.weight, sum);
      } else {
        add_rows<side, kernel, count>(s, x + ox, sample.weight, sum);
      }
      Quads interleaved[quads];
#pragma GCC unroll 2
      for (int q = 0; q < quads; ++q) {
        Pooled four[4] = {};
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          const int channel = 4 * q + k;
          if (channel < count) four[k] = pool(sum[channel], _mm512_set1_ps(bias[channel]));
        }
        interleave(four, interleaved[q]);
      }
      const std::int64_t windows = std::min(lanes, g.y.w - ox);
      if (count == 4 && g.y.c == 4) {
        store_quads(interleaved[0], windows, y + ox * g.y.c, code + ox * g.y.c);
        continue;
      }
      Quads stored[quads];
      std::copy_n(interleaved, quads, stored);
      asm("" : "+m"(stored));  // else GCC shuffles every window out of registers
      store<count>(stored, windows, g.y.c, y + ox * g.y.c, code + ox * g.y.c);
    }
  }
}

template <int side, int kernel>
AddSample add_function(std::int64_t count) {
  return [&]<int... k>(std::integer_sequence<int, k...>) {
    constexpr std::array<AddSample, sizeof...(k)> all{add_sample<side, kernel, k + 1>...};
    return all[static_cast<std::size_t>(count - 1)];
  }
  (std::make_integer_sequence<int, max_block(side)>{});
}

AddSample add_function(const Geometry& g, std::int64_t count) {
  const Window& w = g.window;
  const bool plain = w.stride.w == 1 && w.stride.h == 1 && w.dilation == Pair{1, 1};
  const std::int64_t kernel = plain ? w.kernel.w : 0;
  if (g.pool.w == 2) {
    return kernel == 3   ? add_function<2, 3>(count)
           : kernel == 5 ? add_function<2, 5>(count)
                         : add_function<2, 0>(count);
  }
  return kernel == 3   ? add_function<3, 3>(count)
         : kernel == 5 ? add_function<3, 5>(count)
                       : add_function<3, 0>(count);
}

// ---- the kernel --------------------------------------------------------------------------------

void run_columns(const KernelCall& call, const Columns& s) {
  const Geometry& g = s.g;
  const float *weight = call.in<float>(1), *bias = g.biased ? call.in<float>(2) : nullptr;
  auto* sample = static_cast<float*>(call.workspace);
  std::memset(sample, 0, static_cast<std::size_t>(s.bytes()));
  for (std::int64_t i = 0; i < g.y.n; ++i) {
    deal_sample(s, call.in<float>(0), i, sample);
    for (const auto& [k, run] : s.channels) {
      run(s,
          {sample, weight + k, bias ? bias + k : nullptr, call.out<float>(0) + g.y.at(i, 0, 0) + k,
           call.out<std::uint8_t>(1) + g.code.at(i, 0, 0) + k});
    }
  }
  zero_halo(call.out<float>(0), g.y);
  zero_halo(call.out<std::uint8_t>(1), g.code);
}

Columns columns(const Geometry& g) {
  const Window& w = g.window;
  Columns s{.g = g, .phases = g.pool.w * w.stride.w, .length = 0, .channels = {}, .taps = {}};
  const std::int64_t vectors = divide_up(g.y.w, lanes), padded = g.x.w + 2 * w.padding.w,
                     last =
                         w.reach().w + (g.pool.w - 1) * w.stride.w;  // column of the last window's
  s.length = round_up(std::max(vectors * lanes + last / s.phases, padded / s.phases + 1), lanes);
  for (const auto [k, count] : split(g.y.c, max_block(static_cast<int>(g.pool.w)))) {
    s.channels.push_back({k, add_function(g, count)});
  }
  for (std::int64_t ky = 0; ky < w.kernel.h; ++ky) {
    for (std::int64_t kx = 0; kx < w.kernel.w; ++kx) {
      for (std::int64_t c = 0; c < g.x.c; ++c) {
        std::array<std::int64_t, 3> at{};
        for (std::size_t j = 0; j < at.size(); ++j) {
          const std::int64_t x = kx * w.dilation.w + static_cast<std::int64_t>(j) * w.stride.w;
          at[j] =
              ky * w.dilation.h * s.pixels() + c * s.channel() + s.run(x % s.phases) + x / s.phases;
        }
        s.taps.push_back(at);
      }
    }
  }
  return s;
}

constexpr std::int64_t most_weights = 1024;  ///< of an output channel

}  // namespace

/// Not where narrow images would leave most of the dealt-out columns empty, or padding makes them
/// out of proportion.
graph::Support columns_support(const Geometry& g) {
  if (g.pool != Pair{2, 2} && g.pool != Pair{3, 3}) return "pooling other than 2x2 and 3x3";
  if (g.window.stride.w > max_stride) return "a stride above 4 across columns";
  if (g.taps() > most_weights || g.taps() * g.x.c > most_weights)
    return "more than 1024 weights an output channel";
  if (const graph::Support fits = PaddedSamples(g.x, g.window.padding).fits(); !fits) return fits;
  const Columns s = columns(g);
  if (in_proportion(static_cast<double>(s.rows()) * static_cast<double>(s.pixels()),
                    static_cast<double>(g.x.sample())))
    return {};
  return "a copy by columns out of proportion to the image";
}

std::int64_t columns_workspace(const Geometry& g) { return columns(g).bytes(); }

PreparedKernel prepare_columns(const Geometry& g) { return prepared<run_columns>(columns(g)); }

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d::direct
