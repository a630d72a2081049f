// Files as this room needs them: mapped whole for reading, written whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace arenite::data {

/// The bytes of a regular file, read-only; unmapped with the last owner. Throws Error.
struct FileBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::uint8_t> bytes;
};

FileBytes map_file(const std::filesystem::path& path);

/// A file under a temporary name beside `path`. `commit` makes it durable and renames it; without
/// `commit` the destructor removes it. Throws Error with the system's own reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::uint8_t> bytes);
  void commit();

 private:
  [[noreturn]] void fail_system(const std::string& action) const;

  std::filesystem::path path_;
  std::string temporary_;
  int descriptor_ = -1;
};

/// "No such file or directory", for errno's current value.
std::string system_reason();

}  // namespace arenite::data
