#include <arenite/error.hpp>
#include <arenite/runtime/session.hpp>

#include "src/base/limits.hpp"
#include "src/base/processors.hpp"
#include "src/base/refuse.hpp"
#include "src/base/stack.hpp"
#include "src/base/words.hpp"
#include "src/runtime/counters.hpp"
#include "src/runtime/device.hpp"
#include "src/runtime/device_choice.hpp"
#include "src/runtime/environment.hpp"
#include "src/runtime/forked.hpp"
#include "src/runtime/idle.hpp"
#include "src/runtime/measurements.hpp"
#include "src/runtime/starpu.hpp"
#include "src/runtime/worker_processors.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace arenite::runtime {
namespace {

struct Shared {
  std::mutex mutex;
  int users = 0;
  int workers = 0;
  std::vector<int> chosen;  // devices, in order
  std::int64_t memory = 0;  // of each GPU, as it was asked for
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<Space> spaces;
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
    refuse("STARPU_NCPU='" + text + "'", "a number of workers of at least 1", {},
           "an explicit number of workers (--workers) wins over it");
  }
  return *count;
}

/// Each GPU's worker wants a core of its own. Where all work is the GPUs', CPU workers only gather
/// the next batch: more would spin, and take time from the launchers.
int wanted_workers(const SessionOptions& options, int gpus, bool on_cpu) {
  constexpr int enough_beside_gpus = 2;
  if (options.workers < 0) {
    refuse(std::to_string(options.workers) + " workers", "at least 1, or 0 to choose");
  }
  int count = options.workers;
  if (count == 0) count = workers_from_environment();
  const bool chosen = count > 0;
  if (!chosen) {
    count = std::max(1, usable_processors() - gpus);
    if (!on_cpu) count = std::min(count, enough_beside_gpus);
  }
  if (count > starpu::max_cpu_workers) {
    if (!chosen) return starpu::max_cpu_workers;
    refuse(std::to_string(count) + " workers", "at most " + std::to_string(starpu::max_cpu_workers),
           "StarPU " + starpu::version(),
           "Debian 12's StarPU is built for few workers; build one for 64, in Arenite's source: "
           "scripts/build-starpu");
  }
  return count;
}

/// Momentum of dead weights turns denormal, and denormal arithmetic takes a hundred times as long.
void flush_denormals(void*) {
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
}

void start_starpu(int workers, const std::vector<int>& gpus) {
  LentVariables lent;
  prepare_environment(lent, !gpus.empty());
  std::vector<unsigned> processors;
  if (!processors_are_chosen()) processors = worker_processors();
  if (!processors.empty() && starpu::numbers_allowed_only) lent.set("STARPU_WORKERS_GETBIND", "0");
  starpu_conf conf = starpu::configuration(workers, gpus, processors);
  // Work stealing makes no heap call. It starves with more workers than cores, where the central
  // queue of "prio" goes on well, at the price of a rare allocation when a worker falls idle.
  const int threads = workers + static_cast<int>(gpus.size());
  conf.sched_policy_name = threads <= usable_processors() ? "lws" : "prio";
  // Kernels and StarPU's own code run in them.
  constexpr std::size_t stack_of_a_worker = std::size_t{1} << 20;
  const RoomyThreads roomy(stack_of_a_worker);
  // Besides workers there is one thread of StarPU's own, and the watch over idle ones.
  constexpr std::size_t bytes_of_starpu = std::size_t{24} << 20;
  expect_threads(static_cast<std::size_t>(threads) + 2, bytes_of_starpu, "StarPU and its workers");
  const int error = [&] {
    const MeasurementsLock lock(environment("STARPU_PERF_MODEL_DIR"));
    return starpu_init(&conf);
  }();
  if (error != 0) {
    throw Failure({.found = std::string("StarPU could not start: ") + std::strerror(-error),
                   .expected = std::to_string(workers) + " CPU workers",
                   .where = "StarPU " + starpu::version(),
                   .hint = error == -ENODEV ? "it found no usable worker: is the cpuset empty?"
                                            : "run with STARPU_SILENT=0 to see its messages"});
  }
  const auto expect = [](unsigned got, std::size_t wanted, const char* kind) {
    if (got == wanted) return;
    starpu_shutdown();
    throw Failure({.found = "StarPU started " + std::to_string(got) + " " + kind + " workers",
                   .expected = std::to_string(wanted),
                   .where = "StarPU " + starpu::version(),
                   .hint = "ask for fewer with --workers or --device"});
  };
  expect(starpu_cpu_worker_get_count(), static_cast<std::size_t>(workers), "CPU");
  expect(starpu_cuda_worker_get_count(), gpus.size(), "CUDA");
  const std::string shared = shared_processors(
      processors.empty() ? static_cast<std::size_t>(allowed_processors()) : processors.size());
  static std::atomic<bool> told{false};
  if (!shared.empty() && !told.exchange(true)) std::cerr << "arenite: " << shared << '\n';
}

/// The device's StarPU worker: its own, or one of the last CPU workers.
int worker_of(int gpu, int number, int workers, bool own) {
  if (!own) return starpu_worker_get_by_type(STARPU_CPU_WORKER, workers + number);
  for (int i = 0;; ++i) {
    const int worker = starpu_worker_get_by_type(STARPU_CUDA_WORKER, i);
    if (worker < 0 || starpu_worker_get_devid(worker) == gpu) return worker;
  }
}

std::vector<int> devices_of(const std::string& text) {
  if (text == "cpu") return {the_cpu};  // and ask no driver
  return parse_devices(text, device_driver().support());
}

std::string names(const std::vector<int>& devices) {
  std::string all;
  for (const int device : devices) {
    all += all.empty() ? "" : "+";
    all += device == the_cpu ? "cpu" : "cuda:" + std::to_string(device);
  }
  return all;
}

/// All of it, or nothing.
void start(Shared& s, int workers, const std::vector<int>& chosen, std::int64_t memory) {
  DeviceDriver& driver = device_driver();
  const CudaSupport support = chosen == std::vector{the_cpu} ? CudaSupport{} : driver.support();
  std::vector<int> gpus;
  std::ranges::copy_if(chosen, std::back_inserter(gpus),
                       [](int index) { return index != the_cpu; });
  const bool own = driver.has_cuda_workers();
  for (const int gpu : gpus) {
    if (!own || gpu < starpu::max_gpus) continue;
    refuse("GPU " + std::to_string(gpu), "an index below " + std::to_string(starpu::max_gpus),
           "StarPU " + starpu::version(),
           "let CUDA_VISIBLE_DEVICES name the GPUs to use, which are counted from 0 then");
  }
  start_starpu(own ? workers : workers + static_cast<int>(gpus.size()),
               own ? gpus : std::vector<int>{});
  try {
    for (const int index : chosen) {
      if (index == the_cpu) {
        s.spaces.emplace_back();
        continue;
      }
      const int worker = worker_of(index, static_cast<int>(s.devices.size()), workers, own);
      const auto device = std::ranges::find(support.devices, index, &CudaDevice::index);
      s.devices.push_back(driver.open(*device, worker, memory));
      s.spaces.push_back(s.devices.back()->space());
    }
    starpu_execute_on_each_worker(flush_denormals, nullptr, STARPU_CPU);
    idle_watch().start();
    mark_forks(true);
  } catch (...) {
    s.devices.clear();
    s.spaces.clear();
    starpu_shutdown();
    throw;
  }
  s.workers = workers;
  s.chosen = chosen;
  s.memory = memory;
}

std::atomic<DeviceDriver*>& chosen_driver() noexcept {
  static std::atomic<DeviceDriver*> driver{nullptr};
  return driver;
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

int cpu_workers() { return wanted_workers({.device = {}}, 0, true); }

Session::Session(const SessionOptions& options) {
  refuse_forked();
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  if (options.device_memory < 0) {
    refuse(std::to_string(options.device_memory) + " bytes of each GPU",
           "at least 1, or 0 for nearly all of it");
  }
  if (s.users == 0) {
    const std::vector<int> chosen = devices_of(options.device.empty() ? "cpu" : options.device);
    const auto gpus = chosen.size() - static_cast<std::size_t>(std::ranges::count(chosen, the_cpu));
    const bool on_cpu = std::ranges::find(chosen, the_cpu) != chosen.end();
    start(s, wanted_workers(options, static_cast<int>(gpus), on_cpu), chosen,
          options.device_memory);
  } else if (options.device_memory != 0 && options.device_memory != s.memory) {
    refuse("a second session with " + std::to_string(options.device_memory) + " bytes of each GPU",
           std::to_string(s.memory) + ", as in the session that runs");
  } else if (!options.device.empty() && devices_of(options.device) != s.chosen) {
    refuse(
        "a second session on device '" + options.device + "'",
        "'" + names(s.chosen) + "', as in the session that runs (StarPU is one for the process)");
  } else if (options.workers != 0 && options.workers != s.workers) {
    refuse("a second session with " + std::to_string(options.workers) + " workers",
           std::to_string(s.workers) +
               ", as in the session that runs (StarPU is one for the process)");
  }
  ++s.users;
}

Session::~Session() {
  if (is_forked()) return;  // it is the other process's
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  if (--s.users > 0) return;
  mark_forks(false);
  idle_watch().stop();
  s.spaces.clear();
  s.devices.clear();
  starpu_shutdown();
}

int Session::workers() const noexcept { return shared().workers; }
const std::vector<Space>& Session::spaces() const noexcept { return shared().spaces; }

std::string Session::description() const {
  std::string text = "StarPU " + starpu::version() + ", " + counted(workers(), "CPU worker");
  for (const auto& device : shared().devices) text += ", " + device->description();
  return text;
}

DeviceDriver& device_driver() {
  DeviceDriver* const driver = chosen_driver().load();
  return driver != nullptr ? *driver : cuda_driver();
}

void set_device_driver(DeviceDriver* driver) noexcept { chosen_driver() = driver; }

CudaSupport cuda_support() { return device_driver().support(); }

Device& device_of(const Space& space) {
  for (const auto& device : shared().devices) {
    if (device->space().device == space.device && device->space().index == space.index)
      return *device;
  }
  refuse("memory of " + to_string(space),
         "that of a device of the session that runs ('" + names(shared().chosen) + "')", {},
         "start the session with that device (--device)");
}

std::vector<Device*> session_devices() {
  std::vector<Device*> all;
  for (const auto& device : shared().devices) all.push_back(device.get());
  return all;
}

}  // namespace arenite::runtime
