// Arrays in NumPy's own format (.npy), version 1 to 3: a magic number, a header that is a Python
// dictionary, and the elements.
#pragma once

#include <arenite/types.hpp>

#include "src/base/file.hpp"

#include <cstddef>
#include <filesystem>
#include <span>

namespace arenite::io {

/// A file, mapped and checked.
struct Npy {
  DType type = DType::float32;
  Shape shape;
  std::span<const std::byte> bytes;  ///< dense, row-major; need not begin where a number may
  FileBytes file;                    ///< owns them
};

/// Throws Error on whatever is wrong with the file, on types that Arenite has not, in the other
/// order of bytes too, and on more than one axis in Fortran's order.
Npy read_npy(const std::filesystem::path& path);

}  // namespace arenite::io
