#include "src/cli/process_age.hpp"

#include "src/base/process_start.hpp"

namespace arenite::cli {

namespace {

/// When this program's own code began, its libraries loaded.
const double loaded = since_boot();

/// Longer than any loading: before that the process was another program, a script that built this
/// one and then became it (exec).
constexpr double most_loading = 1;

}  // namespace

std::optional<double> process_age() {
  const std::optional<double> started = process_start();
  if (!started) return std::nullopt;
  return since_boot() - (loaded - *started > most_loading ? loaded : *started);
}

}  // namespace arenite::cli
