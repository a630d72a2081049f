#include "src/base/file.hpp"

#include "src/base/atomic_file.hpp"

#include <arenite/error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace arenite {
namespace {

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "no regular file";
}

/// The file may be right: a limit of the process is what has to be mended.
Failure limited(ErrorText text, const char* hint) {
  text.hint = hint;
  return Failure(text);
}

}  // namespace

FileBytes map_file(const std::filesystem::path& path, const std::string& what, std::int64_t most) {
  // O_NONBLOCK: a named pipe must be refused below, not waited for.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int reason = errno;
    std::string found = "cannot open it: " + system_reason();
    std::error_code error;
    const auto target = std::filesystem::read_symlink(path, error);
    if (!error) found += " (a link to " + target.string() + ")";
    const ErrorText text{
        .found = found, .expected = "a readable file", .where = path.string(), .hint = {}};
    if (reason == EMFILE) throw limited(text, "raise the limit of open files, `ulimit -n`");
    fail(text);
  }
  const auto refuse = [&](const std::string& found, const std::string& expected) {
    ::close(descriptor);
    fail({.found = found, .expected = expected, .where = path.string()});
  };
  struct stat status {};
  if (::fstat(descriptor, &status) != 0)
    refuse("cannot read its size: " + system_reason(), "a regular file");
  if (!S_ISREG(status.st_mode)) refuse(kind_of(status.st_mode), "a regular file");
  if (status.st_size == 0) refuse("the file is empty", what);
  if (status.st_size > most) {
    refuse("a file of " + std::to_string(status.st_size) + " bytes",
           "at most " + std::to_string(most) + " bytes");
  }
  const std::size_t size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const std::string reason = address == MAP_FAILED ? system_reason() : "";
  ::close(descriptor);
  if (address == MAP_FAILED) {
    throw limited({.found = "cannot map: " + reason,
                   .expected = "room for the file's " + std::to_string(size) + " bytes",
                   .where = path.string(),
                   .hint = {}},
                  "raise the limit of addresses, `ulimit -v`, or the memory that this process may "
                  "use");
  }
  std::shared_ptr<const void> owner(
      address, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return {std::move(owner), {static_cast<const std::uint8_t*>(address), size}};
}

}  // namespace arenite
