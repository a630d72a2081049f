#include "tests/cuda_stand_in/kernel_mistakes.hpp"

#include "src/base/early_launch.hpp"

#include <stdexcept>

namespace cuda_stand_in {
namespace {

constexpr int threads = 64;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

/// A thread for each word, and so many more.
__global__ void number(std::uint32_t* words, const std::uint32_t* from, Mistake mistake) {
  if (mistake != Mistake::begins_too_early) arenite::cuda::wait_for_earlier();
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (mistake == Mistake::leaves_a_barrier && threadIdx.x > 40) return;
  __syncthreads();
  words[mistake == Mistake::writes_the_same ? i % 2 : i] = i + *from;
}

}  // namespace

std::vector<std::uint32_t> run_with(Mistake mistake, std::uint32_t words) {
  std::uint32_t *all = nullptr, on_host = 7;
  const std::size_t bytes = words * sizeof(*all);
  check(cudaMalloc(&all, bytes));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaMemsetAsync(all, 0, bytes, stream));
  const std::uint32_t blocks = words / threads + (mistake == Mistake::writes_beyond ? 1 : 0);
  std::uint32_t* zero = nullptr;
  check(cudaMalloc(&zero, sizeof(*zero)));
  check(cudaMemsetAsync(zero, 0, sizeof(*zero), stream));
  check(arenite::cuda::launch_early(stream, blocks, threads, number, all,
                                    mistake == Mistake::reads_host_memory ? &on_host : zero,
                                    mistake));
  std::vector<std::uint32_t> left(words);
  check(cudaMemcpyAsync(left.data(), all, bytes, cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  check(cudaStreamDestroy(stream));
  check(cudaFree(zero));
  check(cudaFree(all));
  return left;
}

}  // namespace cuda_stand_in
