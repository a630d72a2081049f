// Opened while counter_test runs, as plugins are.
#include <cstdlib>

extern "C" void allocate_three_times() {
  for (std::size_t bytes = 8; bytes < 100'000; bytes *= 100) {
    void* volatile p = std::malloc(bytes);
    std::free(p);
  }
}
