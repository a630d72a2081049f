#include "src/data/file.hpp"

#include <arenite/data/idx.hpp>
#include <arenite/error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace arenite::data {

std::string system_reason() { return std::generic_category().message(errno); }

FileBytes map_file(const std::filesystem::path& path) {
  // O_NONBLOCK: a named pipe must be refused below, not waited for.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    fail({.found = "cannot open: " + system_reason(),
          .expected = "a readable file",
          .where = path.string()});
  }
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    ::close(descriptor);
    fail({.found = found, .expected = expected, .where = path.string()});
  };
  struct stat status {};
  if (::fstat(descriptor, &status) != 0)
    refuse("cannot read its size: " + system_reason(), "a regular file");
  if (!S_ISREG(status.st_mode)) refuse("not a regular file", "a regular file");
  if (status.st_size == 0) refuse("the file is empty", "an IDX or gzip file");
  if (status.st_size > idx_max_bytes) {
    refuse("a file of " + std::to_string(status.st_size) + " bytes",
           "at most " + std::to_string(idx_max_bytes) + " bytes");
  }
  const std::size_t size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) refuse("cannot map: " + system_reason(), "a file that can be mapped");
  ::close(descriptor);
  std::shared_ptr<const void> owner(
      address, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return {std::move(owner), {static_cast<const std::uint8_t*>(address), size}};
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(path_.string() + ".XXXXXX") {
  descriptor_ = ::mkstemp(temporary_.data());
  if (descriptor_ < 0) fail_system("create");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_system("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  // mkstemp makes it private to the user; a data file may be read by whoever may read the folder.
  // Synced before the rename: after a power cut the name must not lead to missing bytes.
  if (::fchmod(descriptor_, 0644) != 0 || ::fsync(descriptor_) != 0) fail_system("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_system("rename");
  ::close(std::exchange(descriptor_, -1));
}

void AtomicFile::fail_system(const std::string& action) const {
  fail({.found = "cannot " + action + ": " + system_reason(),
        .expected = "a writable folder with enough space",
        .where = path_.string()});
}

}  // namespace arenite::data
