// Rows of the first axis from an index that only a step knows: what dynamic_slice and replace_slice
// share.
#pragma once

#include <arenite/graph/builder.hpp>

#include "codelets/cuda/qualifiers.hpp"
#include "codelets/rules.hpp"

#include <string>
#include <utility>
#include <vector>

namespace arenite::codelets {

/// Codes that they write to the status word.
enum class RowsFault : std::uint32_t {
  begin = 1,  ///< some of the rows would lie outside the first axis
  end = 2,    ///< of replace_slice: not the end that follows from begin
};

/// Which rows a step means: `count` of `all`, from *begin on.
struct DynamicRows {
  std::int64_t all, count;
  const std::int64_t *begin, *end = nullptr;  ///< no end: none is given

  /// The code of what is wrong with them; 0 where nothing is.
  ARENITE_GPU std::uint32_t fault() const {
    if (*begin < 0 || *begin > all - count) return static_cast<std::uint32_t>(RowsFault::begin);
    if (end != nullptr && *end != *begin + count) return static_cast<std::uint32_t>(RowsFault::end);
    return 0;
  }
};

inline const FaultTexts begin_fault{{static_cast<std::uint32_t>(RowsFault::begin),
                                     "a begin from which the rows reach beyond the first axis"}};

inline void expect_begin(const OpView& op, std::size_t i) {
  expect_value(op, i, DType::int64, {1}, "the index of the first row");
}

inline ValueId zeros_like(graph::Builder& builder, const graph::Value& value) {
  return builder.add1(
      "full", {}, {{"shape", dims_of(value.shape)}, {"type", std::string(to_string(value.type))}});
}

}  // namespace arenite::codelets
