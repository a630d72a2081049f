// A GPU as programs see it: memory, streams that do work in order, and work recorded once.
//
// Behind it stands CUDA (cuda/), or, in tests on machines without a GPU, threads of the host
// (simulated_device.hpp). A session opens its devices and closes them with StarPU.
#pragma once

#include <arenite/runtime/devices.hpp>
#include <arenite/runtime/kernel.hpp>
#include <arenite/types.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace arenite::runtime {

class Device {
 public:
  using Stream = void*;
  /// Copies of the next batch go beside the step's kernels.
  enum class Queue : std::uint8_t { compute, staging };
  static constexpr std::size_t queue_count = 2;

  /// A point in a stream.
  class Event {
   public:
    virtual ~Event() = default;
  };
  /// What was enqueued while it was recorded, to be enqueued again in one go.
  class Work {
   public:
    virtual ~Work() = default;
  };

  virtual ~Device() = default;

  /// Its memory; the capacity is what programs may take of it.
  virtual const Space& space() const noexcept = 0;
  virtual std::string description() const = 0;
  /// The StarPU worker that runs its tasks.
  virtual int worker() const noexcept = 0;
  /// Its worker is a CUDA worker, whose tasks end when its own stream is done with them.
  virtual bool has_cuda_worker() const noexcept = 0;

  // While programs are built and between steps. These wait, may allocate, and throw Failure.

  virtual std::byte* allocate(std::int64_t bytes) = 0;  ///< zeros
  virtual void release(std::byte* bytes) noexcept = 0;
  /// Bytes that are allocated, by all programs. From any thread.
  virtual std::int64_t in_use() const noexcept = 0;
  virtual void write(void* there, const void* here, std::size_t bytes) = 0;
  virtual void clear(void* there, std::size_t bytes) = 0;  ///< zeros
  virtual void read(void* here, const void* there, std::size_t bytes) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Where its kernels find what is in a block of the host's.
  virtual void* address_there(void* here) = 0;
  /// Does what is enqueued now, and throws what went wrong with it, also after the enqueuing: what
  /// is recorded later has run before then, with all code loaded, and its faults are known.
  virtual void try_out(const std::function<void(Stream)>& enqueue) = 0;
  /// Enqueues nothing now: `enqueue` is called once, with a stream to give to the functions below.
  virtual std::unique_ptr<Work> record(const std::function<void(Stream)>& enqueue) = 0;
  /// About what a launch takes. Launches it a number of times.
  virtual double seconds(const Work& work) = 0;
  /// Makes the device the calling thread's, and leaves it so: for kernels that are prepared there.
  virtual void make_current() = 0;

  // Within a recording.

  static constexpr std::size_t most_branches = 4;
  /// A stream beside the recording's own, which is branch 0. Before its first use it has to follow
  /// an event of the recording, and the own one in the end an event behind its last.
  virtual Stream branch(std::size_t number) noexcept = 0;
  /// What is enqueued in the stream from now on follows what stood before the event.
  virtual void follow(Stream stream, const Event& event) noexcept = 0;

  // In steps, on the thread of its worker. None of these waits, allocates or throws: what fails is
  // kept for `take_failure`, and the device is then of no more use.

  virtual Stream stream(Queue queue) noexcept = 0;
  /// The one that a StarPU task's work has to be in.
  virtual Stream task_stream() noexcept = 0;
  /// Enqueues what the kernel does; `call.stream` says where.
  virtual void call(KernelFunction run, const KernelCall& call) noexcept = 0;
  virtual void fill(void* there, std::byte value, std::size_t bytes, Stream stream) noexcept = 0;
  /// Sets `into` to `from` where that is set and `into` is not, and then `told`, where there is
  /// one, to `from`. All by addresses of the device's.
  virtual void hand_on(const StatusWord* from, StatusWord* into, StatusWord* told,
                       Stream stream) noexcept = 0;
  virtual void launch(const Work& work, Stream stream) noexcept = 0;
  virtual void mark(Event& event, Stream stream) noexcept = 0;
  /// The stream has come to where the event was marked last; true once the device has failed.
  virtual bool reached(const Event& event) noexcept = 0;
  /// Waits until the stream is empty. From any thread.
  virtual void finish(Stream stream) noexcept = 0;

  /// Something went wrong since the device was opened.
  virtual bool failed() const noexcept = 0;
  /// What it was; empty: nothing.
  virtual std::string failure() const = 0;
};

/// Who knows of devices, and opens them.
class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  virtual CudaSupport support() = 0;
  /// StarPU has CUDA workers for them; else each takes a CPU worker more.
  virtual bool has_cuda_workers() const noexcept = 0;
  /// With StarPU's worker for it, of whose memory programs may take `capacity` bytes; 0: nearly
  /// all. Throws Failure.
  virtual std::unique_ptr<Device> open(const CudaDevice& device, int worker,
                                       std::int64_t capacity) = 0;
};

/// CUDA's, which finds none in a build without it; or the one that tests have put in its place.
DeviceDriver& device_driver();
/// For tests; nullptr: CUDA's again. Only while no session runs. Borrowed.
void set_device_driver(DeviceDriver* driver) noexcept;
/// Of this build.
DeviceDriver& cuda_driver();

/// The running session's device with this memory; throws Error when it has none.
Device& device_of(const Space& space);
/// All of the running session, in its order.
std::vector<Device*> session_devices();

}  // namespace arenite::runtime
