#include "src/data/gzip.hpp"

#include "src/base/atomic_file.hpp"
#include "src/base/private_folder.hpp"
#include "src/base/refuse.hpp"

#include <arenite/data/idx.hpp>
#include <arenite/error.hpp>

#include <spdlog/fmt/fmt.h>
#include <zlib.h>

#include <algorithm>
#include <new>
#include <optional>
#include <vector>

namespace arenite::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t chunk_bytes = std::size_t{256} << 10;

// Deflate's limit: a match of 258 bytes takes at least two bits (zlib, "Technical details").
constexpr std::int64_t max_expansion = 1032;

struct Inflater {
  Inflater() {
    // 16 + 15: gzip wrapping with its checksum, the largest window.
    if (::inflateInit2(&stream, 16 + 15) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { ::inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
};

// Passes bytes on, but never more than their own IDX header promises.
class LimitedSink {
 public:
  LimitedSink(int rank, std::int64_t compressed_bytes, std::string file, const ByteSink& sink)
      : rank_(rank), compressed_bytes_(compressed_bytes), file_(std::move(file)), sink_(sink) {}

  void take(std::span<const std::uint8_t> bytes, std::int64_t offset) {
    if (bytes.empty()) return;
    collect_header(bytes);
    total_ += std::ssize(bytes);
    if (header_ && total_ > header_->file_bytes) {
      refuse("it unpacks to more than the " + std::to_string(header_->file_bytes) +
                 " bytes its header promises",
             "a header and " + to_string(header_->shape) + " elements",
             file_ + ", byte " + std::to_string(offset),
             "the file is damaged, or made to fill the disk");
    }
    sink_(bytes);
  }

  void finish() {
    if (!header_) parse_idx_header(head_, rank_, file_ + " (unpacked)");
    if (total_ < header_->file_bytes) {
      refuse("it unpacks to " + std::to_string(total_) + " bytes",
             std::to_string(header_->file_bytes) + " bytes, by its header of " +
                 to_string(header_->shape),
             file_ + " (unpacked), byte " + std::to_string(total_),
             "the file was cut short before it was compressed");
    }
  }

 private:
  void collect_header(std::span<const std::uint8_t> bytes) {
    if (header_) return;
    const std::size_t wanted = 4 + 4 * static_cast<std::size_t>(rank_) - head_.size();
    const auto part = bytes.first(std::min(wanted, bytes.size()));
    head_.insert(head_.end(), part.begin(), part.end());
    if (part.size() < wanted) return;
    header_ = parse_idx_header(head_, rank_, file_ + " (unpacked)");
    if (header_->file_bytes / max_expansion > compressed_bytes_) {
      refuse(std::to_string(compressed_bytes_) + " compressed bytes for " +
                 to_string(header_->shape) + " elements",
             "at least 1 for every " + std::to_string(max_expansion) + ", gzip's limit",
             file_ + " (unpacked), byte 4", "the dimensions in the header are wrong");
    }
  }

  int rank_;
  std::int64_t compressed_bytes_;
  std::string file_;
  const ByteSink& sink_;
  std::vector<std::uint8_t> head_;
  std::optional<IdxHeader> header_;
  std::int64_t total_ = 0;
};

// Enough to tell contents apart without reading more than once: the size, a checksum of the
// compressed bytes, and gzip's own checksum of what they hold.
std::string content_key(std::span<const std::uint8_t> compressed) {
  const uLong checksum = ::crc32_z(0, compressed.data(), compressed.size());
  const auto trailer = compressed.last(std::min<std::size_t>(compressed.size(), 8));
  std::string key = fmt::format("{:x}-{:08x}-", compressed.size(), checksum);
  for (const std::uint8_t byte : trailer) key += fmt::format("{:02x}", byte);
  return key;
}

std::uint32_t little_endian(std::span<const std::uint8_t> four) {
  return four[0] | std::uint32_t{four[1]} << 8 | std::uint32_t{four[2]} << 16 |
         std::uint32_t{four[3]} << 24;
}

/// Whether the bytes are those that were compressed, as far as the last member tells: of several it
/// knows its own part only.
bool matches_trailer(std::span<const std::uint8_t> bytes,
                     std::span<const std::uint8_t> compressed) {
  if (compressed.size() < 8) return false;
  const auto trailer = compressed.last(8);
  if (little_endian(trailer.subspan(4)) != static_cast<std::uint32_t>(bytes.size())) return true;
  return little_endian(trailer.first(4)) == ::crc32_z(0, bytes.data(), bytes.size());
}

std::optional<FileBytes> from_cache(const fs::path& path, int rank,
                                    std::span<const std::uint8_t> compressed) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    FileBytes file = map_data_file(path);
    parse_idx(file.bytes, rank, path.string());
    if (matches_trailer(file.bytes, compressed)) return file;
  } catch (const Error&) {
  }
  return std::nullopt;  // damaged since: unpacked afresh, where real trouble is reported
}

}  // namespace

void unpack_idx(std::span<const std::uint8_t> compressed, int rank, const std::string& file,
                const ByteSink& sink) {
  LimitedSink limited(rank, std::ssize(compressed), file, sink);
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::vector<std::uint8_t> out(std::min(chunk_bytes, compressed.size() * max_expansion + 1));
  std::size_t fed = 0;
  int members = 0;
  bool in_member = false;
  while (true) {
    if (stream.avail_in == 0 && fed < compressed.size()) {
      // zlib counts in 32 bits; it never writes through next_in.
      const std::size_t part = std::min(compressed.size() - fed, std::size_t{1} << 30);
      stream.next_in = const_cast<Bytef*>(compressed.data() + fed);
      stream.avail_in = static_cast<uInt>(part);
      fed += part;
    }
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    const std::int64_t offset = static_cast<std::int64_t>(fed - stream.avail_in);
    const std::string where = file + ", byte " + std::to_string(offset);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      const std::string reason = stream.msg ? stream.msg : "not gzip data";
      const bool trailing = members > 0 && !in_member;
      refuse(
          (trailing ? "trailing bytes that are no gzip member: " : "corrupt gzip data: ") + reason,
          trailing ? "the end of the file after the last member" : "intact gzip data", where,
          "compare its SHA-256 with the publisher's, or fetch it again");
    }
    in_member = true;
    const std::size_t produced = out.size() - stream.avail_out;
    limited.take(std::span(out).first(produced), offset);
    if (status == Z_STREAM_END) {
      ++members;
      in_member = false;
      if (stream.avail_in == 0 && fed == compressed.size()) break;
      if (::inflateReset(&stream) != Z_OK) throw std::bad_alloc();
    } else if (produced < out.size() && stream.avail_in == 0 && fed == compressed.size()) {
      refuse("the file ends inside gzip member " + std::to_string(members + 1),
             "the member's end and checksum", where, "the download was cut short; fetch it again");
    }
  }
  limited.finish();
}

fs::path cache_folder() { return arenite::cache_folder(); }

fs::path writable_cache(const fs::path& name) {
  if (const auto folder = arenite::writable_cache(name)) return *folder;
  std::string tried = cache_folder().string();
  if (!cache_is_named() && cache_folder() != temporary_folder())
    tried += " and " + temporary_folder().string();
  refuse("no folder to keep unpacked files in: " + tried + " cannot be written",
         "a writable folder", {},
         "set ARENITE_CACHE to one, or unpack the .gz files beside themselves");
}

FileBytes unpacked(const fs::path& path, int rank) {
  FileBytes packed = map_data_file(path);
  const std::string name = path.stem().string() + "-" + content_key(packed.bytes);
  const fs::path folder = "unpacked";
  // Reading needs no writable folder: an image of a system may come with its cache.
  if (auto hit = from_cache(cache_folder() / folder / name, rank, packed.bytes)) return *hit;
  const fs::path target = writable_cache(folder) / name;
  if (auto hit = from_cache(target, rank, packed.bytes)) return *hit;
  AtomicFile file(target);
  unpack_idx(packed.bytes, rank, path.string(),
             [&](std::span<const std::uint8_t> bytes) { file.write(bytes); });
  file.commit();
  return map_data_file(target);
}

}  // namespace arenite::data
