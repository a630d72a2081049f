// Streams, events and graphs of GPUs that are not there. After the first use of a stream nothing
// here allocates, so that a step's heap calls can be counted; running kernels' PTX does.
//
// Whatever CUDA would refuse, or forgive on some machines only, ends the process with a line on
// standard error: `refuse`.
#pragma once

#include <cuda_runtime_api.h>

#include "src/runtime/simulated_stream.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuda_stand_in {

struct Graph;
struct Launch;

[[noreturn]] void refuse(const char* what);

/// A point in a stream, of a device.
struct Event {
  int device = 0;
  std::atomic<std::uint64_t> marked{0}, reached{0};
  const Graph* graph = nullptr;       ///< that it was recorded in last
  std::vector<std::size_t> recorded;  ///< the deeds there that it stands behind
};

/// What a stream does, as plain data.
struct Deed {
  enum class Kind : std::uint8_t { nothing, function, copy, fill, hand_on, kernel, mark, graph };
  Kind kind = Kind::nothing;
  void* to = nullptr;
  const void* from = nullptr;
  unsigned long long* told = nullptr;
  std::size_t bytes = 0;
  int value = 0;
  cudaHostFn_t function = nullptr;
  void* data = nullptr;
  Event* event = nullptr;
  std::uint64_t mark = 0;
  Graph* graph = nullptr;
  const Launch* launch = nullptr;
};

/// What was captured; as an executable one, too.
struct Graph {
  int device = 0;
  arenite::runtime::testing::RecordedDeeds<Deed> deeds;
};

void perform(const Deed& deed);
/// Of a kernel's PTX.
void perform(const Launch& launch);

struct Stream {
  explicit Stream(int of_device) : device(of_device) {}

  void push(const Deed& deed);

  const int device;
  arenite::runtime::testing::SimulatedStream<Deed, perform> deeds;
};

}  // namespace cuda_stand_in
