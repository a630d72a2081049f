// What programs keep in a device's memory, as the host fills and sees it.
#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>

#include "src/runtime/idle.hpp"
#include "src/runtime/program_impl.hpp"

#include <algorithm>
#include <exception>
#include <mutex>

namespace arenite::runtime {

namespace {

bool runs_on(const ProgramSpec& spec, const Device& device) {
  return std::ranges::any_of(spec.schedule.tasks, [&](const graph::Task& task) {
    return task.space.device == device.space().device && task.space.index == device.space().index;
  });
}

}  // namespace

void ProgramSet::Impl::warm_up_devices(const std::vector<ProgramSpec>& specs) const {
  const auto devices = session_devices();
  const bool wanted = std::ranges::any_of(devices, [&](const Device* device) {
    return std::ranges::any_of(specs, [&](const auto& spec) { return runs_on(spec, *device); });
  });
  if (!wanted || !kernels.on_devices.warm_up) return;
  struct WarmUp {
    const KernelTable& table;
    std::mutex mutex;
    std::string failure;
  } work{.table = kernels, .mutex = {}, .failure = {}};
  {
    const IdleWatch::Submission awake(idle_watch());
    starpu_execute_on_each_worker(
        [](void* argument) {
          auto& mine = *static_cast<WarmUp*>(argument);
          try {
            mine.table.on_devices.warm_up();
          } catch (const std::exception& error) {
            const std::lock_guard lock(mine.mutex);
            mine.failure = error.what();
          }
        },
        &work, STARPU_CUDA);
  }
  if (!work.failure.empty())
    throw Failure({.found = work.failure, .expected = "GPU libraries that can be used"});
}

/// Beside what is allocated already.
void ProgramSet::Impl::check_memory(std::span<const ProgramSpec> specs) const {
  for (Device* device : session_devices()) {
    std::int64_t bytes = 0;
    for (const Block& block : blocks) {
      if (block.space().device == DeviceKind::cuda &&
          block.space().index == device->space().index && !block.allocated())
        bytes += block.bytes();
    }
    for (const ProgramSpec& spec : specs) {
      if (runs_on(spec, *device))
        bytes += DeviceStatus::bytes_there(static_cast<std::size_t>(options.task_sets));
    }
    const std::int64_t others = device->in_use();
    if (bytes + others <= device->space().capacity) continue;
    fail({.found = "programs of " + std::to_string(bytes) + " bytes in " +
                   to_string(device->space()) +
                   (others > 0 ? ", beside " + std::to_string(others) + " bytes of others" : ""),
          .expected = "at most " + std::to_string(device->space().capacity) +
                      ", what they may take of " + device->description(),
          .hint = "use a smaller batch, or give them more (--memory)"});
  }
}

void ProgramSet::Impl::check_pinned(const ProgramSpec& spec) const {
  const auto check = [&](const plan::Placement& place) {
    if (place.external || spec.plan.blocks[place.block].space.memory != MemoryKind::host) return;
    const BlockGroup& of = groups[group(spec, place)];
    for (std::size_t copy = 0; copy < of.copies; ++copy) {
      const Block& block = blocks[of.first + copy];
      if (block.pinned_for_cuda()) continue;
      throw Failure(
          {.found = "CUDA could not pin the " + std::to_string(block.bytes()) +
                    " bytes of block '" + block.name() + "'",
           .expected = "pinned memory, for a GPU copies '" + place.name + "' from it or to it",
           .where = "program '" + spec.name + "'",
           .hint = "use a smaller batch, or let the process pin more (a container's limits)"});
    }
  };
  for (const graph::Task& task : spec.schedule.tasks) {
    if (task.space.device == DeviceKind::cpu || !device_of(task.space).has_cuda_worker()) continue;
    for (graph::OpId op : task.ops) {
      for (const graph::Access& access : graph::accesses(spec.graph, op))
        check(spec.plan.placement(access.storage));
    }
  }
}

/// Constants of a device are copies of what is bound by address, made once.
void ProgramSet::Impl::fill_constants(const ProgramSpec& spec) {
  for (const plan::Placement& place : spec.plan.placements) {
    if (place.external || place.cls != graph::StorageClass::constant || place.bytes == 0) continue;
    const std::size_t index = block_index(spec, place, 0);
    const auto bound =
        std::find_if(spec.constants.begin(), spec.constants.end(), [&](const auto& constant) {
          return graph::constant_name(constant.first, blocks[index].space()) == place.name;
        });
    if (bound == spec.constants.end() || !bound->second.data ||
        bound->second.bytes != place.bytes) {
      fail({.found = bound == spec.constants.end() || !bound->second.data
                         ? "constant '" + place.name + "' has no bytes"
                         : "constant '" + place.name + "' bound to " +
                               std::to_string(bound->second.bytes) + " bytes",
            .expected = std::to_string(place.bytes) + " bytes bound by that name",
            .where = "program '" + spec.name + "'"});
    }
    const void*& known = filled[{index, place.offset}];
    if (known != nullptr && known != bound->second.data) {
      fail({.found = "constant '" + place.name + "' bound to other bytes than in another program",
            .expected = "the same for all programs of a set that keep it on a device",
            .where = "program '" + spec.name + "'"});
    }
    if (known != nullptr) continue;
    device_of(blocks[index].space())
        .write(blocks[index].data() + place.offset, bound->second.data,
               static_cast<std::size_t>(place.bytes));
    known = bound->second.data;
  }
}

/// What other programs have no place for: others' bytes may be put there.
void ProgramSet::Impl::forget_copies(const ProgramSpec& spec) {
  const auto has = [](const ProgramSpec& other, const plan::Placement& place) {
    return std::ranges::any_of(other.plan.placements, [&](const plan::Placement& one) {
      return !one.external && one.cls == place.cls && one.name == place.name;
    });
  };
  for (const plan::Placement& place : spec.plan.placements) {
    const bool is_constant = place.cls == graph::StorageClass::constant;
    if (place.external || !(is_constant || graph::is_persistent(place.cls))) continue;
    if (std::ranges::any_of(programs, [&](const auto& one) { return has(one->spec(), place); }))
      continue;
    if (is_constant) filled.erase({block_index(spec, place, 0), place.offset});
    mirrors.erase({place.cls, place.name});
  }
}

void ProgramSet::Impl::lend_state(const ProgramSpec& spec) {
  for (const plan::Placement& place : spec.plan.placements) {
    if (place.external || !graph::is_persistent(place.cls)) continue;
    Block& block = blocks[block_index(spec, place, 0)];
    if (block.space().device != DeviceKind::cpu) lend(place, block);
  }
}

std::span<std::byte> ProgramSet::Impl::lend(const plan::Placement& place, Block& block) {
  Mirror& mirror = mirrors[{place.cls, place.name}];
  if (!mirror.lent) {
    mirror.offset = place.offset;
    mirror.block = &block;
    mirror.bytes.resize(static_cast<std::size_t>(place.bytes));
    if (place.bytes > 0) {
      device_of(block.space())
          .read(mirror.bytes.data(), block.data() + place.offset, mirror.bytes.size());
    }
    mirror.lent = true;
  }
  return mirror.bytes;
}

void ProgramSet::Impl::take_back() {
  for (auto& [key, mirror] : mirrors) {
    if (!mirror.lent) continue;
    mirror.lent = false;
    if (mirror.bytes.empty()) continue;
    device_of(mirror.block->space())
        .write(mirror.block->data() + mirror.offset, mirror.bytes.data(), mirror.bytes.size());
  }
}

}  // namespace arenite::runtime
