#include <arenite/data/idx.hpp>

#include "src/base/atomic_file.hpp"
#include "src/base/file.hpp"
#include "src/base/refuse.hpp"
#include "src/data/gzip.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace arenite::data {
namespace {

constexpr std::uint8_t type_unsigned_byte = 0x08;

std::string at_byte(const std::string& file, std::int64_t offset) {
  return file + ", byte " + std::to_string(offset);
}

std::string hex(std::uint8_t byte) { return fmt::format("0x{:02x}", byte); }

}  // namespace

IdxHeader parse_idx_header(std::span<const std::uint8_t> bytes, int rank, const std::string& file) {
  if (rank < 1 || rank > Shape::max_rank) {
    refuse("an IDX rank of " + std::to_string(rank), "1 to 8", file);
  }
  const std::int64_t header_bytes = 4 + 4 * std::int64_t{rank};
  const std::int64_t available = std::ssize(bytes);
  if (available >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) {
    refuse("gzip data under a name without .gz", "an IDX file, which starts with two zero bytes",
           at_byte(file, 0), "add .gz to its name, or unpack it");
  }
  for (std::size_t i = 0; i < 2 && i < bytes.size(); ++i) {
    if (bytes[i] != 0) {
      refuse("the magic number has " + hex(bytes[i]),
             "0x00: an IDX file starts with two zero bytes",
             at_byte(file, static_cast<std::int64_t>(i)));
    }
  }
  if (available >= 3 && bytes[2] != type_unsigned_byte) {
    refuse("type code " + hex(bytes[2]), "0x08, unsigned bytes", at_byte(file, 2));
  }
  if (available >= 4 && bytes[3] != rank) {
    refuse("rank " + std::to_string(bytes[3]),
           "rank " + std::to_string(rank) +
               (rank == 1   ? " (labels)"
                : rank == 3 ? " (images)"
                            : ""),
           at_byte(file, 3), "are the images' and the labels' files swapped?");
  }
  if (available < header_bytes) {
    refuse("the file ends after " + std::to_string(available) + " bytes",
           "a header of " + std::to_string(header_bytes) + " bytes", at_byte(file, available));
  }
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::int64_t elements = 1;
  for (int axis = 0; axis < rank; ++axis) {
    const std::size_t at = 4 + 4 * static_cast<std::size_t>(axis);
    const std::int64_t dim = std::int64_t{bytes[at]} << 24 | std::int64_t{bytes[at + 1]} << 16 |
                             std::int64_t{bytes[at + 2]} << 8 | std::int64_t{bytes[at + 3]};
    if (dim == 0 || dim > idx_max_bytes / elements) {
      refuse(
          "dimension " + std::to_string(axis) + " is " + std::to_string(dim),
          dim == 0 ? "at least 1" : "at most " + std::to_string(idx_max_bytes) + " elements in all",
          at_byte(file, static_cast<std::int64_t>(at)));
    }
    dims[static_cast<std::size_t>(axis)] = dim;
    elements *= dim;
  }
  return {Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank))),
          header_bytes, header_bytes + elements};
}

IdxView parse_idx(std::span<const std::uint8_t> bytes, int rank, const std::string& file) {
  const IdxHeader header = parse_idx_header(bytes, rank, file);
  const std::int64_t size = std::ssize(bytes);
  if (size != header.file_bytes) {
    refuse("a file of " + std::to_string(size) + " bytes",
           std::to_string(header.file_bytes) + " bytes: " + std::to_string(header.header_bytes) +
               " of header and " + to_string(header.shape) + " elements",
           at_byte(file, std::min(size, header.file_bytes)),
           size < header.file_bytes ? "the file is cut short" : "the file has trailing bytes");
  }
  return {header.shape, bytes.subspan(static_cast<std::size_t>(header.header_bytes))};
}

void check_labels(std::span<const std::uint8_t> labels, int classes, const std::string& file) {
  const auto bad = std::ranges::find_if(labels, [&](std::uint8_t l) { return l >= classes; });
  if (bad == labels.end()) return;
  refuse("label " + std::to_string(*bad), "0 to " + std::to_string(classes - 1),
         at_byte(file, 8 + (bad - labels.begin())));
}

IdxFile IdxFile::open(const std::filesystem::path& path, int rank) {
  const bool packed = path.extension() == ".gz";
  const FileBytes file = packed ? unpacked(path, rank) : map_data_file(path);
  std::string name = path.string() + (packed ? " (unpacked)" : "");
  const IdxView view = parse_idx(file.bytes, rank, name);
  return {file.owner, view, std::move(name)};
}

void write_idx(const std::filesystem::path& path, const Shape& shape,
               std::span<const std::uint8_t> values) {
  std::vector<std::uint8_t> header{0, 0, type_unsigned_byte,
                                   static_cast<std::uint8_t>(shape.rank())};
  for (std::int64_t dim : shape) {
    for (int shift = 24; shift >= 0; shift -= 8)
      header.push_back(static_cast<std::uint8_t>(dim >> shift));
  }
  // What we write, we can read: the same limits.
  const IdxHeader parsed = parse_idx_header(header, shape.rank(), path.string());
  if (parsed.shape != shape || shape.elements() != std::ssize(values)) {
    refuse(std::to_string(values.size()) + " bytes for shape " + to_string(shape),
           "as many bytes as elements, and dimensions below 2^32", path.string());
  }
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    refuse("cannot create the folder: " + error.message(), "a writable folder",
           path.parent_path().string());
  }
  AtomicFile file(path);
  file.write(header);
  file.write(values);
  file.commit();
}

}  // namespace arenite::data
