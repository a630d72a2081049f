// Streams, events and graphs of GPUs that are not there: each stream is a thread of the host, which
// does what it is given in order, each after a moment. After the first use of a stream nothing here
// allocates, so that a step's heap calls can be counted.
//
// Whatever CUDA would refuse, or forgive on some machines only, ends the process with a line on
// standard error: `refuse`.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace cuda_stand_in {

struct Graph;

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
  enum class Kind : std::uint8_t { nothing, function, copy, fill, hand_on, mark, graph };
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
};

/// Recorded deeds; as an executable one, too. It is performed by turns as it was recorded, and the
/// other way about as far as deeds do not follow each other.
struct Graph {
  int device = 0;
  std::vector<Deed> deeds, turned;
  std::vector<std::vector<std::size_t>> follow;  ///< deeds that each follows
  std::atomic<unsigned> launches{0};

  void turn();
  /// Whoever has waited for these deeds has waited for all.
  bool ends_in(const std::vector<std::size_t>& last) const;
};

class Stream {
 public:
  explicit Stream(int of_device) : device(of_device) {}
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void push(const Deed& deed);
  bool idle();
  void finish();

  const int device;

 private:
  void work();
  static void perform(const Deed& deed);

  static constexpr std::size_t room = 4096;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<std::array<Deed, room>> deeds_;  // from the first push on, as the thread
  std::size_t first_ = 0, count_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace cuda_stand_in
