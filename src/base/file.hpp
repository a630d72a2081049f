// Files read by mapping them whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace arenite {

/// Read-only bytes; unmapped with the last owner.
struct FileBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::uint8_t> bytes;
};

/// The bytes of a regular file of 1 to `most` bytes; throws Error, which expects `what`, and
/// Failure where a limit of the process keeps it from reading a file that may be right.
FileBytes map_file(const std::filesystem::path& path, const std::string& what, std::int64_t most);

}  // namespace arenite
