// Arrays in NumPy's own format (.npy): read-only and mapped, so that they may be larger than
// memory.
//
//   const data::Array prices = data::read_npy("prices.npy");   // float64 [500, 3]
//   Samples samples{{prices.column("prices"), …}};
//
// Pages come from the file when a batch draws from them, and go again when others need the room.
#pragma once

#include <arenite/samples.hpp>
#include <arenite/types.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace arenite::data {

struct Array {
  DType type = DType::float32;
  Shape shape;
  std::span<const std::byte> bytes;   ///< dense, row-major
  std::shared_ptr<const void> owner;  ///< of the bytes; the file must not be shortened meanwhile

  /// Its rows for an input. Borrows the bytes.
  Column column(std::string input, double scale = 1) const {
    return {std::move(input), bytes.data(), type, shape, scale};
  }
};

/// A file as numpy.save writes it, version 1 to 3. Throws Error on whatever is wrong with it, on
/// types that Arenite has not, in the other order of bytes too, and on more than one axis in
/// Fortran's order.
Array read_npy(const std::filesystem::path& path);

}  // namespace arenite::data
