#include "src/data/cache.hpp"

#include "src/base/file.hpp"

#include <arenite/data/idx.hpp>
#include <arenite/error.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <system_error>

namespace arenite::data {
namespace {

std::filesystem::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::filesystem::path(value) : std::filesystem::path();
}

std::filesystem::path temporary_cache() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) folder = "/tmp";
  return folder / ("arenite-" + std::to_string(::geteuid()));
}

// Anyone may create names in the temporary folder: use it only if it is ours and closed to others.
bool make_private(const std::filesystem::path& folder) {
  ::mkdir(folder.c_str(), 0700);
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & 022) == 0;
}

bool make_writable(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return !error && ::access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

std::filesystem::path cache_folder() {
  if (auto folder = variable("ARENITE_CACHE"); !folder.empty()) return folder;
  // The XDG specification: a relative path there is to be ignored.
  if (auto folder = variable("XDG_CACHE_HOME"); folder.is_absolute()) return folder / "arenite";
  if (auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / "arenite";
  return temporary_cache();
}

std::filesystem::path writable_cache(const std::filesystem::path& name) {
  const std::filesystem::path first = cache_folder();
  const std::filesystem::path last = temporary_cache();
  if (first != last && make_writable(first / name)) return first / name;
  std::string tried = first.string();
  if (variable("ARENITE_CACHE").empty()) {
    if (make_private(last) && make_writable(last / name)) return last / name;
    if (first != last) tried += " and " + last.string();
  }
  fail({.found = "no folder to keep unpacked files in: " + tried + " cannot be written",
        .expected = "a writable folder",
        .hint = "set ARENITE_CACHE to one, or unpack the .gz files beside themselves"});
}

}  // namespace arenite::data
