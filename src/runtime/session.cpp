#include <arenite/error.hpp>
#include <arenite/runtime/session.hpp>

#include "src/runtime/counters.hpp"
#include "src/runtime/environment.hpp"
#include "src/runtime/idle.hpp"
#include "src/runtime/starpu.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace arenite::runtime {
namespace {

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
          .hint =
              "Debian 12's StarPU is built for few workers; scripts/build-starpu builds one for "
              "64"});
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
  LentVariables lent;
  prepare_environment(lent);
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
