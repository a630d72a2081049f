#include "src/base/atomic_file.hpp"

#include <arenite/error.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

namespace arenite {
namespace {

namespace fs = std::filesystem;

constexpr const char* expected_folder = "a path in a folder that exists and may be written";
constexpr const char* mark = ".tmp-";

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// "f.tmp-12-0", of process 12.
bool is_temporary(std::string_view name, const std::string& begin) {
  if (!name.starts_with(begin)) return false;
  name.remove_prefix(begin.size());
  const auto has_digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  const std::size_t dash = name.find('-');
  return dash != name.npos && has_digits(name.substr(0, dash)) && has_digits(name.substr(dash + 1));
}

/// A writer holds a lock on its temporary file for as long as it lives: what can be locked is of
/// one that was killed.
void remove_leftovers(const fs::path& path) {
  const std::string begin = path.filename().string() + mark;
  std::error_code error;
  for (fs::directory_iterator at(folder_of(path), error), end; !error && at != end;
       at.increment(error)) {
    if (!is_temporary(at->path().filename().string(), begin)) continue;
    const int left = ::open(at->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (left < 0) continue;
    if (::flock(left, LOCK_EX | LOCK_NB) == 0) ::unlink(at->path().c_str());
    ::close(left);
  }
}

/// So that the new name is there after a power cut. Some file systems know no such thing.
void sync_folder(const fs::path& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

}  // namespace

fs::path followed(fs::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(path, error); ++links)
    path = path.parent_path() / fs::read_symlink(path, error);
  return path;
}

std::string system_reason() { return std::generic_category().message(errno); }

AtomicFile::AtomicFile(fs::path path, std::string what)
    : path_(std::move(path)), what_(std::move(what)) {
  if (!open_directly()) open_temporary();
}

void AtomicFile::check(const fs::path& path, std::string what) {
  std::error_code error;
  if (fs::is_fifo(path, error) && ::access(path.c_str(), W_OK) == 0) return;
  AtomicFile(path, std::move(what));
}

AtomicFile::~AtomicFile() {
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

/// False when there is a regular file, or none, at the path.
bool AtomicFile::open_directly() {
  struct stat there {};
  if (::stat(path_.c_str(), &there) != 0) return false;
  if (S_ISDIR(there.st_mode)) {
    errno = EISDIR;
    fail_system("create", "a path of a file");
  }
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
    // Opened anew, a file would be written from its start, over what is printed.
    struct stat open {};
    if (::fstat(standard, &open) != 0 || open.st_dev != there.st_dev || open.st_ino != there.st_ino)
      continue;
    descriptor_ = ::fcntl(standard, F_DUPFD_CLOEXEC, 0);
    regular_ = false;
    if (descriptor_ < 0) fail_system("open", "a file that may be written");
    return true;
  }
  if (S_ISREG(there.st_mode)) {
    // The folder may let us replace what its owner does not let us write.
    if (::access(path_.c_str(), W_OK) != 0) fail_system("replace", "a file that may be written");
    mode_ = static_cast<int>(there.st_mode & 0777);
    return false;
  }
  regular_ = false;
  // Of a pipe that nobody reads it would wait, maybe for ever.
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0 && errno == ENXIO && S_ISFIFO(there.st_mode))
    fail_system("open", "a pipe that somebody reads");
  const int flags = descriptor_ < 0 ? -1 : ::fcntl(descriptor_, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor_, F_SETFL, flags & ~O_NONBLOCK) != 0)
    fail_system("open", "something that may be written");
  return true;
}

void AtomicFile::open_temporary() {
  path_ = followed(path_);  // only that may be renamed over
  remove_leftovers(path_);
  // Distinct for every process and call, so that two writers of one file never mix.
  static std::atomic<unsigned> calls{0};
  do {
    temporary_ = path_.string() + mark + std::to_string(::getpid()) + "-" + std::to_string(calls++);
    descriptor_ =
        ::open(temporary_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 ? errno == EEXIST : !take_lock());
  if (descriptor_ >= 0) return;
  temporary_.clear();
  fail_system("create", expected_folder);
}

/// False where another writer has taken the new file for a leftover: it is closed then. Where
/// nothing can be locked nothing is removed, either.
bool AtomicFile::take_lock() const {
  struct stat file {};
  const bool taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (!taken && (::fstat(descriptor_, &file) != 0 || file.st_nlink > 0)) return true;
  ::close(descriptor_);
  return false;
}

void AtomicFile::write(std::span<const std::uint8_t> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::write(std::string_view text) {
  if (append(descriptor_, text, regular_) > 0)
    fail_system("write", "room for " + std::to_string(text.size()) + " more bytes");
}

void AtomicFile::commit() {
  if (temporary_.empty()) return;
  if (mode_ >= 0 && ::fchmod(descriptor_, static_cast<mode_t>(mode_)) != 0)
    fail_system("create", expected_folder);
  // Synced before the rename: after a power cut the name must not lead to missing bytes.
  if (::fsync(descriptor_) != 0) fail_system("write", "a disk that keeps what is written");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_system("create", expected_folder);
  temporary_.clear();
  sync_folder(path_);
}

std::size_t append(int descriptor, std::string_view bytes, bool regular) {
  const off_t before = regular ? ::lseek(descriptor, 0, SEEK_END) : 0;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      [[maybe_unused]] const int shortened = regular ? ::ftruncate(descriptor, before) : 0;
      errno = reason;
      break;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return bytes.size();
}

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void AtomicFile::fail_system(const std::string& action, const std::string& expected) const {
  fail({.found = "cannot " + action + " it: " + system_reason(),
        .expected = expected,
        .where = what_});
}

}  // namespace arenite
