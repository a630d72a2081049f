#include "codelets/rounded_factors.hpp"

#include <arenite/graph/target.hpp>

#include "codelets/bfloat16.hpp"

#include <algorithm>

namespace arenite::codelets {
namespace {

bool is_factor(const OpView& op, std::size_t operand) {
  return op.has_operand(operand) && op.op().definition->operand_schema(operand).factor;
}

graph::Support can_round(const OpView& op) {
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    if (is_factor(op, i) && op.operand(i).type != DType::float32)
      return "factors that are not float32";
  }
  return {};
}

struct Factor {
  std::size_t operand = 0;
  std::int64_t floats = 0;  ///< a halo included
  std::int64_t offset = 0;  ///< bytes into the workspace
};

/// What lies behind the workspace of the kernel that multiplies.
struct Workspace {
  std::vector<Factor> factors;
  std::int64_t addresses = 0;  ///< offset of those that the kernel takes for its operands'
  std::int64_t bytes = 0;

  Workspace(const OpView& op, const Kernel& inner) {
    if (inner.workspace) bytes = inner.workspace(op);
    for (std::size_t i = 0; i < op.operand_count(); ++i) {
      if (!is_factor(op, i)) continue;
      const graph::Value& value = op.operand(i);
      const std::int64_t size = graph::byte_size(value.type, value.shape, value.layout);
      factors.push_back({i, size / static_cast<std::int64_t>(sizeof(float)), append(size)});
    }
    addresses = append(static_cast<std::int64_t>(op.operand_count() * sizeof(void*)));
  }

 private:
  std::int64_t append(std::int64_t size) {
    const std::int64_t offset = round_up(bytes, default_alignment);
    bytes = offset + size;
    return offset;
  }
};

struct State {
  PreparedKernel inner;
  Workspace workspace;
  std::size_t operands = 0;
  Bfloat16Rounding round = nullptr;
};

void run(const KernelCall& call, const State& state) {
  auto* workspace = static_cast<std::byte*>(call.workspace);
  auto* operands = reinterpret_cast<void**>(workspace + state.workspace.addresses);
  std::copy_n(call.operands, state.operands, operands);
  for (const Factor& factor : state.workspace.factors) {
    auto* rounded = reinterpret_cast<float*>(workspace + factor.offset);
    state.round(call.in<float>(factor.operand), rounded, factor.floats);
    operands[factor.operand] = rounded;
  }
  KernelCall inner = call;
  inner.operands = operands;
  inner.state = state.inner.state.get();
  state.inner.run(inner);
}

Kernel rounding(const Kernel& inner) {
  Kernel kernel = inner;
  kernel.name += graph::bfloat16_suffix;
  kernel.compute = runtime::Compute::bfloat16;
  kernel.supports = [inner](const OpView& op) {
    const graph::Support rounds = can_round(op);
    return rounds && inner.supports ? inner.supports(op) : rounds;
  };
  kernel.workspace = [inner](const OpView& op) { return Workspace(op, inner).bytes; };
  kernel.prepare = [inner](const OpView& op) {
    return prepared<run>(
        State{inner.prepare(op), Workspace(op, inner), op.operand_count(), bfloat16_rounding()});
  };
  return kernel;
}

}  // namespace

void add_rounding_kernels(const graph::OperatorDefinition& definition,
                          std::vector<Kernel>& kernels) {
  if (std::ranges::none_of(definition.operands, &graph::OperandSchema::factor)) return;
  const std::vector<Kernel> given = kernels;
  for (const Kernel& kernel : given) {
    if (kernel.device == DeviceKind::cpu && kernel.compute == runtime::Compute::float32)
      kernels.push_back(rounding(kernel));
  }
}

}  // namespace arenite::codelets
