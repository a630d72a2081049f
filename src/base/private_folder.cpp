#include "src/base/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <system_error>

namespace arenite {

std::filesystem::path temporary_folder() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) folder = "/tmp";
  return folder / ("arenite-" + std::to_string(::geteuid()));
}

bool make_temporary_folder() {
  const std::filesystem::path folder = temporary_folder();
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

}  // namespace arenite
