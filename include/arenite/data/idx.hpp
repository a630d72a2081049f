// IDX files of bytes (MNIST's format), plain or gzip-compressed, read without copying.
//
// A plain file is mapped read-only. A `.gz` is unpacked once into `cache_folder()` and mapped from
// there; its name in the cache comes from the compressed file's content, so a changed file is
// unpacked again. Every header field is checked against the real size before any byte of data is
// used. All failures are arenite::Error with the file, the byte offset, what was found and what was
// expected. Functions may be called from any thread; reading allocates little: the pages belong to
// the file.
//
// The format: 0, 0, type code (8 = unsigned byte), rank, then `rank` big-endian 32-bit dimensions,
// then the elements, outermost dimension first.
#pragma once

#include <arenite/types.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace arenite::data {

/// No file, nor what a `.gz` unpacks to, may be larger: 4 GiB.
inline constexpr std::int64_t idx_max_bytes = std::int64_t{1} << 32;

/// What an IDX file's first 4 + 4·rank bytes say.
struct IdxHeader {
  Shape shape;
  std::int64_t header_bytes = 0;
  std::int64_t file_bytes = 0;  ///< header and elements: the size the file must have
};

/// Decodes a header of `rank` dimensions (1 to 8), each at least 1, of unsigned bytes.
/// `bytes` need hold no more than the header; `file` names the source in errors.
IdxHeader parse_idx_header(std::span<const std::uint8_t> bytes, int rank, const std::string& file);

/// Elements in memory that the caller owns.
struct IdxView {
  Shape shape;
  std::span<const std::uint8_t> values;  ///< shape.elements() bytes
};

/// Checks a whole file that is already in memory; the view points into `bytes`.
IdxView parse_idx(std::span<const std::uint8_t> bytes, int rank, const std::string& file);

/// Throws Error naming the first label that is `classes` or more; `labels` starts at byte 8 of
/// `file`.
void check_labels(std::span<const std::uint8_t> labels, int classes, const std::string& file);

/// An open file. Copies share the mapping, which lives as long as the last of them; the file must
/// not be shortened meanwhile.
class IdxFile {
 public:
  /// Opens `path`; a name that ends in `.gz` is unpacked into the cache first.
  static IdxFile open(const std::filesystem::path& path, int rank);

  const Shape& shape() const noexcept { return view_.shape; }
  std::span<const std::uint8_t> values() const noexcept { return view_.values; }
  const std::string& name() const noexcept { return name_; }  ///< for messages: its path as given

 private:
  IdxFile(std::shared_ptr<const void> bytes, IdxView view, std::string name)
      : bytes_(std::move(bytes)), view_(view), name_(std::move(name)) {}

  std::shared_ptr<const void> bytes_;
  IdxView view_;
  std::string name_;
};

/// Writes `values` (shape.elements() bytes) as a plain IDX file: to a temporary name, then renamed,
/// so that no reader ever sees half a file. Creates the folder.
void write_idx(const std::filesystem::path& path, const Shape& shape,
               std::span<const std::uint8_t> values);

/// Where unpacked and downloaded files are kept: $ARENITE_CACHE, else $XDG_CACHE_HOME/arenite, else
/// $HOME/.cache/arenite, else a folder of this user's in the system's temporary folder. Only names
/// it.
std::filesystem::path cache_folder();

}  // namespace arenite::data
