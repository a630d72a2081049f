#include "src/cli/doctor/surroundings.hpp"

#include "src/base/cgroup.hpp"
#include "src/cli/doctor/finding.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>

namespace arenite::cli::doctor {
namespace {

struct Limit {
  __rlimit_resource_t resource;
  const char* option;  ///< of ulimit
  rlim_t unit;         ///< bytes that ulimit counts as one
  rlim_t enough;       ///< what is no reason for anything
};

constexpr rlim_t kib = 1024;
constexpr Limit memory_limits[]{{RLIMIT_AS, "-v", kib, RLIM_INFINITY},
                                {RLIMIT_DATA, "-d", kib, RLIM_INFINITY},
                                {RLIMIT_STACK, "-s", kib, 8 * kib* kib}};
// The latter counts all of a user's processes and threads.
constexpr Limit other_limits[]{{RLIMIT_NOFILE, "-n", 1, 256}, {RLIMIT_NPROC, "-u", 1, 4096}};

/// "raise `ulimit -v` (now 50000)", for each limit that is low.
template <class Limits>
void add_low(std::vector<std::string>& ways, const Limits& limits) {
  for (const Limit& limit : limits) {
    rlimit now{};
    if (::getrlimit(limit.resource, &now) != 0 || now.rlim_cur >= limit.enough) continue;
    ways.push_back(
        fmt::format("raise `ulimit {}` (now {})", limit.option, now.rlim_cur / limit.unit));
  }
}

std::vector<std::string> ways_to_memory() {
  std::vector<std::string> ways;
  add_low(ways, memory_limits);
  constexpr std::int64_t enough = std::int64_t{1} << 30;  // many times what checks take
  if (const auto memory = cgroup_limits().memory; memory && *memory < enough) {
    ways.push_back(fmt::format("give the control group more memory (now {})", bytes_text(*memory)));
  }
  return ways;
}

}  // namespace

std::vector<std::string> starpu_settings() {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::string_view(*variable).starts_with("STARPU_")) all.emplace_back(*variable);
  }
  return all;
}

std::string more_memory() {
  const std::vector<std::string> ways = ways_to_memory();
  return ways.empty() ? "end other programs: no limit of this process was found"
                      : fmt::format("{}", fmt::join(ways, ", or "));
}

ErrorText for_a_check(const Error& error) {
  ErrorText text = error.text();
  const bool refused = dynamic_cast<const Failure*>(&error) != nullptr &&
                       text.expected.starts_with("memory for block");
  if (refused) text.hint = more_memory();
  return text;
}

std::string what_to_try() {
  std::vector<std::string> ways = ways_to_memory();
  add_low(ways, other_limits);
  for (const std::string& setting : starpu_settings())
    ways.push_back("unset " + setting.substr(0, setting.find('=')));
  const std::string report = "report it, with what `arenite doctor --json` prints";
  return ways.empty() ? report : fmt::format("{}; else {}", fmt::join(ways, ", or "), report);
}

}  // namespace arenite::cli::doctor
