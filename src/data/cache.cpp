#include "src/data/cache.hpp"

#include "src/base/private_folder.hpp"
#include "src/runtime/environment.hpp"

#include <arenite/data/idx.hpp>
#include <arenite/error.hpp>

#include <string>

namespace arenite::data {

namespace fs = std::filesystem;
using runtime::environment;

fs::path cache_folder() {
  if (fs::path folder = environment("ARENITE_CACHE"); !folder.empty()) return folder;
  // The XDG specification: a relative path there is to be ignored.
  if (const fs::path folder = environment("XDG_CACHE_HOME"); folder.is_absolute())
    return folder / "arenite";
  if (const fs::path home = environment("HOME"); home.is_absolute())
    return home / ".cache" / "arenite";
  return temporary_folder();
}

fs::path writable_cache(const fs::path& name) {
  const fs::path first = cache_folder();
  const fs::path last = temporary_folder();
  if (first != last && make_writable(first / name)) return first / name;
  std::string tried = first.string();
  if (environment("ARENITE_CACHE").empty()) {
    if (make_temporary_folder() && make_writable(last / name)) return last / name;
    if (first != last) tried += " and " + last.string();
  }
  fail({.found = "no folder to keep unpacked files in: " + tried + " cannot be written",
        .expected = "a writable folder",
        .hint = "set ARENITE_CACHE to one, or unpack the .gz files beside themselves"});
}

}  // namespace arenite::data
