// The direct forward kernel for fewer than 16 output channels: a vector of pixels times one weight,
// for the 4 taps of the windows of up to 6 channels, 24 sums. The columns of a sample are dealt out
// first, because neighbouring windows read every other pixel:
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

using runtime::KernelCall;

constexpr std::int64_t max_block = 6;   ///< output channels at a time
constexpr std::int64_t max_stride = 4;  ///< of columns

/// Where a weight's pixels lie, from the first of the row that the window begins in.
struct Taps {
  std::int64_t left, right;
};

struct Columns {
  Geometry g;
  std::int64_t phases;       ///< column p of the padded sample lies at p / phases of run p % phases
  std::int64_t length;       ///< of a run
  std::vector<Part> blocks;  ///< of output channels
  std::vector<Taps> taps;    ///< one a weight: tap-major, channels inside

  std::int64_t pixels() const noexcept { return g.x.c * phases * length; }  ///< floats of a row
  std::int64_t rows() const noexcept { return g.x.h + 2 * g.window.padding.h; }
  std::int64_t bytes() const noexcept { return rows() * pixels() * float_bytes; }
};

Columns columns(const Geometry& g) {
  const Window& w = g.window;
  Columns s{
      .g = g, .phases = 2 * w.stride.w, .length = 0, .blocks = split(g.y.c, max_block), .taps = {}};
  const std::int64_t vectors = divide_up(g.y.w, lanes), padded = g.x.w + 2 * w.padding.w,
                     last = w.reach().w + w.stride.w;  // the right tap's last kernel column
  s.length = round_up(std::max(vectors * lanes + last / s.phases, padded / s.phases + 1), lanes);
  for (std::int64_t ky = 0; ky < w.kernel.h; ++ky) {
    for (std::int64_t kx = 0; kx < w.kernel.w; ++kx) {
      for (std::int64_t c = 0; c < g.x.c; ++c) {
        const auto at = [&](std::int64_t x) {
          return ky * w.dilation.h * s.pixels() + (c * s.phases + x % s.phases) * s.length +
                 x / s.phases;
        };
        const std::int64_t x = kx * w.dilation.w;
        s.taps.push_back({at(x), at(x + w.stride.w)});
      }
    }
  }
  return s;
}

/// Every other pixel of `rows` rows, `count` of each; the rows lie so many elements apart.
void deal_pixels(const float* from, std::int64_t from_row, std::int64_t rows, std::int64_t count,
                 float* to, std::int64_t to_row) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  for (std::int64_t j = 0; j < count; j += lanes) {
    const std::int64_t left = std::min(count - j, lanes);
    const auto pixels = static_cast<std::uint32_t>((std::uint64_t{1} << (2 * left - 1)) - 1);
    const auto low = static_cast<__mmask16>(pixels), high = static_cast<__mmask16>(pixels >> lanes),
               written = first_lanes(left);
    for (std::int64_t y = 0; y < rows; ++y) {
      const float* x = from + y * from_row + 2 * j;
      const __m512 dealt = _mm512_maskz_permutex2var_ps(0xffff, _mm512_maskz_loadu_ps(low, x), even,
                                                        _mm512_maskz_loadu_ps(high, x + lanes));
      _mm512_mask_storeu_ps(to + y * to_row + j, written, dealt);
    }
  }
}

/// Deals one sample's columns out; the zeros around it are there.
void deal_sample(const Columns& s, const float* x, std::int64_t i, float* to) {
  const Image& image = s.g.x;
  const Pair padding = s.g.window.padding;
  const std::int64_t step = s.phases * image.c;
  for (std::int64_t phase = 0; phase < s.phases; ++phase) {
    const std::int64_t first = (phase + s.phases - padding.w % s.phases) % s.phases,
                       count = divide_up(image.w - first, s.phases),
                       at = phase * s.length + (first + padding.w) / s.phases;
    const float* from = x + image.at(i, 0, first);
    float* run = to + padding.h * s.pixels() + at;
    if (step == 2) {
      deal_pixels(from, image.row, image.h, count, run, s.pixels());
      continue;
    }
    for (std::int64_t y = 0; y < image.h; ++y, from += image.row, run += s.pixels()) {
      for (std::int64_t c = 0; c < image.c; ++c) {
        float* out = run + c * s.phases * s.length;
        for (std::int64_t j = 0; j < count; ++j) out[j] = from[j * step + c];
      }
    }
  }
}

/// Up to 16 channels of 16 windows, channel by channel; rounded up to whole groups of four.
struct Block {
  alignas(64) float value[lanes][lanes] = {};
  alignas(16) std::uint8_t code[lanes][lanes] = {};
};

/// `count` channels; x: the first pixels of the upper row.
template <int count>
void columns_block(const Columns& s, const float* x, const float* weight, const float* bias,
                   float (*value)[lanes], std::uint8_t (*code)[lanes]) {
  __m512 sum[count][4];
#pragma GCC unroll 6
  for (auto& taps : sum) {
#pragma GCC unroll 4
    for (__m512& tap : taps) tap = _mm512_setzero_ps();
  }
  const float* below = x + s.g.window.stride.h * s.pixels();
  const std::int64_t outputs = s.g.y.c;
  for (const Taps& at : s.taps) {
    const __m512 pixels[4] = {_mm512_loadu_ps(x + at.left), _mm512_loadu_ps(x + at.right),
                              _mm512_loadu_ps(below + at.left), _mm512_loadu_ps(below + at.right)};
#pragma GCC unroll 6
    for (int k = 0; k < count; ++k) {
      const __m512 w = _mm512_set1_ps(weight[k]);
#pragma GCC unroll 4
      for (int t = 0; t < 4; ++t) sum[k][t] = _mm512_fmadd_ps(w, pixels[t], sum[k][t]);
    }
    weight += outputs;
  }
#pragma GCC unroll 6
  for (int k = 0; k < count; ++k) {
    const Pooled best = pool(sum[k], bias ? _mm512_set1_ps(bias[k]) : _mm512_setzero_ps());
    _mm512_store_ps(value[k], best.value);
    _mm_store_si128(reinterpret_cast<__m128i*>(code[k]), best.code);
  }
}

using ColumnsBlock = void (*)(const Columns&, const float*, const float*, const float*,
                              float (*)[lanes], std::uint8_t (*)[lanes]);

constexpr auto columns_blocks = []<int... count>(std::integer_sequence<int, count...>) {
  return std::array<ColumnsBlock, max_block>{columns_block<count + 1>...};
}
(std::make_integer_sequence<int, max_block>{});

/// Writes the first `windows` columns of a block channels-last, four channels at a time.
void store_block(const Block& block, std::int64_t channels, std::int64_t windows, float* y,
                 std::uint8_t* code) {
  for (std::int64_t k = 0; k < channels; k += 4) {
    const auto mask = static_cast<__mmask8>((1u << std::min<std::int64_t>(channels - k, 4)) - 1);
    const auto load = [&](std::int64_t c) { return _mm512_load_ps(block.value[k + c]); };
    const auto codes = [&](std::int64_t c) {
      return _mm_load_si128(reinterpret_cast<const __m128i*>(block.code[k + c]));
    };
    // Lanes 4j … 4j+3 of quads[m] are the channels of window 4j + m.
    alignas(64) float quads[4][lanes];
    const __m512 a = _mm512_maskz_unpacklo_ps(0xffff, load(0), load(1)),
                 b = _mm512_maskz_unpackhi_ps(0xffff, load(0), load(1)),
                 c = _mm512_maskz_unpacklo_ps(0xffff, load(2), load(3)),
                 d = _mm512_maskz_unpackhi_ps(0xffff, load(2), load(3));
    _mm512_store_ps(quads[0], _mm512_maskz_shuffle_ps(0xffff, a, c, 0x44));
    _mm512_store_ps(quads[1], _mm512_maskz_shuffle_ps(0xffff, a, c, 0xee));
    _mm512_store_ps(quads[2], _mm512_maskz_shuffle_ps(0xffff, b, d, 0x44));
    _mm512_store_ps(quads[3], _mm512_maskz_shuffle_ps(0xffff, b, d, 0xee));
    // Bytes 4j … 4j+3 are the channels of window j.
    alignas(16) std::uint8_t bytes[4 * lanes];
    const auto at = [&](std::int64_t j) { return reinterpret_cast<__m128i*>(bytes + j * lanes); };
    const __m128i e = _mm_unpacklo_epi8(codes(0), codes(1)),
                  f = _mm_unpackhi_epi8(codes(0), codes(1)),
                  g = _mm_unpacklo_epi8(codes(2), codes(3)),
                  h = _mm_unpackhi_epi8(codes(2), codes(3));
    _mm_store_si128(at(0), _mm_unpacklo_epi16(e, g));
    _mm_store_si128(at(1), _mm_unpackhi_epi16(e, g));
    _mm_store_si128(at(2), _mm_unpacklo_epi16(f, h));
    _mm_store_si128(at(3), _mm_unpackhi_epi16(f, h));
    for (std::int64_t j = 0; j < windows; ++j) {
      _mm_mask_storeu_ps(y + j * channels + k, mask, _mm_load_ps(&quads[j % 4][j / 4 * 4]));
      _mm_mask_storeu_epi8(code + j * channels + k, mask, _mm_loadu_si32(bytes + 4 * j));
    }
  }
}

void run_columns(const KernelCall& call) {
  const auto& s = *static_cast<const Columns*>(call.state);
  const Geometry& g = s.g;
  const float *weight = call.in<float>(1), *bias = g.biased ? call.in<float>(2) : nullptr;
  auto* sample = static_cast<float*>(call.workspace);
  std::memset(sample, 0, static_cast<std::size_t>(s.bytes()));
  Block block;
  for (std::int64_t i = 0; i < g.y.n; ++i) {
    deal_sample(s, call.in<float>(0), i, sample);
    for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
      const float* row = sample + 2 * oy * g.window.stride.h * s.pixels();
      for (std::int64_t ox = 0; ox < g.y.w; ox += lanes) {
        for (const auto [k, count] : s.blocks) {
          columns_blocks[static_cast<std::size_t>(count - 1)](
              s, row + ox, weight + k, bias ? bias + k : nullptr, block.value + k, block.code + k);
        }
        store_block(block, g.y.c, std::min(lanes, g.y.w - ox),
                    call.out<float>(0) + g.y.at(i, oy, ox),
                    call.out<std::uint8_t>(1) + g.code.at(i, oy, ox));
      }
    }
  }
  zero_halo(call.out<float>(0), g.y);
  zero_halo(call.out<std::uint8_t>(1), g.code);
}

constexpr std::int64_t most_weights = 1024;  ///< of an output channel

}  // namespace

/// Not where narrow images would leave most of the dealt-out columns empty, or padding makes them
/// out of proportion.
bool columns_support(const Geometry& g) {
  const Window& w = g.window;
  if (w.stride.w > max_stride || g.taps() > most_weights || g.taps() * g.x.c > most_weights ||
      !PaddedSamples(g.x, w.padding).fits()) {
    return false;
  }
  const Columns s = columns(g);
  return in_proportion(static_cast<double>(s.rows()) * static_cast<double>(s.pixels()),
                       static_cast<double>(g.x.sample()));
}

std::int64_t columns_workspace(const Geometry& g) { return columns(g).bytes(); }

runtime::PreparedKernel prepare_columns(const Geometry& g) {
  return {run_columns, std::make_shared<const Columns>(columns(g))};
}

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d::direct
