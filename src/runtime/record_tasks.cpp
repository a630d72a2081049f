// Tasks of devices, tried out when a program is built, and recorded: one op behind the other and in
// branches, of which the faster one is kept. Both compute the same bits.
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
    forget_failure();  // of whoever did not ask
  }

  /// Does the task once: what this thread's libraries and the device still have to load is loaded
  /// then, and a kernel that faults does so here, where it can be told.
  void try_out(TaskBody& body) const {
    attempt(body, [&](Device& device) {
      device.try_out([&](Device::Stream stream) { enqueue_ops(body, stream); });
    });
  }

  /// In order, where there are no branches.
  std::unique_ptr<Device::Work> record(TaskBody& body, const TaskBranches* branches) const {
    std::unique_ptr<Device::Work> work;
    attempt(body, [&](Device& device) {
      work = device.record([&](Device::Stream stream) {
        if (branches != nullptr) {
          enqueue_branches(body, *branches, stream);
        } else {
          enqueue_ops(body, stream);
        }
      });
    });
    return work;
  }

  /// In branches, if that is faster than `in_order`; else none.
  std::unique_ptr<Device::Work> record_if_faster(TaskBody& body, const TaskBranches& branches,
                                                 const Device::Work& in_order) const {
    try {
      auto work = record(body, &branches);
      bool faster = false;
      attempt(body, [&](Device& device) { faster = !is_faster(device, in_order, *work); });
      return faster ? std::move(work) : nullptr;
    } catch (const Failure& failure) {
      std::cerr << "arenite: not recorded in branches: " << failure.what() << '\n';
      forget_failure();  // and what followed from it
      return nullptr;
    }
  }

 private:
  void forget_failure() const {
    if (hooks_.take_failure) static_cast<void>(hooks_.take_failure());
  }

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

/// Tasks that are tried out and timed do all that they do in steps, and leave their marks in what
/// outlives these. Nobody has filled it yet.
void Program::Impl::clear_state() {
  for (const plan::Placement& place : spec.plan.placements) {
    if (place.external || place.bytes == 0 || !is_persistent(place.cls)) continue;
    Block& block = set.blocks[set.block_index(spec, place, 0)];
    if (block.space().device == DeviceKind::cpu) continue;
    device_of(block.space())
        .clear(block.data() + place.offset, static_cast<std::size_t>(place.bytes));
  }
}

/// What a device's task does is the same in every step but for the bytes it finds.
void Program::Impl::try_out_tasks() {
  const DeviceHooks& hooks = set.kernels.on_devices;
  for (const DeviceStatus& status : device_status) {
    status.device().make_current();
    if (hooks.warm_up) hooks.warm_up();
  }
  const Recorder recorder(spec, hooks);
  for (std::size_t t = 0; t < spec.schedule.tasks.size(); ++t) {
    TaskBody& first = sets.front().bodies[t];
    if (!first.on_device) continue;
    recorder.try_out(first);
    // A recording of one copy takes longer to launch than the copy.
    const bool one_copy = first.on_device->staging && first.kernels.size() == 1;
    if (!set.options.record || one_copy) continue;
    const TaskBranches branches(*first.on_device->device,
                                branch(footprints(spec, t, set.kernels), Device::most_branches));
    for (DeviceStatus& status : device_status) status.clear();
    std::unique_ptr<Device::Work> work = recorder.record(first, nullptr), faster;
    if (branches.count() > 1) faster = recorder.record_if_faster(first, branches, *work);
    const TaskBranches* const taken = faster ? &branches : nullptr;
    for (TaskSet& made : sets) {
      DeviceTask& task = *made.bodies[t].on_device;
      task.branches = taken != nullptr ? branches.count() : 1;
      if (&made != &sets.front()) task.work = recorder.record(made.bodies[t], taken);
    }
    first.on_device->work = faster ? std::move(faster) : std::move(work);
  }
  clear_state();
  for (DeviceStatus& status : device_status) status.clear();
}

}  // namespace arenite::runtime
