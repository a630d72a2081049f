// Tensors by name in one file, in the safetensors format, which other tools read too: the length of
// the header (64 bits, little-endian), the header as JSON, then the bytes of all tensors.
#pragma once

#include <arenite/types.hpp>

#include "src/base/file.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace arenite::io {

struct NamedTensor {
  std::string name;
  DType type = DType::float32;
  Shape shape;
  std::span<const std::byte> bytes;  ///< dense, row-major
};

/// Writes all of them, and their SHA-256, or leaves what is there. Names differ. Throws Error.
void save_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// A file of tensors, mapped and checked: every byte belongs to one tensor, and to the SHA-256 if
/// the file has one.
class TensorFile {
 public:
  /// Throws Error on whatever is wrong with the file.
  explicit TensorFile(const std::filesystem::path& path);

  /// In the order of their bytes; those are the file's, as long as this lives.
  const std::vector<NamedTensor>& tensors() const noexcept { return tensors_; }
  /// Null where there is none of this name.
  const NamedTensor* find(std::string_view name) const noexcept;

 private:
  FileBytes file_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace arenite::io
