#include "src/cli/output.hpp"

#include <arenite/error.hpp>

#include "src/base/atomic_file.hpp"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>

namespace arenite::cli {

namespace fs = std::filesystem;

std::string line_of(const Json& json) { return json.dump({.replace = true}) + "\n"; }

void flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush()) return;
  throw Failure({.found = "the output could not be written: " + system_reason(),
                 .expected = "a standard output that takes it"});
}

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
