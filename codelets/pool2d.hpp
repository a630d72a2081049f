// What the poolings share: the window's attributes, the codes of winners, and a window's taps.
//
// Rows of a window are contiguous only over channels, so vector loops run over them. Networks pool
// mostly by 2×2, for which kernels have loops of their own.
#pragma once

#include "codelets/image.hpp"

#include <initializer_list>

namespace arenite::codelets::pool2d {

/// Attributes kernel, stride (empty: the kernel) and padding, then `more`: a gradient op has `size`
/// besides, the input's rows and columns.
inline std::vector<graph::AttributeSchema> schema(
    std::initializer_list<graph::AttributeSchema> more = {}) {
  using Kind = graph::AttributeType;
  using List = std::vector<std::int64_t>;
  std::vector<graph::AttributeSchema> all{{"kernel", Kind::integers, List{2, 2}},
                                          {"stride", Kind::integers, List{}},
                                          {"padding", Kind::integers, List{0, 0}}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Throws Error, also on a padding that would leave a window without a pixel.
inline Window window_of(const OpView& op) {
  const graph::Attributes& attributes = op.attributes();
  Window window{.kernel = pair_of(attributes, "kernel", 1),
                .padding = pair_of(attributes, "padding", 0)};
  window.stride =
      attributes.integers("stride").empty() ? window.kernel : pair_of(attributes, "stride", 1);
  if (window.padding.h >= window.kernel.h || window.padding.w >= window.kernel.w) {
    fail({.found =
              "padding " + to_string(window.padding) + " with kernel " + to_string(window.kernel),
          .expected = "padding smaller than the kernel, so that no window is all padding"});
  }
  return window;
}

/// A code is the number of the tap that won in a window, 0 … area − 1, or has bit 7 set, whatever
/// the other bits, where none did. Kernels write `dead` for the latter; no other code is valid.
constexpr std::uint8_t dead = 0x80;
constexpr std::int64_t max_area = 127;  ///< taps that codes can name

/// Throws Error, which says `found`, on a window of more taps.
inline void expect_codes_suffice(Pair window, const std::string& found) {
  if (window.h <= max_area && window.w <= max_area && window.h * window.w <= max_area) return;
  fail({.found = found,
        .expected = "at most " + std::to_string(max_area) + " taps",
        .hint = "pool in two steps"});
}

/// The shape of the pooled values, from the input's.
inline Shape output_shape(const Window& window, const Shape& x) {
  const Pair out = window.output({x[1], x[2]});
  return {x[0], out.h, out.w, x[3]};
}

/// The shape of the input of a gradient op, whose operand 0 must look like the pooling's output.
inline Shape input_shape(const Window& window, const OpView& op) {
  const Shape& gradient = expect_rank4(op, 0, DType::float32, "[N, OH, OW, C]");
  const Pair size = pair_of(op.attributes(), "size", 1);
  const Shape x{gradient[0], size.h, size.w, gradient[3]};
  expect_shape(op, 0, output_shape(window, x), "as the pooling's output has");
  return x;
}

/// One operation a tap.
template <auto geometry>
graph::Cost cost(const OpView& op) {
  const auto g = geometry(op);
  return {.flops = static_cast<double>(g.y.n * g.y.sample()) * static_cast<double>(g.window.area()),
          .bytes = bytes_touched(op)};
}

/// The common case: no overlap, no padding, four taps.
inline bool is_2x2(const Window& window) noexcept {
  return window.kernel == Pair{2, 2} && window.stride == Pair{2, 2} && window.padding == Pair{0, 0};
}

/// A `Kernel::prepare` of a geometry: one function for these windows, one for any.
template <auto geometry, auto of_2x2, auto of_any>
PreparedKernel by_window(const OpView& op) {
  const auto g = geometry(op);
  return is_2x2(g.window) ? prepared<of_2x2>(g) : prepared<of_any>(g);
}

/// The window of an output pixel, cut to the image: taps [top, bottom) × [left, right), at least
/// one.
struct Taps {
  std::int64_t top, bottom, left, right;
  std::int64_t y, x;  ///< of tap (0, 0); may lie in the padding

  std::int64_t count() const noexcept { return (bottom - top) * (right - left); }
};

inline Taps taps_of(const Window& window, const Image& image, std::int64_t oy,
                    std::int64_t ox) noexcept {
  const std::int64_t y = oy * window.stride.h - window.padding.h,
                     x = ox * window.stride.w - window.padding.w;
  return {.top = std::max<std::int64_t>(-y, 0),
          .bottom = std::min(window.kernel.h, image.h - y),
          .left = std::max<std::int64_t>(-x, 0),
          .right = std::min(window.kernel.w, image.w - x),
          .y = y,
          .x = x};
}

/// Zeros the last row and column of an input gradient where 2×2 windows leave them out.
inline void zero_uncovered(float* dx, const Image& x, const Image& y) noexcept {
  for (std::int64_t i = 0; i < x.n; ++i) {
    for (std::int64_t row = 0; row < x.h; ++row) {
      const std::int64_t from = row < 2 * y.h ? 2 * y.w : 0;
      std::fill(dx + x.at(i, row, from), dx + x.at(i, row, x.w), 0.0f);
    }
  }
}

}  // namespace arenite::codelets::pool2d
