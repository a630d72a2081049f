// Rows of the first axis of a value, for kernels that copy some of them.
#pragma once

#include "codelets/image.hpp"

#include <initializer_list>
#include <optional>

namespace arenite::codelets {

/// True when one of the values has a halo, so that all of them are walked row by row.
inline bool any_halo(std::initializer_list<const graph::Value*> values) noexcept {
  return std::any_of(values.begin(), values.end(),
                     [](const auto* v) { return v->layout.halo > 0; });
}

/// The rows of a value in bytes: of whatever type, they are only copied.
class ByteRows {
 public:
  /// Values that rows are copied between are walked alike.
  ByteRows(const graph::Value& value, bool by_row) {
    const std::int64_t rows = value.shape[0];
    row_ = rows == 0 ? 0 : graph::byte_size(value.type, value.shape, value.layout) / rows;
    if (!by_row) return;
    image_.emplace(value);
    const std::int64_t element = size_of(value.type);
    image_->c *= element, image_->row *= element, image_->plane *= element;
  }

  /// Bytes that so many rows span, their halos included.
  std::int64_t span(std::int64_t rows) const noexcept { return rows * row_; }

  /// Copies rows, but not their halos, to those of another value.
  void copy(const std::uint8_t* from, const ByteRows& to, std::uint8_t* into,
            std::int64_t rows) const noexcept {
    if (!image_) {
      std::copy_n(from, span(rows), into);
      return;
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t y = 0; y < image_->h; ++y) {
        std::copy_n(from + image_->at(i, y, 0), image_->w * image_->c,
                    into + to.image_->at(i, y, 0));
      }
    }
  }

  /// Zeros around all rows, if there is a halo.
  void zero_halo(std::uint8_t* data) const noexcept {
    if (image_) codelets::zero_halo(data, *image_);
  }

 private:
  std::int64_t row_ = 0;
  std::optional<Image> image_;
};

}  // namespace arenite::codelets
