#include "src/data/cache.hpp"

#include "src/base/private_folder.hpp"

#include <arenite/data/idx.hpp>
#include <arenite/error.hpp>

#include <cstdlib>
#include <string>

namespace arenite::data {
namespace {

std::filesystem::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::filesystem::path(value) : std::filesystem::path();
}

}  // namespace

std::filesystem::path cache_folder() {
  if (auto folder = variable("ARENITE_CACHE"); !folder.empty()) return folder;
  // The XDG specification: a relative path there is to be ignored.
  if (auto folder = variable("XDG_CACHE_HOME"); folder.is_absolute()) return folder / "arenite";
  if (auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / "arenite";
  return temporary_folder();
}

std::filesystem::path writable_cache(const std::filesystem::path& name) {
  const std::filesystem::path first = cache_folder();
  const std::filesystem::path last = temporary_folder();
  if (first != last && make_writable(first / name)) return first / name;
  std::string tried = first.string();
  if (variable("ARENITE_CACHE").empty()) {
    if (make_temporary_folder() && make_writable(last / name)) return last / name;
    if (first != last) tried += " and " + last.string();
  }
  fail({.found = "no folder to keep unpacked files in: " + tried + " cannot be written",
        .expected = "a writable folder",
        .hint = "set ARENITE_CACHE to one, or unpack the .gz files beside themselves"});
}

}  // namespace arenite::data
