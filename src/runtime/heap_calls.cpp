#include <arenite/runtime/heap_calls.hpp>

#include <dlfcn.h>

namespace arenite::runtime {
namespace {

/// Of the library in src/heap_counter; null where it is not preloaded.
struct Counters {
  using Read = long (*)();
  Read heap = reinterpret_cast<Read>(dlsym(RTLD_DEFAULT, "arenite_heap_calls"));
  Read maps = reinterpret_cast<Read>(dlsym(RTLD_DEFAULT, "arenite_map_calls"));
  using Tell = void (*)(int);
  Tell steps = reinterpret_cast<Tell>(dlsym(RTLD_DEFAULT, "arenite_heap_steps"));
};

/// All are looked up at once: dlsym frees the message of an earlier error, which would count.
const Counters& counters_found() noexcept {
  static const Counters found;
  return found;
}

}  // namespace

std::optional<long> heap_calls() noexcept {
  const auto read = counters_found().heap;
  return read ? std::optional(read()) : std::nullopt;
}

std::optional<long> map_calls() noexcept {
  const auto read = counters_found().maps;
  return read ? std::optional(read()) : std::nullopt;
}

void count_as_steps(bool under_way) noexcept {
  if (const auto tell = counters_found().steps) tell(under_way ? 1 : 0);
}

}  // namespace arenite::runtime
