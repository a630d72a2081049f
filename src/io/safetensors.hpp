// Tensors by name in one file, in the safetensors format, which other tools read too: the length of
// the header (64 bits, little-endian), the header as JSON, then the bytes of all tensors.
#pragma once

#include <arenite/types.hpp>

#include "src/base/file.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arenite::io {

struct NamedTensor {
  std::string name;
  DType type = DType::float32;
  Shape shape;
  std::span<const std::byte> bytes;  ///< dense, row-major
};

/// What the header says beside the tensors, by names that differ.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Writes all of them, and the SHA-256 of header and bytes, or leaves what is there. Names differ.
/// Throws Error.
void save_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                  const Metadata& metadata = {});

/// A file of tensors, mapped and checked: every byte belongs to one tensor, and to the SHA-256 if
/// the file has one. Older files have one of their tensors' bytes alone.
class TensorFile {
 public:
  /// Throws Error on whatever is wrong with the file.
  explicit TensorFile(const std::filesystem::path& path);

  /// In the order of their bytes; those are the file's, as long as this lives.
  const std::vector<NamedTensor>& tensors() const noexcept { return tensors_; }
  /// Null where there is none of this name.
  const NamedTensor* find(std::string_view name) const noexcept;
  /// Of `save_tensors`, or another tool's.
  const Metadata& metadata() const noexcept { return metadata_; }
  bool has_checksum() const noexcept { return has_checksum_; }
  /// Null where nothing of this name is said.
  const std::string* said(std::string_view name) const noexcept;

 private:
  FileBytes file_;
  std::vector<NamedTensor> tensors_;
  Metadata metadata_;
  bool has_checksum_ = false;
};

}  // namespace arenite::io
