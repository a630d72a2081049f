// Allocates as StarPU would: counter_test's library of that name.
#include <cstddef>

extern "C" int cudaMalloc(void** made, std::size_t bytes);

extern "C" void* starpu_takes(std::size_t bytes) {
  void* made = nullptr;
  cudaMalloc(&made, bytes);
  return made;
}
