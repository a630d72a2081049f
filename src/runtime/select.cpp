#include <arenite/error.hpp>
#include <arenite/graph/spaces.hpp>
#include <arenite/runtime/program.hpp>

#include "src/runtime/device.hpp"

#include <algorithm>
#include <utility>

namespace arenite::runtime {
namespace {

bool writes_state(const graph::OpView& op) {
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    if (op.has_operand(i) && op.op().effect(i) != graph::Effect::read &&
        is_persistent(op.graph().root_storage(op.op().operands[i]).cls))
      return true;
  }
  return false;
}

class TableSelector final : public graph::KernelSelector {
 public:
  TableSelector(const KernelTable& table, Compute compute, std::string without)
      : table_(table), compute_(compute), without_(std::move(without)) {}

  bool has_kernel(const graph::OpView& op, const Space& space) const override {
    return find(op, space) != nullptr;
  }

  std::string choose(const graph::OpView& op) const override {
    const Space space = graph::space_of(op.graph(), op.op());
    const DeviceKind device = space.device;
    if (device == DeviceKind::cpu && compute_ == Compute::tfloat32 && multiplies(op)) {
      fail({.found = "products in tfloat32 on the CPU",
            .expected = "float32 or bfloat16",
            .where = std::string(op.op().name()),
            .hint = "TF32 is what tensor cores of GPUs multiply"});
    }
    if (const Kernel* kernel = find(op, space)) return kernel->name;
    std::string shapes;
    for (std::size_t i = 0; i < op.operand_count(); ++i) {
      if (op.has_operand(i))
        shapes += (shapes.empty() ? "" : ", ") + to_string(op.operand(i).shape);
    }
    fail({.found = "no kernel for operands " + shapes,
          .expected =
              "a registered kernel that supports them on " +
              std::string(device == DeviceKind::cpu ? "the CPU" : "CUDA") +
              (compute_ == Compute::float32 ? "" : " in " + std::string(to_string(compute_))),
          .where = std::string(op.op().name()) +
                   (op.op().where.empty() ? "" : " '" + op.op().where + "'")});
  }

  bool supports(const graph::OpView& op, const std::string& kernel) const override {
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
    return table_.at(op.op().name(), kernel, space.device);
  }

  static bool supports(const Kernel& kernel, const graph::OpView& op) {
    if (kernel.device != DeviceKind::cpu && !kernel.guards_state && writes_state(op)) return false;
    return !kernel.supports || kernel.supports(op);
  }

  /// Those of operators that multiply nothing are float32 ones, all of them.
  bool multiplies(const graph::OpView& op) const {
    return std::ranges::any_of(table_.find(op.op().name()), [](const Kernel& kernel) {
      return kernel.compute != Compute::float32;
    });
  }

  const Kernel* find(const graph::OpView& op, const Space& space) const {
    make_current(space);
    const DeviceKind device = space.device;
    const bool rounds = std::ranges::any_of(table_.find(op.op().name()), [&](const Kernel& kernel) {
      return kernel.device == device && kernel.compute == compute_;
    });
    if (!rounds) return first(op, device, Compute::float32);
    const Kernel* const found = first(op, device, compute_);
    // A GPU library need not take all ops; those of our own multiply float32 only.
    return found != nullptr || device == DeviceKind::cpu ? found
                                                         : first(op, device, Compute::float32);
  }

  const Kernel* first(const graph::OpView& op, DeviceKind device, Compute compute) const {
    for (const Kernel& kernel : table_.find(op.op().name())) {
      if (kernel.device != device || kernel.compute != compute) continue;
      if (!without_.empty() && kernel.name.starts_with(without_)) continue;
      if (ARENITE_PLAIN_KERNELS && kernel.jit) continue;
      if (supports(kernel, op)) return &kernel;
    }
    return nullptr;
  }

  const KernelTable& table_;
  Compute compute_;
  std::string without_;
};

}  // namespace

std::unique_ptr<graph::KernelSelector> kernel_selector(const KernelTable& table, Compute compute,
                                                       std::string without) {
  return std::make_unique<TableSelector>(table, compute, std::move(without));
}

}  // namespace arenite::runtime
