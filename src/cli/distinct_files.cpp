#include "src/cli/distinct_files.hpp"

#include <arenite/error.hpp>

#include "src/base/atomic_file.hpp"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <system_error>

namespace arenite::cli {

namespace fs = std::filesystem;

void refuse_shared_files(const std::vector<NamedFile>& files) {
  struct Seen {
    const NamedFile* file;
    fs::path whole;
  };
  std::vector<Seen> seen;
  for (const NamedFile& file : files) {
    std::error_code error;
    if (file.path.empty() || fs::is_other(file.path, error)) continue;
    fs::path whole = fs::absolute(followed(file.path), error);
    if (!error) whole = fs::weakly_canonical(whole, error);
    if (error) continue;  // who opens it says more of what is wrong
    for (const Seen& other : seen) {
      if (other.whole != whole) continue;
      fail({.found = fmt::format("{} and {} name the same file '{}'", other.file->who, file.who,
                                 file.path),
            .expected = "a file of its own for each"});
    }
    seen.push_back({&file, std::move(whole)});
  }
}

}  // namespace arenite::cli
