#include "src/base/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <system_error>

namespace arenite {
namespace {

/// Empty where the variable is not set.
std::filesystem::path named_by(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? text : "";
}

/// This user's, and closed to others.
bool is_private(const std::filesystem::path& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & 022) == 0;
}

}  // namespace

std::filesystem::path temporary_folder() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) folder = "/tmp";
  return folder / ("arenite-" + std::to_string(::geteuid()));
}

bool make_temporary_folder() {
  const std::filesystem::path folder = temporary_folder();
  ::mkdir(folder.c_str(), 0700);
  return is_private(folder);
}

bool make_writable(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return !error && ::access(folder.c_str(), W_OK | X_OK) == 0;
}

bool cache_is_named() { return !named_by("ARENITE_CACHE").empty(); }

std::filesystem::path cache_folder() {
  if (cache_is_named()) return named_by("ARENITE_CACHE");
  // The XDG specification: a relative path there is to be ignored.
  if (const auto folder = named_by("XDG_CACHE_HOME"); folder.is_absolute())
    return folder / "arenite";
  if (const auto home = named_by("HOME"); home.is_absolute()) return home / ".cache" / "arenite";
  return temporary_folder();
}

std::optional<std::filesystem::path> own_cache(const std::filesystem::path& name) {
  const std::filesystem::path folder = cache_folder();
  if (!cache_is_named() && folder == temporary_folder() && !is_private(folder)) return std::nullopt;
  return folder / name;
}

std::optional<std::filesystem::path> writable_cache(const std::filesystem::path& name) {
  const std::filesystem::path first = cache_folder(), last = temporary_folder();
  if ((cache_is_named() || first != last) && make_writable(first / name)) return first / name;
  if (!cache_is_named() && make_temporary_folder() && make_writable(last / name))
    return last / name;
  return std::nullopt;
}

}  // namespace arenite
