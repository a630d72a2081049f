// Samples: rows of arrays in memory, by the inputs of a network that they are for.
//
//   Samples samples{{{"prices", prices.data(), DType::float64, {500, 3}},
//                    {"rise", rises.data(), DType::float32, {500, 1}}}};
//
// Views: they own nothing, and whoever is given them borrows the bytes.
#pragma once

#include <arenite/types.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace arenite {

/// One array, dense and in row-major order. Numbers become those of the input's type: bytes and
/// integers real ones, integers other integers where these hold them.
struct Column {
  std::string input;
  const void* data = nullptr;
  DType type = DType::float32;
  Shape shape;       ///< [M, …]: a row for each sample
  double scale = 1;  ///< what real inputs are multiplied by

  std::int64_t bytes() const noexcept { return shape.elements() * size_of(type); }
  friend bool operator==(const Column&, const Column&) = default;
};

struct Samples {
  std::vector<Column> columns;

  /// Rows of the first column; all have as many.
  std::int64_t count() const noexcept;
  std::int64_t bytes() const noexcept;
  friend bool operator==(const Samples&, const Samples&) = default;
};

/// Throws Error unless there are columns, each once, with as many rows, 1 to 2³¹ − 1, and bytes
/// that begin where a number may.
void check(const Samples& samples);

}  // namespace arenite
