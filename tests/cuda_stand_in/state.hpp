// The functions of CUDA's runtime library that programs of ours and StarPU call, on GPUs that are
// threads of the host (streams.hpp): preloaded, they stand before libcudart's. What runs is then
// all of a build with CUDA but its kernels: those do nothing, unless a test gives functions to
// streams in their place (enqueued_loops.hpp); the one that hands status words on does. With
// CUDA_STAND_IN_PTX they run, as their PTX says (tests/ptx), and a GPU's faults end the process;
// with CUDA_STAND_IN_COUNTS, which names a file, what they did is counted and told there, in JSON.
//
// CUDA_STAND_IN_GPUS says how many GPUs there are (2), CUDA_STAND_IN_REPORT names a file for what
// was asked of them, in JSON, when the process ends. After CUDA_STAND_IN_LAUNCHES launches of
// graphs the GPUs fail, as on an illegal address; with CUDA_STAND_IN_AT_ONCE they take no time, and
// what a step takes is the host's; with CUDA_STAND_IN_NO_BRANCHES no stream joins a capture of
// another.
#pragma once

#include "tests/cuda_stand_in/streams.hpp"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace cuda_stand_in {

constexpr std::size_t memory = std::size_t{1} << 30;  ///< of each GPU
constexpr int most_gpus = 8;

/// What a thread captures: streams join by waiting for an event of the capture.
struct Capture {
  Graph* graph = nullptr;
  Stream* origin = nullptr;
  bool broken = false;  ///< nothing more is captured, and the end says so
  std::map<Stream*, std::vector<std::size_t>> behind;  ///< deeds that a stream's next one follows

  bool has(Stream& stream) const { return graph != nullptr && behind.contains(&stream); }
};

/// What CUDA knows of the calling thread.
struct Thread {
  int device = 0;     ///< the current one
  bool used = false;  ///< which is more than the default
  cudaError_t last = cudaSuccess;
  Capture capture;
};
Thread& mine();

struct Allocation {
  std::size_t bytes;
  int device;
};

/// What nvcc made of a source file, and a kernel in it by the name that it has there.
struct Binary;
struct Kernel {
  Binary* binary = nullptr;
  std::string name;
};

struct State {
  std::mutex mutex;
  int gpus = 2;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::map<std::uintptr_t, Allocation> allocations, pinned;
  std::atomic<long> memory_changes{0};
  std::map<const void*, Kernel> kernels;  ///< by the host's stub
  std::set<const void*> loaded;
  std::array<Stream*, most_gpus> legacy{};
  std::array<std::size_t, most_gpus> in_use{};
  std::array<std::atomic<bool>, most_gpus> contexts{};
  std::atomic<long> launches{0}, early_launches{0}, graph_launches{0}, copies{0};
  std::atomic<long> built{0};  ///< graphs launched by the time that programs were built
  long most_launches = -1;     ///< below 0: they never fail

  State();
};
State& state();

/// Notes the thread's last error.
cudaError_t failed(cudaError_t error);
/// The GPUs have failed: calls say so from then on.
bool broken();
cudaError_t outcome();

/// The call makes the current device's context, where there is none yet.
void touch();
/// Of calls that would end a capture, on the thread that captures.
void not_captured(const char* what);

Stream& stream_of(cudaStream_t handle);
Event& event_of(cudaEvent_t handle);
void enqueue(cudaStream_t handle, const Deed& deed);
/// All that the current device's streams hold.
void finish_all();

}  // namespace cuda_stand_in
