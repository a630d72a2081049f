#include <arenite/error.hpp>
#include <arenite/runtime/kernel.hpp>

#include "src/base/names.hpp"

namespace arenite::runtime {

std::string_view to_string(Compute compute) noexcept {
  static constexpr Names<Compute, 3> names{{{Compute::float32, "float32"},
                                            {Compute::bfloat16, "bfloat16"},
                                            {Compute::tfloat32, "tfloat32"}}};
  return name_of(compute, names);
}

void StatusWord::report(std::uint32_t op, std::uint32_t code) noexcept {
  const std::uint64_t mine = (static_cast<std::uint64_t>(op) + 1) << 32 | code;
  std::uint64_t seen = word_.load(std::memory_order_relaxed);
  // The lowest op wins, so that the same fault is reported whatever the schedule.
  while ((seen == ok || mine < seen) &&
         !word_.compare_exchange_weak(seen, mine, std::memory_order_acq_rel)) {
  }
}

void KernelTable::add(std::string_view op, Kernel kernel) {
  std::vector<Kernel>& list = kernels_[std::string(op)];
  for (const Kernel& known : list) {
    if (known.name == kernel.name && known.device == kernel.device) {
      fail({.found = "kernel '" + kernel.name + "' of operator '" + std::string(op) +
                     "' registered twice",
            .expected = "one kernel of a name for each device"});
    }
  }
  if (!kernel.prepare) {
    fail({.found = "kernel '" + kernel.name + "' of operator '" + std::string(op) +
                   "' without `prepare`",
          .expected = "a function that makes it ready to run"});
  }
  list.push_back(std::move(kernel));
}

const std::vector<Kernel>& KernelTable::find(std::string_view op) const noexcept {
  static const std::vector<Kernel> none;
  auto it = kernels_.find(op);
  return it == kernels_.end() ? none : it->second;
}

const Kernel& KernelTable::at(std::string_view op, std::string_view kernel,
                              DeviceKind device) const {
  for (const Kernel& known : find(op)) {
    if (known.name == kernel && known.device == device) return known;
  }
  fail({.found = "no kernel '" + std::string(kernel) + "' of operator '" + std::string(op) +
                 "' on " + (device == DeviceKind::cpu ? "the CPU" : "CUDA"),
        .expected = "a registered kernel"});
}

}  // namespace arenite::runtime
