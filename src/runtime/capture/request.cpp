#include <arenite/error.hpp>

#include "src/base/atomic_file.hpp"
#include "src/runtime/capture/capture.hpp"
#include "src/runtime/environment.hpp"

namespace arenite::runtime {
namespace {

constexpr long most_steps = 1000;

/// Before any work, so that a wrong path costs none. What is there stays.
void check_path(const char* variable, const std::string& path) {
  if (!path.empty()) AtomicFile::check(path, std::string(variable) + "='" + path + "'");
}

}  // namespace

std::optional<CaptureRequest> capture_request() {
  CaptureRequest request{.trace = environment("ARENITE_TRACE"),
                         .memory = environment("ARENITE_MEMORY")};
  if (request.trace.empty() && request.memory.empty()) return std::nullopt;
  if (const std::string text = environment("ARENITE_TRACE_STEPS"); !text.empty()) {
    const std::optional<int> steps = whole_number(text);
    if (!steps || *steps < 1 || *steps > most_steps) {
      fail({.found = "ARENITE_TRACE_STEPS='" + text + "'",
            .expected = "a whole number of 1 to " + std::to_string(most_steps),
            .hint = "it is how many of each program's last steps are recorded"});
    }
    request.steps = *steps;
  }
  if (request.trace == request.memory) {
    fail({.found = "ARENITE_TRACE and ARENITE_MEMORY name the same file '" + request.trace + "'",
          .expected = "a file of its own for each"});
  }
  check_path("ARENITE_TRACE", request.trace);
  check_path("ARENITE_MEMORY", request.memory);
  return request;
}

}  // namespace arenite::runtime
