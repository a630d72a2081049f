// Files as this room reads them: mapped whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace arenite::data {

/// The bytes of a regular file, read-only; unmapped with the last owner. Throws Error.
struct FileBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::uint8_t> bytes;
};

FileBytes map_file(const std::filesystem::path& path);

}  // namespace arenite::data
