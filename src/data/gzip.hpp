// Compressed IDX files: unpacked in a stream, held to the size that their own header promises; and
// the cache that they are unpacked into.
#pragma once

#include <arenite/data/idx.hpp>

#include "src/base/file.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace arenite::data {

using ByteSink = std::function<void(std::span<const std::uint8_t>)>;

/// Unpacks gzip members (one or more) that together hold one IDX file of the given rank. The IDX
/// header is checked as soon as its bytes are out, and output beyond what it promises is an error,
/// so neither time, memory (256 KiB) nor what `sink` gets can exceed it. Errors give the byte of
/// compressed input.
void unpack_idx(std::span<const std::uint8_t> compressed, int rank, const std::string& file,
                const ByteSink& sink);

/// Maps a file of a data set.
inline FileBytes map_data_file(const std::filesystem::path& path) {
  return map_file(path, "an IDX or gzip file", idx_max_bytes);
}

/// As arenite::writable_cache; throws Error where there is none.
std::filesystem::path writable_cache(const std::filesystem::path& name);

/// The unpacked bytes of a `.gz`, mapped from the cache; unpacks on first use of this content.
FileBytes unpacked(const std::filesystem::path& path, int rank);

}  // namespace arenite::data
