// Images in memory: NHWC values with a halo, and windows that slide over them.
#pragma once

#include <arenite/graph/support.hpp>

#include "codelets/rules.hpp"
#include "codelets/sizes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace arenite::codelets {

/// Something for rows and something for columns.
struct Pair {
  std::int64_t h = 0, w = 0;

  friend bool operator==(const Pair&, const Pair&) = default;
};

inline std::string to_string(Pair pair) {
  return std::to_string(pair.h) + "x" + std::to_string(pair.w);
}

/// A list attribute of two integers from `least` up; throws Error otherwise.
inline Pair pair_of(const graph::Attributes& attributes, std::string_view name,
                    std::int64_t least) {
  // The upper limit keeps every sum and product below 2^63.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const std::vector<std::int64_t>& list = attributes.integers(name);
  const auto outside = [&](std::int64_t v) { return v < least || v > most; };
  if (list.size() != 2 || outside(list[0]) || outside(list[1])) {
    fail({.found = std::string(name) + "=" + graph::to_string(*attributes.find(name)),
          .expected = "two integers (rows, columns) of at least " + std::to_string(least) +
                      " and below 2^31"});
  }
  return {list[0], list[1]};
}

/// An attribute that `pair_of` reads, and that has to be given.
inline graph::AttributeSchema pair_schema(std::string name) {
  return {std::move(name), graph::AttributeType::integers, std::nullopt};
}

/// The attributes of an input gradient, from those of the op itself.
inline graph::Attributes sized(const OpView& op) {
  graph::Attributes attributes = op.attributes();
  attributes.set("size", std::vector{op.operand(0).shape[1], op.operand(0).shape[2]});
  return attributes;
}

/// The shape of an operand of rank 4, none of whose dimensions may be 0; `letters` names them.
inline const Shape& expect_rank4(const OpView& op, std::size_t i, DType type,
                                 const std::string& letters) {
  expect_type(op, i, type);
  expect_rank(op, i, 4, letters);
  const Shape& shape = op.operand(i).shape;
  if (shape.elements() == 0) {
    fail({.found = operand_text(op, i) + " of shape " + to_string(shape),
          .expected = letters + " without an empty dimension"});
  }
  return shape;
}

/// A window sliding over an image that is padded on all sides.
struct Window {
  Pair kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1};

  std::int64_t area() const noexcept { return kernel.h * kernel.w; }
  /// From the first to the last pixel of a window.
  Pair reach() const noexcept { return {(kernel.h - 1) * dilation.h, (kernel.w - 1) * dilation.w}; }

  /// Number of whole windows in an image; throws Error when there is none.
  Pair output(Pair image) const {
    const Pair padded{image.h + 2 * padding.h, image.w + 2 * padding.w};
    // Compared by division: the products might not fit.
    if (kernel.h - 1 > (padded.h - 1) / dilation.h || kernel.w - 1 > (padded.w - 1) / dilation.w) {
      const bool dilated = dilation != Pair{1, 1};
      fail({.found = "kernel " + to_string(kernel) +
                     (dilated ? " with dilation " + to_string(dilation) : "") +
                     " larger than the padded input " + to_string(padded),
            .expected = "a kernel that fits",
            .hint = "more padding, or fewer poolings and strides before it"});
    }
    return {(padded.h - 1 - reach().h) / stride.h + 1, (padded.w - 1 - reach().w) / stride.w + 1};
  }
};

/// Where the pixels of an NHWC value lie: all in elements from its first byte, halo included.
struct Image {
  std::int64_t n = 0, h = 0, w = 0, c = 0, halo = 0;
  std::int64_t row = 0;    ///< from a pixel to the one below
  std::int64_t plane = 0;  ///< from an image to the next

  explicit Image(const graph::Value& value)
      : n(value.shape[0]),
        h(value.shape[1]),
        w(value.shape[2]),
        c(value.shape[3]),
        halo(value.layout.halo),
        row((w + 2 * halo) * c),
        plane((h + 2 * halo) * row) {}

  std::int64_t at(std::int64_t i, std::int64_t y, std::int64_t x) const noexcept {
    return i * plane + (y + halo) * row + (x + halo) * c;
  }
  /// Elements of a sample, its halo left out.
  std::int64_t sample() const noexcept { return h * w * c; }
};

/// Calls f(sample, row, column) for every pixel.
template <class F>
void for_each_pixel(const Image& image, F f) {
  for (std::int64_t i = 0; i < image.n; ++i) {
    for (std::int64_t y = 0; y < image.h; ++y) {
      for (std::int64_t x = 0; x < image.w; ++x) f(i, y, x);
    }
  }
}

/// Calls f(tap, row, column) for those taps of output (y, x) that lie inside the image.
template <class F>
void for_each_tap(const Window& window, const Image& image, Pair output, F f) {
  const std::int64_t top = output.h * window.stride.h - window.padding.h,
                     left = output.w * window.stride.w - window.padding.w;
  for (std::int64_t ky = 0; ky < window.kernel.h; ++ky) {
    const std::int64_t y = top + ky * window.dilation.h;
    if (y < 0 || y >= image.h) continue;
    for (std::int64_t kx = 0; kx < window.kernel.w; ++kx) {
      const std::int64_t x = left + kx * window.dilation.w;
      if (x >= 0 && x < image.w) f(ky * window.kernel.w + kx, y, x);
    }
  }
}

/// Writes the zeros around every image of a result.
template <class T>
void zero_halo(T* data, const Image& image) noexcept {
  if (image.halo == 0) return;
  const auto zero = [&](std::int64_t from, std::int64_t to) {
    std::fill(data + from, data + to, T{0});
  };
  for (std::int64_t i = 0; i < image.n; ++i) {
    // From the end of one row's pixels to the start of the next row's is one run of zeros.
    std::int64_t from = i * image.plane;
    for (std::int64_t y = 0; y < image.h; ++y) {
      zero(from, image.at(i, y, 0));
      from = image.at(i, y, image.w);
    }
    zero(from, (i + 1) * image.plane);
  }
}

/// Samples with at least `border` zeros around them: the image itself when its halo is that wide,
/// else a copy of one sample in scratch.
class PaddedSamples {
 public:
  PaddedSamples(const Image& image, Pair border) : image_(image), border_(border) {
    copies_ = image.halo < std::max(border.h, border.w);
    const double copied = static_cast<double>(image.h + 2 * border.h) *
                          static_cast<double>(image.w + 2 * border.w) *
                          static_cast<double>(image.c);
    fits_ = !copies_ || in_proportion(copied, static_cast<double>(image.sample()));
    if (!copies_) row_ = image.row;
    if (copies_ && fits_) row_ = (image.w + 2 * border.w) * image.c;
  }

  /// No when the copy would be out of proportion; nothing else may be asked then.
  graph::Support fits() const noexcept {
    if (fits_) return {};
    return "a padded copy out of proportion to the image";
  }

  const Image& image() const noexcept { return image_; }
  std::int64_t row() const noexcept { return row_; }  ///< elements from a pixel to the one below

  std::int64_t scratch_bytes() const noexcept {
    return copies_ ? (image_.h + 2 * border_.h) * row_ * float_bytes : 0;
  }

  /// Once a run, before the first sample.
  void clear(float* scratch) const noexcept {
    if (copies_) std::memset(scratch, 0, static_cast<std::size_t>(scratch_bytes()));
  }

  /// Address of the sample's first pixel; it lasts until the next call.
  const float* sample(const float* data, std::int64_t i, float* scratch) const noexcept {
    if (!copies_) return data + image_.at(i, 0, 0);
    float* first = scratch + border_.h * row_ + border_.w * image_.c;
    for (std::int64_t y = 0; y < image_.h; ++y) {
      std::copy_n(data + image_.at(i, y, 0), image_.w * image_.c, first + y * row_);
    }
    return first;
  }

 private:
  Image image_;
  Pair border_;
  std::int64_t row_ = 0;
  bool copies_ = false, fits_ = true;
};

/// For what walks windows pixel by pixel.
inline graph::Support moves_by_one(const Window& window) noexcept {
  if (window.stride != Pair{1, 1}) return "a stride above 1";
  if (window.dilation != Pair{1, 1}) return "a dilation above 1";
  return {};
}

/// The halo to wish for around images that are read with this border. Beyond a few pixels a copy of
/// one sample is cheaper than a wide halo around all of them.
inline int halo_for(Pair border) noexcept {
  constexpr std::int64_t widest = 16;
  const std::int64_t halo = std::max(border.h, border.w);
  return halo <= widest ? static_cast<int>(halo) : 0;
}

/// `Kernel::wanted_halo` of kernels that read images, operand 0, with their window's padding around
/// them; `others`: what they wish for on other operands.
template <auto geometry, int others = -1>
int padding_halo(const OpView& op, std::size_t operand) {
  return operand == 0 ? halo_for(geometry(op).window.padding) : others;
}

/// `Kernel::wanted_halo` of kernels that skip the halos of these operands, so that any will do, and
/// want none on the others.
template <std::size_t... images>
int skipped_halo(const OpView&, std::size_t operand) {
  return ((operand == images) || ...) ? 0 : -1;
}

}  // namespace arenite::codelets
