// Tasks of devices, recorded when a program is built: one op behind the other and in branches, of
// which the faster one is kept. Both compute the same bits.
#include <arenite/error.hpp>

#include "src/runtime/program_impl.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

namespace arenite::runtime {
namespace {

class Recorder {
 public:
  Recorder(const ProgramSpec& spec, const DeviceHooks& hooks) : spec_(spec), hooks_(hooks) {
    if (hooks_.take_failure) static_cast<void>(hooks_.take_failure());  // of whoever did not ask
  }

  /// Does the task once: what this thread's libraries and the device still have to load is loaded
  /// then, and a kernel that faults does so here, where it can be told.
  void try_out(TaskBody& body) const {
    attempt(body, [&](Device& device) {
      device.try_out([&](Device::Stream stream) { enqueue_ops(body, stream); });
    });
  }

  void record(TaskBody& body, const TaskBranches* branches) const {
    DeviceTask& task = *body.on_device;
    attempt(body, [&](Device& device) {
      task.work = device.record([&](Device::Stream stream) {
        if (branches != nullptr) {
          enqueue_branches(body, *branches, stream);
        } else {
          enqueue_ops(body, stream);
        }
      });
    });
    task.branches = branches != nullptr ? branches->count() : 1;
  }

  /// The faster way. True: in branches.
  bool record_faster(TaskBody& body, const TaskBranches& branches) const {
    DeviceTask& task = *body.on_device;
    record(body, nullptr);
    if (branches.count() == 1) return false;
    auto in_order = std::move(task.work);
    try {
      record(body, &branches);
    } catch (const Failure& failure) {
      std::cerr << "arenite: recorded in order, not in branches: " << failure.what() << '\n';
    }
    bool faster = task.work != nullptr;
    if (faster)
      attempt(body, [&](Device& device) { faster = !is_faster(device, *in_order, *task.work); });
    if (!faster) {
      task.work = std::move(in_order);
      task.branches = 1;
    }
    return faster;
  }

 private:
  /// Each is timed twice, in turn: the first may find the device asleep.
  static bool is_faster(Device& device, const Device::Work& one, const Device::Work& other) {
    double of_one = device.seconds(one), of_other = device.seconds(other);
    of_one = std::min(of_one, device.seconds(one));
    of_other = std::min(of_other, device.seconds(other));
    return of_one < of_other;
  }

  /// Throws what goes wrong, with the task's place.
  template <class F>
  void attempt(const TaskBody& body, F work) const {
    const auto refuse = [&](const std::string& why, const std::string& expected) {
      const auto& ops = spec_.schedule.tasks[body.number].ops;
      throw Failure({.found = why,
                     .expected = expected,
                     .where = "program '" + spec_.name + "'" +
                              (ops.empty() ? "" : ", " + describe(spec_.graph, ops.front()))});
    };
    try {
      work(*body.on_device->device);
    } catch (const Failure& failure) {
      refuse(failure.text().found, failure.text().expected);
    }
    if (const std::string why = hooks_.take_failure ? hooks_.take_failure() : ""; !why.empty())
      refuse(why, "a task that can be recorded");
  }

  const ProgramSpec& spec_;
  const DeviceHooks& hooks_;
};

}  // namespace

/// What a device's task does is the same in every step but for the bytes it finds.
void Program::Impl::record_tasks() {
  const DeviceHooks& hooks = set.kernels.on_devices;
  for (DeviceStatus& status : device_status) {
    status.device().make_current();
    if (hooks.warm_up) hooks.warm_up();
    status.keep_state();
  }
  const Recorder recorder(spec, hooks);
  for (std::size_t t = 0; t < spec.schedule.tasks.size(); ++t) {
    TaskBody& first = sets.front().bodies[t];
    if (!first.on_device) continue;
    recorder.try_out(first);
    // A recording of one copy takes longer to launch than the copy.
    if (first.on_device->staging && first.kernels.size() == 1) continue;
    const TaskBranches branches(*first.on_device->device,
                                branch(footprints(spec, t, set.kernels), Device::most_branches));
    const bool in_branches = recorder.record_faster(first, branches);
    for (std::size_t s = 1; s < sets.size(); ++s)
      recorder.record(sets[s].bodies[t], in_branches ? &branches : nullptr);
  }
  for (DeviceStatus& status : device_status) status.clear();
}

}  // namespace arenite::runtime
