// Rows of the first axis from an index that only a step knows: what dynamic_slice and replace_slice
// share.
#pragma once

#include <arenite/graph/builder.hpp>

#include "codelets/rows.hpp"

#include <string>
#include <utility>
#include <vector>

namespace arenite::codelets {

/// Codes that they write to the status word.
enum class RowsFault : std::uint32_t {
  begin = 1,  ///< some of the rows would lie outside the first axis
  end = 2,    ///< of replace_slice: not the end that follows from begin
};

inline std::vector<std::pair<std::uint32_t, std::string>> rows_status_messages() {
  return {{static_cast<std::uint32_t>(RowsFault::begin),
           "a begin from which the rows reach beyond the first axis"}};
}

inline void expect_begin(const OpView& op, std::size_t i) {
  expect_value(op, i, DType::int64, {1}, "the index of the first row");
}

inline ValueId zeros_like(graph::Builder& builder, const graph::Value& value) {
  return builder.add1(
      "full", {}, {{"shape", dims_of(value.shape)}, {"type", std::string(to_string(value.type))}});
}

/// The rows of a value in bytes: of whatever type, they are only copied.
class ByteRows {
 public:
  /// Values that rows are copied between are split alike, see Rows.
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
