#include <arenite/error.hpp>
#include <arenite/graph/spaces.hpp>
#include <arenite/runtime/program.hpp>

#include "src/base/names.hpp"
#include "src/base/refuse.hpp"
#include "src/runtime/device.hpp"

#include <algorithm>
#include <utility>

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

const std::vector<Kernel>& KernelTable::find(const graph::Op& op) const noexcept {
  const std::vector<Kernel>& own = find(op.name());
  const bool is_written = op.definition && !op.definition->written.empty();
  return own.empty() && is_written ? find(of_formulas) : own;
}

const Kernel& KernelTable::at(const graph::Op& op, std::string_view kernel,
                              DeviceKind device) const {
  const bool has_own = !find(op.name()).empty() || op.definition->written.empty();
  return at(has_own ? op.name() : std::string_view(of_formulas), kernel, device);
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

namespace {

bool writes_state(const graph::OpView& op) {
  const auto persists = [&](graph::ValueId id) {
    return is_persistent(op.graph().root_storage(id).cls);
  };
  return std::ranges::any_of(op.op().results, persists);
}

class TableSelector final : public graph::KernelSelector {
 public:
  TableSelector(const KernelTable& table, KernelWishes wishes)
      : table_(table), wishes_(std::move(wishes)) {}

  bool has_kernel(const graph::OpView& op, const Space& space) const override {
    return find(op, space) != nullptr;
  }

  std::string choose(const graph::OpView& op) const override {
    const Space space = graph::space_of(op.graph(), op.op());
    const DeviceKind device = space.device;
    if (device == DeviceKind::cpu && wishes_.compute == Compute::tfloat32 && multiplies(op)) {
      refuse("products in tfloat32 on the CPU", "float32 or bfloat16", std::string(op.op().name()),
             "TF32 is what tensor cores of GPUs multiply");
    }
    if (const Kernel* kernel = find(op, space)) return kernel->name;
    std::string shapes;
    for (std::size_t i = 0; i < op.operand_count(); ++i) {
      if (op.has_operand(i))
        shapes += (shapes.empty() ? "" : ", ") + to_string(op.operand(i).shape);
    }
    refuse("no kernel for operands " + shapes,
           "a registered kernel that supports them on " +
               std::string(device == DeviceKind::cpu ? "the CPU" : "CUDA") +
               (wishes_.compute == Compute::float32
                    ? ""
                    : " in " + std::string(to_string(wishes_.compute))),
           std::string(op.op().name()) + (op.op().where.empty() ? "" : " '" + op.op().where + "'"));
  }

  std::vector<graph::Refusal> refused(const graph::OpView& op) const override {
    std::vector<graph::Refusal> all;
    find(op, graph::space_of(op.graph(), op.op()), &all);
    return all;
  }

  bool knows(const graph::OpView& op, const std::string& kernel) const override {
    const DeviceKind device = graph::space_of(op.graph(), op.op()).device;
    return std::ranges::any_of(table_.find(op.op()), [&](const Kernel& known) {
      return known.name == kernel && known.device == device;
    });
  }

  graph::Support supports(const graph::OpView& op, const std::string& kernel) const override {
    return supports(at(op, kernel), op);
  }

  std::int64_t workspace(const graph::OpView& op, const std::string& kernel) const override {
    const Kernel& k = at(op, kernel);
    return k.workspace ? k.workspace(op) : 0;
  }

  int wanted_halo(const graph::OpView& op, const std::string& kernel,
                  std::size_t operand) const override {
    const Kernel& k = at(op, kernel);
    return k.wanted_halo ? k.wanted_halo(op, operand) : -1;
  }

  bool writes_halo(const graph::OpView& op, const std::string& kernel) const override {
    return at(op, kernel).writes_halo;
  }

 private:
  /// Libraries answer for the calling thread's device.
  static void make_current(const Space& space) {
    for (Device* device : session_devices()) {
      if (device->space().device == space.device && device->space().index == space.index)
        device->make_current();
    }
  }

  const Kernel& at(const graph::OpView& op, const std::string& kernel) const {
    const Space space = graph::space_of(op.graph(), op.op());
    make_current(space);
    return table_.at(op.op(), kernel, space.device);
  }

  static graph::Support supports(const Kernel& kernel, const graph::OpView& op) {
    if (kernel.device != DeviceKind::cpu && !kernel.guards_state && writes_state(op))
      return "would write the state behind a failed step";
    return kernel.supports ? kernel.supports(op) : graph::Support();
  }

  /// Those of operators that multiply nothing are float32 ones, all of them.
  bool multiplies(const graph::OpView& op) const {
    return std::ranges::any_of(table_.find(op.op()), [](const Kernel& kernel) {
      return kernel.compute != Compute::float32;
    });
  }

  /// Those passed over are told to `refused`, where somebody asks.
  const Kernel* find(const graph::OpView& op, const Space& space,
                     std::vector<graph::Refusal>* refused = nullptr) const {
    make_current(space);
    const DeviceKind device = space.device;
    const bool rounds = std::ranges::any_of(table_.find(op.op()), [&](const Kernel& kernel) {
      return kernel.device == device && kernel.compute == wishes_.compute;
    });
    if (!rounds) return best(op, device, Compute::float32, refused);
    const Kernel* const found = best(op, device, wishes_.compute, refused);
    // A GPU library need not take all ops; those of our own multiply float32 only.
    return found != nullptr || device == DeviceKind::cpu
               ? found
               : best(op, device, Compute::float32, refused);
  }

  const Kernel* best(const graph::OpView& op, DeviceKind device, Compute compute,
                     std::vector<graph::Refusal>* refused) const {
    const Kernel* const mine = chosen(op, device, compute, refused);
    return mine != nullptr ? mine : first(op, device, compute, refused);
  }

  const Kernel* first(const graph::OpView& op, DeviceKind device, Compute compute,
                      std::vector<graph::Refusal>* refused) const {
    for (const Kernel& kernel : table_.find(op.op())) {
      if (kernel.device != device || kernel.compute != compute) continue;
      const graph::Support support = takes(kernel, op, false);
      if (support) return &kernel;
      note(kernel, support, refused);
    }
    return nullptr;
  }

  /// Once: a choice that is passed over may be met again in the table.
  static void note(const Kernel& kernel, const graph::Support& support,
                   std::vector<graph::Refusal>* refused) {
    if (refused != nullptr &&
        std::ranges::find(*refused, kernel.name, &graph::Refusal::kernel) == refused->end())
      refused->push_back({kernel.name, support.why()});
  }

  graph::Support takes(const Kernel& kernel, const graph::OpView& op, bool is_chosen) const {
    if (kernel.only_chosen && !is_chosen) return "only where a measurement chose it";
    if (!wishes_.without.empty() && kernel.name.starts_with(wishes_.without))
      return "left out, as was asked for";
    if (ARENITE_PLAIN_KERNELS && kernel.jit) return "code that sanitizers cannot see into";
    return supports(kernel, op);
  }

  /// None where nobody chose one, or one that is excluded.
  const Kernel* chosen(const graph::OpView& op, DeviceKind device, Compute compute,
                       std::vector<graph::Refusal>* refused) const {
    const std::string* const name = wishes_.choices.find(op, device, compute);
    if (name == nullptr) return nullptr;
    for (const Kernel& kernel : table_.find(op.op())) {
      if (kernel.name != *name || kernel.device != device || kernel.compute != compute) continue;
      const graph::Support support = takes(kernel, op, true);
      if (support) return &kernel;
      // Where this op cannot have it, with a halo or at an odd address, the table's order counts.
      note(kernel, support, refused);
      return nullptr;
    }
    refuse("kernel '" + *name + "' chosen for " + KernelChoices::describe(op),
           "one of this build's kernels", wishes_.choices.origin(),
           "measure anew: these choices are of another version, or of one with other "
           "libraries");
  }

  const KernelTable& table_;
  const KernelWishes wishes_;
};

}  // namespace

std::unique_ptr<graph::KernelSelector> kernel_selector(const KernelTable& table,
                                                       KernelWishes wishes) {
  return std::make_unique<TableSelector>(table, std::move(wishes));
}

}  // namespace arenite::runtime
