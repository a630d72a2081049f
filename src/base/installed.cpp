#include "src/base/installed.hpp"

#include "src/base/shell_word.hpp"

#include <filesystem>
#include <system_error>

namespace arenite {
namespace {

namespace fs = std::filesystem;

constexpr const char* source = "Arenite's source";

/// What an installation has at this place, as seen from the program's folder. Empty where there is
/// none: the program runs from a build, or another program has loaded the library.
fs::path installed(const fs::path& place) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  fs::path path = (folder / place).lexically_normal();
  return !error && fs::exists(path, error) ? path : fs::path();
}

}  // namespace

std::string by_script(const std::string& what, const std::string& script,
                      const std::string& arguments) {
  const std::string behind = arguments.empty() ? "" : " " + arguments;
  const fs::path path = installed(fs::path(ARENITE_FROM_BIN_TO_DATA) / script);
  if (path.empty()) return what + ", in " + source + ": " + script + behind;
  return what + ": " + shell_word(path.string()) + behind;
}

std::string page(const std::string& name) {
  const fs::path path = installed(fs::path(ARENITE_FROM_BIN_TO_DOCS) / name);
  return path.empty() ? name + " in " + source : path.string();
}

std::string place_of_pages() {
  const fs::path readme = installed(fs::path(ARENITE_FROM_BIN_TO_DOCS) / "README.md");
  return readme.empty() ? source : readme.parent_path().string();
}

}  // namespace arenite
