#include <arenite/error.hpp>
#include <arenite/runtime/session.hpp>

#include "src/runtime/counters.hpp"
#include "src/runtime/idle.hpp"
#include "src/runtime/starpu.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace arenite::runtime {
namespace {

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

/// A number that StarPU's own reading of the environment takes, too.
std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Hides variables from StarPU, and puts them back when it has read the others. StarPU ends the
/// process on one that it cannot read, even where its value would be overruled.
class HiddenVariables {
 public:
  void hide(const char* name) {
    if (const char* text = std::getenv(name)) {
      saved_.emplace_back(name, text);
      unsetenv(name);
    }
  }
  HiddenVariables() = default;
  ~HiddenVariables() {
    for (const auto& [name, text] : saved_) setenv(name.c_str(), text.c_str(), 1);
  }
  HiddenVariables(const HiddenVariables&) = delete;
  HiddenVariables& operator=(const HiddenVariables&) = delete;

 private:
  std::vector<std::pair<std::string, std::string>> saved_;
};

/// "0 2-3,5-": numbers and ranges, the last of which may be open.
bool is_cpu_list(std::string_view text) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find_first_of(" ,"));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    if (item.empty()) continue;
    const std::size_t dash = item.find('-');
    const auto first = whole_number(item.substr(0, dash));
    if (!first || *first < 0) return false;
    if (dash == std::string_view::npos || dash + 1 == item.size()) continue;
    const auto last = whole_number(item.substr(dash + 1));
    if (!last || *last < *first) return false;
  }
  return true;
}

void prepare_environment(HiddenVariables& hidden) {
  // What the session decides itself: how many workers of which kind, and their scheduler.
  for (const char* name :
       {"STARPU_NCPU", "STARPU_NCPUS", "STARPU_NCUDA", "STARPU_NOPENCL", "STARPU_NMIC",
        "STARPU_NMPI_MS", "STARPU_NHIP", "STARPU_NTCPIP_MS", "STARPU_SCHED"})
    hidden.hide(name);
  for (const char* name : {"STARPU_WORKERS_CPUID", "STARPU_WORKERS_COREID"}) {
    const std::string text = environment(name);
    if (text.find_first_not_of(" ,") == std::string::npos) {
      hidden.hide(name);  // StarPU divides by the length of the list
    } else if (!is_cpu_list(text)) {
      fail({.found = std::string(name) + "='" + text + "'",
            .expected = "numbers and ranges of processors, as in '0 2-3'"});
    }
  }
  for (const char* name : {"STARPU_CALIBRATE", "STARPU_BUS_CALIBRATE", "STARPU_RESERVE_NCPU",
                           "STARPU_MAIN_THREAD_BIND", "STARPU_MAIN_THREAD_CPUID",
                           "STARPU_SINGLE_COMBINED_WORKER", "STARPU_SILENT"}) {
    const std::string text = environment(name);
    if (text.empty()) {
      hidden.hide(name);
    } else if (!whole_number(text)) {
      fail({.found = std::string(name) + "='" + text + "'", .expected = "a whole number"});
    }
  }
}

struct Shared {
  std::mutex mutex;
  int users = 0;
  int workers = 0;
};

Shared& shared() {
  static Shared instance;
  return instance;
}

int workers_from_environment() {
  const std::string text = environment("STARPU_NCPU");
  if (text.empty()) return 0;
  const std::optional<int> count = whole_number(text);
  if (!count || *count < 1) {
    fail({.found = "STARPU_NCPU='" + text + "'",
          .expected = "a number of workers of at least 1",
          .hint = "an explicit number of workers (--workers) wins over it"});
  }
  return *count;
}

int wanted_workers(const SessionOptions& options) {
  if (options.workers < 0) {
    fail({.found = std::to_string(options.workers) + " workers",
          .expected = "at least 1, or 0 to choose"});
  }
  int count = options.workers;
  if (count == 0) count = workers_from_environment();
  const bool chosen = count > 0;
  if (!chosen) count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (count > starpu::max_cpu_workers) {
    if (!chosen) return starpu::max_cpu_workers;
    fail({.found = std::to_string(count) + " workers",
          .expected = "at most " + std::to_string(starpu::max_cpu_workers),
          .where = "StarPU " + starpu::version(),
          .hint = "Debian's StarPU is built for few workers; build StarPU 1.4 with a larger "
                  "--enable-maxcpus"});
  }
  return count;
}

/// Momentum of dead weights turns denormal, and denormal arithmetic takes a hundred times as long.
void flush_denormals(void*) {
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
}

void start(int workers) {
  HiddenVariables hidden;
  prepare_environment(hidden);
  // A library does not chat on its user's terminal; whoever wants StarPU's messages says so.
  setenv("STARPU_SILENT", "1", 0);
  starpu_conf conf = starpu::configuration();
  conf.precedence_over_environment_variables = 1;  // the environment was asked above
  conf.ncpus = workers;
  // Work stealing makes no heap call. It starves with more workers than cores, where the central
  // queue of "prio" goes on well, at the price of a rare allocation when a worker falls idle.
  conf.sched_policy_name =
      workers <= static_cast<int>(std::thread::hardware_concurrency()) ? "lws" : "prio";
  const int error = starpu_init(&conf);
  if (error != 0) {
    throw Failure({.found = std::string("StarPU could not start: ") + std::strerror(-error),
                   .expected = std::to_string(workers) + " CPU workers",
                   .where = "StarPU " + starpu::version(),
                   .hint = error == -ENODEV ? "it found no usable worker: is the cpuset empty?"
                                            : "run with STARPU_SILENT=0 to see its messages"});
  }
  const int got = static_cast<int>(starpu_cpu_worker_get_count());
  if (got != workers) {
    starpu_shutdown();
    throw Failure({.found = "StarPU started " + std::to_string(got) + " CPU workers",
                   .expected = std::to_string(workers),
                   .where = "StarPU " + starpu::version(),
                   .hint = "ask for fewer with --workers"});
  }
  starpu_execute_on_each_worker(flush_denormals, nullptr, STARPU_CPU);
  idle_watch().start();
}

}  // namespace

AtomicCounters& atomic_counters() noexcept {
  static AtomicCounters instance;
  return instance;
}

Counters counters() noexcept {
  const AtomicCounters& c = atomic_counters();
  return {.handles = c.handles, .blocks = c.blocks, .pins = c.pins, .tasks = c.tasks};
}

Session::Session(const SessionOptions& options) {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  if (s.users == 0) {
    const int workers = wanted_workers(options);
    start(workers);
    s.workers = workers;
  } else if (options.workers != 0 && options.workers != s.workers) {
    fail({.found = "a second session with " + std::to_string(options.workers) + " workers",
          .expected = std::to_string(s.workers) +
                      ", as in the session that runs (StarPU is one for the process)"});
  }
  ++s.users;
}

Session::~Session() {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  if (--s.users > 0) return;
  idle_watch().stop();
  starpu_shutdown();
}

int Session::workers() const noexcept { return static_cast<int>(starpu_cpu_worker_get_count()); }

std::string Session::description() const {
  return "StarPU " + starpu::version() + ", " + std::to_string(workers()) +
         (workers() == 1 ? " CPU worker" : " CPU workers");
}

}  // namespace arenite::runtime
