// The weight gradient from living windows alone.
//
//   lists    for 16 output channels at a time: the gradients of their living windows, and where in
//            x each winner's first tap lies
//   entries  for one output channel: every listed gradient times its winner's taps in x. The taps
//            of a kernel row are one run of KW·C floats, so that 3x3 taps of 32 channels are 3 · 6
//            vectors, whose sums stay in registers for the whole list
//
// More channels than that are cut into blocks, each copied side by side: then the pixels below a
// list's windows stay in the first-level cache while 16 lists are walked.
#include "codelets/conv2d_relu_max_pool2d/winner_lists.hpp"
#include "codelets/words.hpp"

#include <array>
#include <utility>

namespace arenite::codelets::conv2d_relu_max_pool2d {

#ifdef ARENITE_AVX512

namespace {

using namespace sparse;

constexpr std::int64_t max_block = 32;                    ///< input channels
constexpr std::int64_t cache = (40 << 10) / float_bytes;  ///< floats of x that stay there

/// Adds the products of a list with `rows` runs of x, `row` floats apart, to their sums.
using AddEntries = void (*)(const List& list, const float* x, std::int64_t row, __mmask16 last,
                            float* sums);

/// As many sums as the registers hold: `rows` kernel rows by `vectors` vectors of each.
struct Sweep {
  std::int64_t y, x;     ///< the first tap
  std::int64_t element;  ///< of the run that starts there
  std::int64_t slot;     ///< first of its vectors among the sums of a channel and block
  std::int64_t rows, vectors;
  std::int64_t count;  ///< elements of each row
  AddEntries add;

  __mmask16 last() const noexcept { return first_lanes(count - (vectors - 1) * lanes); }
};

struct GradWeight {
  Geometry g;
  PaddedSamples x;      ///< where there is one block
  std::int64_t blocks;  ///< of input channels
  std::int64_t width;   ///< channels of a block, and from a pixel to the next
  std::int64_t row;     ///< from a pixel to the one below
  std::int64_t block;   ///< from a block's first pixel to the next block's
  std::vector<Sweep> sweeps;
  std::int64_t slots;                                        ///< vectors of sums: channel and block
  std::int64_t group;                                        ///< samples that share lists
  std::int64_t windows;                                      ///< that are listed at once
  alignas(64) std::array<std::int32_t, lanes> tap_offset{};  ///< winner → its first tap

  std::int64_t sums() const noexcept { return round_up(g.y.c, lanes) * blocks * slots * lanes; }
  std::int64_t window_row() const noexcept { return g.pool.h * g.window.stride.h * row; }
  std::int64_t window_step() const noexcept { return g.pool.w * g.window.stride.w * width; }
  std::int64_t copied_bytes() const noexcept {
    return blocks == 1 ? x.scratch_bytes() : blocks * block * float_bytes;
  }
};

// ---- entries -----------------------------------------------------------------------------------

/// The elements that `mask` names, all of them among the first `width`. (Narrow loads seldom cross
/// a cache line; a masked wide one pays as if it read its whole width.)
template <int width>
__m512 load(const float* x, __mmask16 mask) {
  if constexpr (width == 4) {
    return _mm512_castps128_ps512(_mm_maskz_loadu_ps(static_cast<__mmask8>(mask), x));
  } else if constexpr (width == 8) {
    return _mm512_castps256_ps512(_mm256_maskz_loadu_ps(static_cast<__mmask8>(mask), x));
  } else {
    return _mm512_maskz_loadu_ps(mask, x);
  }
}

constexpr int max_sums = 25;  ///< leaves registers for the factors; 5x5 taps of 16 channels
constexpr int max_rows = 7, max_vectors = 8;

/// Few sums would wait for each other: then several entries are under way at once.
template <int rows, int vectors, int width>
void add_entries(const List& list, const float* x, std::int64_t row, __mmask16 last, float* sums) {
  constexpr int at_once = std::clamp(24 / (rows * vectors), 1, 8);
  __m512 sum[at_once][rows][vectors];
#pragma GCC unroll 8
  for (int u = 0; u < at_once; ++u) {
#pragma GCC unroll 32
    for (int i = 0; i < rows * vectors; ++i) {
      sum[u][i / vectors][i % vectors] =
          u == 0 ? _mm512_load_ps(sums + i * lanes) : _mm512_setzero_ps();
    }
  }
  const auto [gradients, offsets, count] = list;
  const auto add = [&, gradients = gradients, offsets = offsets](int u, std::int64_t entry) {
    const __m512 gradient = _mm512_set1_ps(gradients[entry]);
    const float* taps = x + offsets[entry];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r, taps += row) {
      asm("" : "+r"(taps));  // one register and a displacement: indexed operands cost more
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        const float* from = taps + v * lanes;
        const __m512 values = v + 1 < vectors ? _mm512_loadu_ps(from) : load<width>(from, last);
        sum[u][r][v] = _mm512_fmadd_ps(gradient, values, sum[u][r][v]);
      }
    }
  };
  std::int64_t entry = 0;
  for (; entry + at_once <= count; entry += at_once) {
#pragma GCC unroll 8
    for (int u = 0; u < at_once; ++u) add(u, entry + u);
  }
  if constexpr (at_once > 1) {
    for (; entry < count; ++entry) add(0, entry);
  }
#pragma GCC unroll 32
  for (int i = 0; i < rows * vectors; ++i) {
    __m512 all = sum[0][i / vectors][i % vectors];
#pragma GCC unroll 8
    for (int u = 1; u < at_once; ++u) all = _mm512_add_ps(all, sum[u][i / vectors][i % vectors]);
    _mm512_store_ps(sums + i * lanes, all);
  }
}

constexpr int most_vectors(std::int64_t rows) noexcept {
  return std::min(max_vectors, max_sums / static_cast<int>(rows));
}

/// The function for `rows` rows of `count` elements.
AddEntries add_function(std::int64_t rows, std::int64_t count) {
  AddEntries found = nullptr;
  const auto look = [&]<int r, int v>(std::integer_sequence<int, r, v>) {
    if constexpr (v <= most_vectors(r)) {
      if (rows != r || divide_up(count, lanes) != v) return;
      found = add_entries<r, v, 16>;
      if (v == 1 && count <= 8) found = add_entries<r, v, 8>;
      if (v == 1 && count <= 4) found = add_entries<r, v, 4>;
    }
  };
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (look(std::integer_sequence<int, i / max_vectors + 1, i % max_vectors + 1>{}), ...);
  }
  (std::make_integer_sequence<int, max_rows * max_vectors>{});
  return found;
}

// ---- samples -----------------------------------------------------------------------------------

/// One block after the other, channels past the last being zeros, inside zeros that are there
/// already.
void copy_blocks(const GradWeight& s, const float* data, std::int64_t i, float* to) {
  const Image& x = s.g.x;
  for (std::int64_t b = 0; b < s.blocks; ++b, to += s.block) {
    const std::int64_t first = b * s.width, count = std::min(s.width, x.c - first);
    float* inside = to + s.g.window.padding.h * s.row + s.g.window.padding.w * s.width;
    for (std::int64_t y = 0; y < x.h; ++y) {
      const float* from = data + x.at(i, y, 0) + first;
      for (std::int64_t p = 0; p < x.w; ++p) {
        float* pixel = inside + y * s.row + p * s.width;
        for (std::int64_t c = 0; c < count; c += lanes) {
          const __mmask16 mask = first_lanes(count - c);
          _mm512_mask_storeu_ps(pixel + c, mask, _mm512_maskz_loadu_ps(mask, from + p * x.c + c));
        }
      }
    }
  }
}

/// Address of the first tap of sample i's first output, in block 0.
const float* first_tap(const GradWeight& s, const float* data, std::int64_t i, float* scratch) {
  const Window& w = s.g.window;
  if (s.blocks == 1) {
    return s.x.sample(data, i, scratch) - w.padding.h * s.row - w.padding.w * s.width;
  }
  copy_blocks(s, data, i, scratch);
  return scratch;
}

// ---- sums --------------------------------------------------------------------------------------

/// Adds the products of everything listed to the sums of output channels k0, k0 + 1, …
void add_lists(const GradWeight& s, WinnerLists& lists, const float* x, std::int64_t k0,
               float* sums) {
  const Pair dilation = s.g.window.dilation;
  const std::int64_t row = dilation.h * s.row, end = std::min(lanes, s.g.y.c - k0);
  lists.finish();
  for (std::int64_t b = 0; b < s.blocks; ++b) {
    for (const Sweep& sweep : s.sweeps) {
      const float* first =
          x + b * s.block + sweep.y * row + sweep.x * dilation.w * s.width + sweep.element;
      for (std::int64_t k = 0; k < end; ++k) {
        float* own = sums + (((k0 + k) * s.blocks + b) * s.slots + sweep.slot) * lanes;
        sweep.add(lists[k], first, row, sweep.last(), own);
      }
    }
  }
  lists.clear();
}

/// One vector of all output channels' sums, `stride` floats apart → rows of dweight [KH·KW·C, K].
/// Row −1: the lane stands for no weight.
void transpose_sums(const float* sums, std::int64_t stride, std::int64_t outputs,
                    const std::array<std::int64_t, lanes>& rows, float* dw) {
  for (std::int64_t k = 0; k < outputs; k += lanes) {
    __m512 columns[lanes];
    transpose(sums + k * stride, stride, columns);
#pragma GCC unroll 16
    for (std::size_t c = 0; c < lanes; ++c) {
      if (rows[c] >= 0) {
        _mm512_mask_storeu_ps(dw + rows[c] * outputs + k, first_lanes(outputs - k), columns[c]);
      }
    }
  }
}

/// Sums [K, blocks, slots, 16] → dweight.
void store_sums(const GradWeight& s, const float* sums, float* dw) {
  const Geometry& g = s.g;
  for (std::int64_t b = 0; b < s.blocks; ++b) {
    for (const Sweep& sweep : s.sweeps) {
      for (std::int64_t j = 0; j < sweep.rows * sweep.vectors; ++j) {
        const std::int64_t y = sweep.y + j / sweep.vectors, v = j % sweep.vectors;
        std::array<std::int64_t, lanes> rows;
        for (std::int64_t l = 0; l < lanes; ++l) {
          const std::int64_t element = sweep.element + v * lanes + l,
                             x = sweep.x + element / s.width, c = b * s.width + element % s.width;
          const bool weight = v * lanes + l < sweep.count && c < g.x.c;
          rows[static_cast<std::size_t>(l)] = weight ? (y * g.window.kernel.w + x) * g.x.c + c : -1;
        }
        transpose_sums(sums + (b * s.slots + sweep.slot + j) * lanes, s.blocks * s.slots * lanes,
                       g.y.c, rows, dw);
      }
    }
  }
}

void run(const KernelCall& call, const GradWeight& s) {
  const Geometry& g = s.g;
  auto* sums = static_cast<float*>(call.workspace);
  float* listed = sums + s.sums();
  float* copied = listed + lists_bytes / float_bytes;
  float* db = call.out<float>(1);
  std::fill_n(sums, s.sums(), 0.0f);
  std::fill_n(db, g.y.c, 0.0f);
  std::memset(copied, 0, static_cast<std::size_t>(s.copied_bytes()));
  for (std::int64_t first = 0; first < g.y.n; first += s.group) {
    const float* x = first_tap(s, call.in<float>(0), first, copied);
    const std::int64_t end = std::min(g.y.n, first + s.group);
    for (std::int64_t k = 0; k < g.y.c; k += lanes) {
      const __mmask16 mask = first_lanes(g.y.c - k);
      WinnerLists lists(listed, s.tap_offset.data(), mask);
      for (std::int64_t i = first; i < end; ++i) {
        for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
          const float* gradient = call.in<float>(1) + g.y.at(i, oy, 0) + k;
          const std::uint8_t* code = call.in<std::uint8_t>(2) + g.code.at(i, oy, 0) + k;
          const std::int64_t row = (i - first) * g.x.plane + oy * s.window_row();
          for (std::int64_t ox = 0; ox < g.y.w; ++ox) {
            lists.add(gradient + ox * g.y.c, code + ox * g.y.c,
                      static_cast<std::int32_t>(row + ox * s.window_step()));
            if (lists.windows() == s.windows) add_lists(s, lists, x, k, sums);
          }
        }
      }
      add_lists(s, lists, x, k, sums);
      const __m512 before = _mm512_maskz_loadu_ps(mask, db + k);
      _mm512_mask_storeu_ps(db + k, mask, _mm512_add_ps(before, lists.bias()));
    }
  }
  store_sums(s, sums, call.out<float>(0));
}

// ---- the kernel --------------------------------------------------------------------------------

/// Cuts the taps into sweeps. Taps with pixels between them are no single run: each column of the
/// kernel is one then.
std::vector<Sweep> sweeps(const Window& w, std::int64_t width) {
  const std::int64_t runs = w.dilation.w == 1 ? 1 : w.kernel.w, length = w.kernel.w / runs * width;
  std::vector<Sweep> all;
  std::int64_t slot = 0;
  for (std::int64_t run = 0; run < runs; ++run) {
    for (const auto [y, rows] : split(w.kernel.h, max_rows)) {
      for (const auto [from, vectors] : split(divide_up(length, lanes), most_vectors(rows))) {
        const std::int64_t count = std::min(length - from * lanes, vectors * lanes);
        all.push_back({.y = y,
                       .x = run,
                       .element = from * lanes,
                       .slot = slot,
                       .rows = rows,
                       .vectors = vectors,
                       .count = count,
                       .add = add_function(rows, count)});
        slot += rows * vectors;
      }
    }
  }
  return all;
}

/// How many windows side by side, of `step` pixels each, `most` pixels hold; `reach`: a window's.
std::int64_t windows_in(std::int64_t most, std::int64_t reach, std::int64_t stride,
                        std::int64_t pool) {
  return most <= reach ? 0 : ((most - reach - 1) / stride + 1) / pool;
}

/// Chooses `windows` and `group`, so that the pixels below a list's windows fit the cache.
void size_lists(GradWeight& s) {
  const Geometry& g = s.g;
  const Window& w = g.window;
  constexpr std::int64_t fewest = 32;  // fewer would load and store sums more than add to them
  const Pair reach = w.reach();
  const std::int64_t rows = windows_in(cache / s.row, reach.h, w.stride.h, g.pool.h),
                     height = (g.pool.h - 1) * w.stride.h + reach.h + 1;
  s.group = 1;
  s.windows = list_capacity;
  if (rows == 0) {
    s.windows = windows_in(cache / (height * s.width), reach.w, w.stride.w, g.pool.w);
  } else if (rows < g.y.h) {
    s.windows = rows * g.y.w;
  } else if (s.copied_bytes() == 0) {  // scratch holds one sample at a time
    s.group = std::clamp(cache / g.x.plane, std::int64_t{1}, g.y.n);
  }
  s.windows = std::clamp(s.windows, fewest, list_capacity);
}

GradWeight grad_weight(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  const Window& w = g.window;
  GradWeight s{.g = g, .x = PaddedSamples(g.x, w.padding)};
  s.blocks = divide_up(g.x.c, max_block);
  s.width = divide_up(g.x.c, s.blocks);
  s.row = s.blocks == 1 ? s.x.row() : (g.x.w + 2 * w.padding.w) * s.width;
  s.block = (g.x.h + 2 * w.padding.h) * s.row;
  s.sweeps = sweeps(w, s.width);
  s.slots = s.sweeps.back().slot + s.sweeps.back().rows * s.sweeps.back().vectors;
  size_lists(s);
  for (std::int64_t tap = 0; tap < g.pool.h * g.pool.w; ++tap) {
    const Pair at = g.winner(0, 0, static_cast<std::uint8_t>(tap));
    s.tap_offset[static_cast<std::size_t>(tap)] =
        static_cast<std::int32_t>(at.h * w.stride.h * s.row + at.w * w.stride.w * s.width);
  }
  return s;
}

/// Without pooling only dead outputs can be left out: a GEMM that fills its lanes is faster then,
/// or hardly slower.
graph::Support supports(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  const Pair padding = g.window.padding;
  constexpr std::int64_t most_taps = 1024;
  const std::int64_t area = g.pool.h * g.pool.w;
  if (area > lanes) return "pooling over more than 16 pixels";
  if (area == 1 && g.y.c >= lanes) return "no pooling, and output channels that fill a vector";
  if (g.taps() > most_taps) return "more than 1024 taps";
  const double copied = static_cast<double>(g.x.h + 2 * padding.h) *
                        static_cast<double>(g.x.w + 2 * padding.w) * static_cast<double>(g.x.c);
  // Offsets in a sample are 32 bits wide.
  constexpr double most = 1 << 30;
  if (copied > most || static_cast<double>(g.x.plane) > most) return "a sample of over 2^30 floats";
  if (in_proportion(copied, static_cast<double>(g.x.sample()))) return {};
  return "a padded copy out of proportion to the image";
}

}  // namespace

Kernel sparse_grad_weight() {
  return {.name = "sparse",
          .supports = supports,
          .workspace =
              [](const OpView& op) {
                const GradWeight s = grad_weight(op);
                return s.sums() * float_bytes + lists_bytes + s.copied_bytes();
              },
          .prepare = prepare<grad_weight, run>,
          .wanted_halo = padding_halo<Geometry::grad_weight, 0>};
}

#else

Kernel sparse_grad_weight() { return without_avx512("sparse"); }

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
