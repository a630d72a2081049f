// Some of libcudart's functions on the host's memory, for counter_test on machines without CUDA.
#include <cstddef>
#include <cstdlib>

namespace {

/// No function here calls another that could be counted: libcudart's do not, either.
int take(void** made, std::size_t bytes) {
  *made = bytes > 1 << 30 ? nullptr : std::malloc(bytes);
  return *made ? 0 : 2;
}
int give_back(void* at) {
  std::free(at);
  return 0;
}

}  // namespace

extern "C" {
int cudaMalloc(void** made, std::size_t bytes) { return take(made, bytes); }
int cudaMallocAsync(void** made, std::size_t bytes, void* /*stream*/) { return take(made, bytes); }
int cudaMallocPitch(void** made, std::size_t* pitch, std::size_t width, std::size_t height) {
  *pitch = (width + 255) / 256 * 256;
  return take(made, *pitch * height);
}
int cudaFree(void* at) { return give_back(at); }
int cudaFreeAsync(void* at, void* /*stream*/) { return give_back(at); }
int cudaHostRegister(void* /*at*/, std::size_t /*bytes*/, unsigned /*flags*/) { return 0; }
int cudaHostUnregister(void* /*at*/) { return 0; }
}
