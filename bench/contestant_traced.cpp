#include "bench/contestant.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace arenite::bench {
namespace {

Json nobody_knows(const std::string& why) { return {{"error", why}}; }

}  // namespace

Json traced(Contestant& contestant, double seconds) {
  const char* path = std::getenv("ARENITE_KERNEL_TRACE");
  if (!path || !*path) return nobody_knows("no library in $ARENITE_KERNEL_TRACE");
  void* library = dlopen(path, RTLD_NOW);
  if (!library) return nobody_knows(dlerror());
  const auto start = reinterpret_cast<int (*)()>(dlsym(library, "arenite_kernel_trace_start"));
  const auto stop =
      reinterpret_cast<int (*)(double*, long*)>(dlsym(library, "arenite_kernel_trace_stop"));
  if (!start || !stop) return nobody_knows(std::string(path) + " traces no kernels");
  if (const int error = start(); error != 0)
    return nobody_knows("CUPTI refused: " + std::to_string(error));
  const Turn turn = contestant.run(seconds);
  double busy = 0;
  long kernels = 0;
  if (const int error = stop(&busy, &kernels); error != 0)
    return nobody_knows("CUPTI lost records: " + std::to_string(error));
  return {{"samples", turn.samples},
          {"seconds", turn.seconds},
          {"busy_seconds", busy},
          {"kernels", kernels}};
}

}  // namespace arenite::bench
