// A value as runs of contiguous elements, for kernels that treat every element (or pixel) alike.
#pragma once

#include "codelets/image.hpp"
#include "codelets/words.hpp"

#include <initializer_list>
#include <optional>

namespace arenite::codelets {

/// True when one of the values has a halo, so that all of them are walked row by row.
inline bool any_halo(std::initializer_list<const graph::Value*> values) noexcept {
  return std::any_of(values.begin(), values.end(),
                     [](const auto* v) { return v->layout.halo > 0; });
}

/// One run that is the whole value, or one for each row of each image. Values of one shape, split
/// alike, have the same runs whatever their halos.
class Rows {
 public:
  Rows(const graph::Value& value, bool by_row) : length_(value.shape.elements()) {
    if (!by_row) return;
    image_.emplace(value);
    count_ = image_->n * image_->h;
    length_ = image_->w * image_->c;
  }

  std::int64_t count() const noexcept { return count_; }
  std::int64_t length() const noexcept { return length_; }  ///< elements of a run
  /// Elements from the value's first byte to run r.
  std::int64_t at(std::int64_t r) const noexcept {
    return image_ ? image_->at(r / image_->h, r % image_->h, 0) : 0;
  }

  /// Writes the zeros of the halo, if there is one.
  template <class T>
  void zero_halo(T* data) const noexcept {
    if (image_) codelets::zero_halo(data, *image_);
  }

 private:
  std::optional<Image> image_;
  std::int64_t count_ = 1, length_ = 0;
};

}  // namespace arenite::codelets
