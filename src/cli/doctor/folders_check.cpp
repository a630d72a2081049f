#include "src/cli/doctor/checks.hpp"

#include <arenite/error.hpp>

#include "src/base/private_folder.hpp"
#include "src/data/gzip.hpp"
#include "src/runtime/environment.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <functional>

namespace arenite::cli::doctor {
namespace {

namespace fs = std::filesystem;

constexpr const char* cache = "cache";

/// Where StarPU would be told to keep what it measures.
fs::path measurements() {
  runtime::LentVariables lent;
  runtime::prepare_environment(lent);
  return runtime::environment("STARPU_PERF_MODEL_DIR");
}

bool is_below(const fs::path& file, const fs::path& folder) {
  return std::ranges::mismatch(folder, file).in1 == folder.end();
}

void look_at(Finding& finding, const char* fact, const std::string& what,
             const std::function<fs::path()>& find) {
  try {
    const fs::path folder = find();
    std::error_code error;
    const fs::space_info space = fs::space(folder, error);
    finding.details.push_back(
        fmt::format("{}: {}{}", what, folder.string(),
                    error ? "" : ", " + bytes_text(space.available) + " free"));
    finding.facts[fact] = folder.string();
    if (is_below(folder, temporary_folder())) {
      finding.note(what + " are kept in the temporary folder, for want of a home that takes them",
                   fmt::format("set HOME, or {}, to a folder that stays",
                               fact == cache ? "ARENITE_CACHE" : "STARPU_PERF_MODEL_DIR"));
    }
  } catch (const Error& error) {
    finding.facts[fact] = nullptr;
    finding.fails(error.text());
  }
}

}  // namespace

Finding check_folders() {
  Finding finding;
  look_at(finding, cache, "unpacked data", [] {
    const fs::path inner = "unpacked";
    return data::writable_cache(inner).parent_path();
  });
  look_at(finding, "measurements", "StarPU's measurements", measurements);
  finding.says = finding.mark() == Mark::fails ? "not as needed" : "can be written";
  return finding;
}

}  // namespace arenite::cli::doctor
