// Files that are whole or not there, whatever the disk does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace arenite {

/// A file under a temporary name beside `path`, made at once, so that a wrong path shows before any
/// work is done. `commit` gives it its name; without it the destructor leaves all as it was. What
/// writers of the same path have left that were killed is removed first.
///
/// What `path` names is kept as it is where it is no regular file (a device, a pipe that somebody
/// reads) or already open as standard output: it is then written directly. Links are followed. One
/// thread at a time. Throws Error with the system's own reason, of which `what` says where.
class AtomicFile {
 public:
  AtomicFile(std::filesystem::path path, std::string what);
  explicit AtomicFile(const std::filesystem::path& path) : AtomicFile(path, path.string()) {}
  ~AtomicFile();
  /// Whether one could be made there. A pipe is not opened, whose reader would see its end.
  static void check(const std::filesystem::path& path, std::string what);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends all of it or, where the disk is full, nothing.
  void write(std::span<const std::uint8_t> bytes);
  void write(std::string_view text);

  /// Makes what was written durable, then renames, and makes that durable too: readers see all of
  /// it or what was there before. Later calls of `write` append to the file under its name; a
  /// second `commit` does nothing.
  void commit();

 private:
  bool open_directly();
  void open_temporary();
  bool take_lock() const;
  [[noreturn]] void fail_system(const std::string& action, const std::string& expected) const;

  std::filesystem::path path_;
  std::string what_;
  std::string temporary_;  // empty: the file has its name
  int descriptor_ = -1;
  int mode_ = -1;  // of the file that is replaced
  bool regular_ = true;
};

/// Writes all of the bytes to an open file, at the end of a regular one, which is left as it was
/// where that fails. Returns how many are left then, for the reason that errno says; 0: none.
std::size_t append(int descriptor, std::string_view bytes, bool regular = true);

/// All of the text under this name, or an Error and what was there before.
void write_file(const std::filesystem::path& path, std::string_view text);

/// What a chain of links ends in, whether it is there or not.
std::filesystem::path followed(std::filesystem::path path);

/// "No such file or directory", for errno's current value.
std::string system_reason();

}  // namespace arenite
