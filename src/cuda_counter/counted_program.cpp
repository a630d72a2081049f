// Calls that are known one by one, for counter_test.py: `counted_program STEPS [build]`. With
// `build` it tries something before its programs are built.
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <thread>
#include <vector>

extern "C" {
int cudaMalloc(void** made, std::size_t bytes);
int cudaMallocAsync(void** made, std::size_t bytes, void* stream);
int cudaMallocPitch(void** made, std::size_t* pitch, std::size_t width, std::size_t height);
int cudaFree(void* at);
int cudaFreeAsync(void* at, void* stream);
int cudaHostRegister(void* at, std::size_t bytes, unsigned flags);
int cudaHostUnregister(void* at);
void* starpu_takes(std::size_t bytes);
}

int main(int argc, char** argv) {
  void *block = nullptr, *rows = nullptr, *none = nullptr;
  std::size_t pitch = 0;
  cudaMalloc(&block, 1000);
  cudaMallocPitch(&rows, &pitch, 100, 3);   // 3 rows of 256 bytes
  cudaMalloc(&none, std::size_t{1} << 40);  // refused: a call, and no bytes
  void* theirs = starpu_takes(64);
  cudaHostRegister(&pitch, sizeof pitch, 0);
  cudaHostUnregister(&pitch);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([steps = argc > 1 ? std::atol(argv[1]) : 0] {
      for (long step = 0; step < steps; ++step) {
        void* made = nullptr;
        cudaMallocAsync(&made, 16, nullptr);
        cudaFreeAsync(made, nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (argc > 2) {
    void* trial = nullptr;
    cudaMalloc(&trial, 5000);
    cudaFree(trial);
    using Built = void (*)();
    if (const auto built =
            reinterpret_cast<Built>(dlsym(RTLD_DEFAULT, "arenite_cuda_programs_are_built")))
      built();
  }
  cudaFree(block);
  cudaFree(nullptr);
  cudaFree(theirs);
  return 0;
}
