#include "src/runtime/cuda/device.hpp"

#include <arenite/error.hpp>

#include <cuda.h>
#include <cuda_runtime.h>
#include <starpu.h>

#include "src/base/early_launch.hpp"
#include "src/runtime/environment.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <new>

namespace arenite::runtime {
namespace {

void check(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // not to be found by whoever asks next
  throw Failure({.found = std::string("CUDA: ") + cudaGetErrorString(error), .expected = what});
}

/// The thread has used a device: its current one is more than the default.
bool uses_device() {
  static const auto current = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    constexpr unsigned since = 4000;
    cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &found, since, cudaEnableDefault, &result);
    return reinterpret_cast<CUresult (*)(CUcontext*)>(found);
  }();
  CUcontext context = nullptr;
  return current != nullptr && current(&context) == CUDA_SUCCESS && context != nullptr;
}

/// Whichever device the thread used before, it has again behind. One that it only could have used
/// is left alone: making it current takes memory there.
class Current {
 public:
  explicit Current(int index) : Current(index, std::nothrow) {
    check(error_, "GPU " + std::to_string(index));
  }
  /// For what is let go of, which needs the right device, and must not fail.
  Current(int index, std::nothrow_t) noexcept : used_(uses_device()) {
    error_ = cudaGetDevice(&before_);
    if (error_ == cudaSuccess) error_ = cudaSetDevice(index);
  }
  ~Current() {
    if (used_) cudaSetDevice(before_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  bool used_;
  int before_ = 0;
  cudaError_t error_ = cudaSuccess;
};

/// Of the current device.
class CudaEvent final : public Device::Event {
 public:
  explicit CudaEvent(int index) : index_(index) {
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  }
  ~CudaEvent() override {
    const Current current(index_, std::nothrow);
    cudaEventDestroy(event);
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  cudaEvent_t event = nullptr;

 private:
  int index_;
};

/// Of the current device.
class CudaWork final : public Device::Work {
 public:
  CudaWork(int index, cudaGraph_t graph) : index_(index) {
    const cudaError_t error =
        cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority);
    cudaGraphDestroy(graph);
    check(error, "a CUDA graph of a task");
  }
  ~CudaWork() override {
    const Current current(index_, std::nothrow);
    cudaGraphExecDestroy(executable);
  }
  CudaWork(const CudaWork&) = delete;
  CudaWork& operator=(const CudaWork&) = delete;

  cudaGraphExec_t executable = nullptr;

 private:
  int index_;
};

/// The current device's streams, which sessions leave to the next one: handles of libraries
/// remember the last one that they were given, and must not remember one that is gone.
struct Streams {
  std::array<cudaStream_t, Device::queue_count> steps{};
  cudaStream_t building = nullptr;  ///< captures, and copies between steps
  std::array<cudaStream_t, Device::most_branches - 1> branches{};  ///< of captures

  static Streams& of(int index) {
    static std::mutex mutex;
    static std::map<int, Streams> all;
    const std::lock_guard alone(mutex);
    const auto known = all.find(index);
    if (known != all.end()) return known->second;
    Streams made;
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
    const auto make = [&](cudaStream_t& stream) {
      check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), "a stream");
    };
    for (cudaStream_t& stream : made.steps) make(stream);
    // Kernels of a recording have the priority of the stream that they were captured in.
    make(made.building);
    for (cudaStream_t& stream : made.branches) make(stream);
    return all.emplace(index, made).first->second;
  }
};

__global__ void hand_on_word(const unsigned long long* from, unsigned long long* into,
                             unsigned long long* told) {
  cuda::wait_for_earlier();
  const unsigned long long word = *from;
  if (word != 0 && *into == 0) *into = word;
  if (told != nullptr) *told = word;
}

unsigned long long* word_of(StatusWord* word) {
  static_assert(sizeof(unsigned long long) == sizeof(StatusWord));
  return reinterpret_cast<unsigned long long*>(word);
}

/// Where the errors of a thread that records go: they are none of the steps'.
thread_local cudaError_t* recording_error = nullptr;

cudaStream_t as_cuda(Device::Stream stream) { return static_cast<cudaStream_t>(stream); }

class GpuDevice final : public Device {
 public:
  GpuDevice(const CudaDevice& device, int worker, std::int64_t capacity)
      : index_(device.index), worker_(worker), name_(device.name) {
    const Current current(index_);
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "free memory of GPU " + std::to_string(index_));
    // Of the whole memory: what is free at the moment would make another plan each time.
    const auto most = static_cast<std::int64_t>(total - total / reserve);
    space_ = {.device = DeviceKind::cuda,
              .index = index_,
              .memory = MemoryKind::device,
              .capacity = capacity > 0 ? std::min(capacity, most) : most};
    streams_ = Streams::of(index_);
    cuda::early_launches_wanted() = switched_on(
        "ARENITE_EARLY_LAUNCHES", "off to begin each kernel when the one before it has ended");
  }
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  const Space& space() const noexcept override { return space_; }
  std::string description() const override { return name_; }
  int worker() const noexcept override { return worker_; }
  bool has_cuda_worker() const noexcept override { return true; }

  std::byte* allocate(std::int64_t bytes) override {
    const Current current(index_);
    const std::lock_guard alone(building_mutex_);
    void* made = nullptr;
    const auto size = static_cast<std::size_t>(bytes);
    const std::string what = std::to_string(bytes) + " bytes of GPU " + std::to_string(index_);
    check(cudaMalloc(&made, size), what);
    cudaError_t error = cudaMemsetAsync(made, 0, size, streams_.building);
    if (error == cudaSuccess) error = cudaStreamSynchronize(streams_.building);
    if (error != cudaSuccess) cudaFree(made);
    check(error, what);
    sizes_[static_cast<std::byte*>(made)] = bytes;
    in_use_ += bytes;
    return static_cast<std::byte*>(made);
  }
  void release(std::byte* bytes) noexcept override {
    const Current current(index_, std::nothrow);
    const std::lock_guard alone(building_mutex_);
    const auto known = sizes_.find(bytes);
    in_use_ -= known->second;
    sizes_.erase(known);
    cudaFree(bytes);
  }
  std::int64_t in_use() const noexcept override { return in_use_; }

  void write(void* there, const void* here, std::size_t bytes) override {
    copy(there, here, bytes, cudaMemcpyHostToDevice);
  }
  void clear(void* there, std::size_t bytes) override {
    const Current current(index_);
    const std::lock_guard alone(building_mutex_);
    const std::string what = std::to_string(bytes) + " bytes cleared";
    check(cudaMemsetAsync(there, 0, bytes, streams_.building), what);
    check(cudaStreamSynchronize(streams_.building), what);
  }
  void read(void* here, const void* there, std::size_t bytes) override {
    copy(here, there, bytes, cudaMemcpyDeviceToHost);
  }

  std::unique_ptr<Event> make_event() override {
    const Current current(index_);
    return std::make_unique<CudaEvent>(index_);
  }
  void* address_there(void* here) override {
    const Current current(index_);
    void* there = nullptr;
    check(cudaHostGetDevicePointer(&there, here, 0), "host memory that CUDA has pinned");
    return there;
  }

  void try_out(const std::function<void(Stream)>& enqueue) override {
    const Current current(index_);
    const std::lock_guard alone(building_mutex_);
    cudaError_t error = cudaSuccess;
    recording_error = &error;
    enqueue(streams_.building);
    recording_error = nullptr;
    const cudaError_t end = cudaStreamSynchronize(streams_.building);
    note(end);  // such a device is of no more use
    check(error == cudaSuccess ? end : error, "a task that the GPU can do");
  }

  std::unique_ptr<Work> record(const std::function<void(Stream)>& enqueue) override {
    const Current current(index_);
    const std::lock_guard alone(building_mutex_);
    const std::string what = "a task that CUDA can record";
    // Of this thread's calls alone: others may go on allocating and waiting.
    check(cudaStreamBeginCapture(streams_.building, cudaStreamCaptureModeThreadLocal), what);
    cudaError_t error = cudaSuccess;
    recording_error = &error;
    enqueue(streams_.building);
    recording_error = nullptr;
    cudaGraph_t graph = nullptr;
    const cudaError_t end = cudaStreamEndCapture(streams_.building, &graph);
    if (error == cudaSuccess) error = end;  // which only follows from the first
    if (error != cudaSuccess && graph != nullptr) cudaGraphDestroy(graph);
    check(error, what);
    auto work = std::make_unique<CudaWork>(index_, graph);
    // Now, for the first launch would do it.
    check(cudaGraphUpload(work->executable, streams_.building), what);
    check(cudaStreamSynchronize(streams_.building), what);
    return work;
  }

  double seconds(const Work& work) override {
    const Current current(index_);
    const std::lock_guard alone(building_mutex_);
    constexpr double enough = 2e-3;
    constexpr int most = 12;
    const auto run = [&](int count) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < count; ++i)
        check(cudaGraphLaunch(static_cast<const CudaWork&>(work).executable, streams_.building),
              "a recording that can be launched");
      check(cudaStreamSynchronize(streams_.building), "a recording that the GPU can do");
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      return passed.count();
    };
    const double first = run(1);
    const int times = std::clamp(static_cast<int>(enough / first), 1, most);
    return run(times) / times;
  }

  Stream branch(std::size_t number) noexcept override { return streams_.branches[number - 1]; }
  void follow(Stream stream, const Event& event) noexcept override {
    note(cudaStreamWaitEvent(as_cuda(stream), static_cast<const CudaEvent&>(event).event, 0));
  }

  void make_current() override { check(cudaSetDevice(index_), "GPU " + std::to_string(index_)); }

  Stream stream(Queue queue) noexcept override {
    return streams_.steps[static_cast<std::size_t>(queue)];
  }
  Stream task_stream() noexcept override { return starpu_cuda_get_local_stream(); }

  void call(KernelFunction run, const KernelCall& call) noexcept override {
    static_cast<void>(cudaGetLastError());  // of others on this thread
    run(call);
    note(cudaGetLastError());
  }
  void fill(void* there, std::byte value, std::size_t bytes, Stream stream) noexcept override {
    note(cudaMemsetAsync(there, std::to_integer<int>(value), bytes, as_cuda(stream)));
  }
  void hand_on(const StatusWord* from, StatusWord* into, StatusWord* told,
               Stream stream) noexcept override {
    note(cuda::launch_early(as_cuda(stream), 1, 1, hand_on_word,
                            reinterpret_cast<const unsigned long long*>(from), word_of(into),
                            word_of(told)));
  }
  void launch(const Work& work, Stream stream) noexcept override {
    note(cudaGraphLaunch(static_cast<const CudaWork&>(work).executable, as_cuda(stream)));
  }
  void mark(Event& event, Stream stream) noexcept override {
    note(cudaEventRecord(static_cast<CudaEvent&>(event).event, as_cuda(stream)));
  }
  bool reached(const Event& event) noexcept override {
    const cudaError_t error = cudaEventQuery(static_cast<const CudaEvent&>(event).event);
    if (error == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());  // it is no error that a launch should find
      return failed_.load(std::memory_order_relaxed) != 0;
    }
    note(error);
    return true;
  }
  void finish(Stream stream) noexcept override {
    const Current current(index_, std::nothrow);
    note(cudaStreamSynchronize(as_cuda(stream)));
  }

  bool failed() const noexcept override { return failed_.load() != 0; }
  std::string failure() const override {
    const int error = failed_.load();
    return error == 0 ? std::string()
                      : "GPU " + std::to_string(index_) + ": " +
                            cudaGetErrorString(static_cast<cudaError_t>(error));
  }

 private:
  void copy(void* into, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    const Current current(index_);
    const std::lock_guard alone(building_mutex_);
    const std::string what = std::to_string(bytes) + " bytes copied";
    check(cudaMemcpyAsync(into, from, bytes, kind, streams_.building), what);
    check(cudaStreamSynchronize(streams_.building), what);
  }

  /// The first one counts: those behind it follow from it.
  void note(cudaError_t error) noexcept {
    if (recording_error != nullptr) {
      if (*recording_error == cudaSuccess) *recording_error = error;
      return;
    }
    int none = 0;
    if (error != cudaSuccess) failed_.compare_exchange_strong(none, error);
  }

  /// Of the memory, such a part is left to CUDA, its libraries and recordings.
  static constexpr std::size_t reserve = 20;

  const int index_, worker_;
  const std::string name_;
  Space space_;
  Streams streams_;
  std::mutex building_mutex_;
  std::map<std::byte*, std::int64_t> sizes_;  // of what is allocated
  std::atomic<std::int64_t> in_use_{0};
  std::atomic<int> failed_{0};
};

}  // namespace

std::unique_ptr<Device> open_cuda_device(const CudaDevice& device, int worker,
                                         std::int64_t capacity) {
  return std::make_unique<GpuDevice>(device, worker, capacity);
}

}  // namespace arenite::runtime
