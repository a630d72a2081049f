#include "src/cli/doctor/checks.hpp"
#include "src/cli/doctor/contained.hpp"

#include "src/base/atomic_file.hpp"
#include "src/cli/output.hpp"

#include <linux/perf_event.h>
#include <spdlog/fmt/fmt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>

namespace arenite::cli::doctor {
namespace {

/// What perf says of itself. Some systems have one that only says what to install.
Finding run_perf() {
  Finding finding;
  std::FILE* pipe = ::popen("exec perf --version 2>&1", "r");
  std::array<char, 256> line{};
  const bool said = pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr;
  if (pipe == nullptr || ::pclose(pipe) != 0 || !said) {
    finding.note("no perf on PATH that runs: no flame graphs",
                 "install it, on Debian the package linux-perf");
  }
  const std::string text = line.data();
  finding.says = text.substr(0, text.find('\n'));
  return finding;
}

/// Empty where this process may count such events of its own, else why not.
std::string refusal(std::uint32_t type, std::uint64_t event) {
  perf_event_attr wanted{};
  wanted.size = sizeof(wanted);
  wanted.type = type;
  wanted.config = event;
  wanted.disabled = 1;
  wanted.exclude_kernel = 1;
  wanted.exclude_hv = 1;
  const long opened = ::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0);
  if (opened < 0) return system_reason();
  ::close(static_cast<int>(opened));
  return {};
}

std::optional<int> paranoia() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  int level = 0;
  if (!(file >> level)) return std::nullopt;
  return level;
}

}  // namespace

Finding check_perf() {
  const Finding version = contained(run_perf, std::chrono::seconds(5));
  const bool runs = version.mark() == Mark::ok;
  Finding finding;
  const std::string samples = refusal(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
  const std::string counters = refusal(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
  const auto level = paranoia();
  finding.says = runs ? version.says : "no perf";
  if (level) finding.details.push_back(fmt::format("kernel.perf_event_paranoid = {}", *level));
  finding.details.push_back(counters.empty()
                                ? "the processor's own counters can be read"
                                : fmt::format("no counters of the processor ({}): samples go by "
                                              "the clock",
                                              counters));
  for (const Problem& problem : version.problems) {
    // Where it does not come to its end, that is another program's affair.
    finding.note(problem.what,
                 problem.mark == Mark::fails ? "see what `perf --version` does" : problem.mend);
  }
  if (!samples.empty()) {
    finding.note(fmt::format("the kernel gives this process no samples: {}", samples),
                 level.value_or(2) > 2
                     ? "sysctl kernel.perf_event_paranoid=1, as root"
                     : "in a container, let it make the system call perf_event_open "
                       "(--cap-add PERFMON)");
  }
  finding.facts = {{"perf", runs ? Json(version.says) : Json()},
                   {"paranoid", or_null(level)},
                   {"samples", samples.empty()},
                   {"hardware_counters", counters.empty()}};
  return finding;
}

}  // namespace arenite::cli::doctor
