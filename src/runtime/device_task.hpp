// A task on a device: its ops enqueued one behind the other, without waiting for any.
//
// A step's faults are known late there. Each device has a status word for each task set, which its
// kernels write and look at before they touch what outlives the step, and one for all steps before;
// behind each task, but for those that stage a batch, a kernel writes the first to the host's
// memory.
#pragma once

#include <arenite/runtime/block.hpp>
#include <arenite/runtime/kernel.hpp>

#include "src/runtime/branches.hpp"
#include "src/runtime/device.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace arenite::runtime {

struct TaskBody;

/// The words of one program on one device.
class DeviceStatus {
 public:
  DeviceStatus(const std::string& program, Device& device, std::size_t sets, std::size_t tasks);

  /// What one takes of the device's memory.
  static std::int64_t bytes_there(std::size_t sets) noexcept;

  Device& device() const noexcept { return *device_; }
  StatusWord* of(std::size_t set) noexcept { return at(there_.data(), set); }
  StatusWord* failed() noexcept { return at(there_.data(), sets_); }  ///< an earlier step has
  /// A fault of the host's, for a device to be told of: above every report, so that the host's own
  /// word counts.
  const StatusWord* told() noexcept { return at(there_.data(), sets_ + 1); }
  /// Where the host is sent a copy of the set's word behind a task.
  StatusWord* sent(std::size_t set, std::size_t task) noexcept {
    return at(here_.data(), set * tasks_ + task);
  }
  /// The same, by the device's address.
  StatusWord* sent_from_there(std::size_t set, std::size_t task) noexcept {
    return at(seen_there_, set * tasks_ + task);
  }
  void clear();                                           ///< only while no step is under way
  const Block& there() const noexcept { return there_; }  ///< in the device's memory
  const Block& here() const noexcept { return here_; }    ///< the host's copies

 private:
  static StatusWord* at(void* words, std::size_t index) noexcept;

  Device* device_;
  std::size_t sets_, tasks_;
  Block there_, here_;
  void* seen_there_;  ///< where the device finds `here_`
};

/// Which of a task's ops are recorded side by side, and what marks their order in a recording.
struct TaskBranches {
  std::vector<BranchedOp> ops;
  std::vector<std::unique_ptr<Device::Event>>
      behind;  ///< an event for each op that others wait for
  std::unique_ptr<Device::Event> begin;
  std::vector<std::unique_ptr<Device::Event>> ends;  ///< of all branches but the first

  TaskBranches(Device& device, std::vector<BranchedOp> placed);
  std::size_t count() const noexcept { return ends.size() + 1; }
};

/// What such a task has beside its kernels.
struct DeviceTask {
  Device* device = nullptr;
  StatusWord* status = nullptr;  ///< in the device's memory, as `failed`
  StatusWord* failed = nullptr;
  const StatusWord* told = nullptr;
  StatusWord* sent = nullptr;             ///< the host's copy of `status`
  StatusWord* sent_from_there = nullptr;  ///< the same, by the device's address
  bool staging = false;                   ///< may run while the step before it does

  Device::Queue queue() const noexcept {
    return staging ? Device::Queue::staging : Device::Queue::compute;
  }

  std::unique_ptr<Device::Work> work;  ///< all of it, recorded; none: op by op
  std::size_t branches = 1;            ///< that `work` was recorded in
};

/// Enqueues the task, or its recording, in its queue. Allocates nothing.
void enqueue_task(TaskBody& body) noexcept;
/// Its ops and what follows them; for the recording, too.
void enqueue_ops(TaskBody& body, Device::Stream stream) noexcept;
/// The same for a recording in branches.
void enqueue_branches(TaskBody& body, const TaskBranches& branches, Device::Stream stream) noexcept;
/// Once the device is done with it: reports to the host what it found.
void end_device_task(TaskBody& body) noexcept;

/// What StarPU calls for such a task; `body` is its TaskBody.
void run_device_task(void** buffers, void* body);
/// What StarPU calls when a CUDA worker's task has ended.
void device_task_ended(void* body);

}  // namespace arenite::runtime
