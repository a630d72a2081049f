// A crew's member on a device's worker: it launches the device's tasks, and looks which have ended.
//
//   host      arm 0, 1          end 0, arm 2        end 1, arm 3
//   staging   copy 0, copy 1            copy 2              copy 3
//   compute   step 0            step 1              step 2
//
// A step's first task is launched when the last one of the step before it is (it is *chained*): the
// device goes on without the host. Where there is no next step yet, the launcher *owes* it that
// launch until one is armed. A set is armed again only when its step has ended.
#pragma once

#include "src/runtime/crew.hpp"
#include "src/runtime/device.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace arenite::runtime {

class Launcher {
 public:
  Launcher(Crew& crew, Device& device, std::size_t sets, std::size_t tasks);

  Device& device() const noexcept { return *device_; }
  starpu_codelet& codelet() noexcept { return codelet_; }

  void begin() noexcept;  ///< before a run
  void push(Crew::Item item) noexcept { ready_.push(item); }
  /// Of who ends the steps: there will be another step, of this set.
  void armed(std::size_t set) noexcept;

 private:
  static void run(void** buffers, void* argument);
  void work() noexcept;
  void tell_failure() const noexcept;
  void launch(Crew::Item item) noexcept;
  bool end_first(std::size_t queue) noexcept;

  /// Tasks in a stream, first in, first out; room for all there are.
  struct Flight {
    std::vector<Crew::Item> items;
    std::size_t first = 0, count = 0;
  };

  Crew& crew_;
  Device* device_;
  starpu_codelet codelet_{};
  Crew::Queue ready_;
  std::array<Flight, Device::queue_count> flights_;
  std::vector<std::vector<std::unique_ptr<Device::Event>>> ended_;  // [set][task]

  // Of the run under way, where this launcher ends its steps.
  long launched_ = 0;  // steps' last tasks
  bool owes_ = false;  // the step behind the last launched one was not there yet
};

}  // namespace arenite::runtime
