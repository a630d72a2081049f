#include <arenite/error.hpp>
#include <arenite/runtime/program.hpp>

#include <algorithm>

namespace arenite::runtime {
namespace {

class TableSelector final : public graph::KernelSelector {
 public:
  TableSelector(const KernelTable& table, DeviceKind device, Compute compute)
      : table_(table), device_(device), compute_(compute) {}

  std::string choose(const graph::OpView& op) const override {
    const std::vector<Kernel>& kernels = table_.find(op.op().name());
    // Of an operator that multiplies nothing, all kernels are float32 ones.
    const bool rounds = std::ranges::any_of(kernels, [&](const Kernel& kernel) {
      return kernel.device == device_ && kernel.compute == compute_;
    });
    const Compute compute = rounds ? compute_ : Compute::float32;
    for (const Kernel& kernel : kernels) {
      if (kernel.compute != compute) continue;
      if (kernel.device != device_ || (ARENITE_PLAIN_KERNELS && kernel.jit)) continue;
      if (!kernel.supports || kernel.supports(op)) return kernel.name;
    }
    std::string shapes;
    for (std::size_t i = 0; i < op.operand_count(); ++i) {
      if (op.has_operand(i))
        shapes += (shapes.empty() ? "" : ", ") + to_string(op.operand(i).shape);
    }
    fail({.found = "no kernel for operands " + shapes,
          .expected = "a registered kernel that supports them on " +
                      std::string(device_ == DeviceKind::cpu ? "the CPU" : "CUDA") +
                      (compute == Compute::bfloat16 ? " in bfloat16" : ""),
          .where = std::string(op.op().name()) +
                   (op.op().where.empty() ? "" : " '" + op.op().where + "'")});
  }

  bool supports(const graph::OpView& op, const std::string& kernel) const override {
    const Kernel& k = table_.at(op.op().name(), kernel, device_);
    return !k.supports || k.supports(op);
  }

  std::int64_t workspace(const graph::OpView& op, const std::string& kernel) const override {
    const Kernel& k = table_.at(op.op().name(), kernel, device_);
    return k.workspace ? k.workspace(op) : 0;
  }

  int wanted_halo(const graph::OpView& op, const std::string& kernel,
                  std::size_t operand) const override {
    const Kernel& k = table_.at(op.op().name(), kernel, device_);
    return k.wanted_halo ? k.wanted_halo(op, operand) : -1;
  }

  bool writes_halo(const graph::OpView& op, const std::string& kernel) const override {
    return table_.at(op.op().name(), kernel, device_).writes_halo;
  }

 private:
  const KernelTable& table_;
  DeviceKind device_;
  Compute compute_;
};

}  // namespace

std::unique_ptr<graph::KernelSelector> kernel_selector(const KernelTable& table, DeviceKind device,
                                                       Compute compute) {
  return std::make_unique<TableSelector>(table, device, compute);
}

}  // namespace arenite::runtime
