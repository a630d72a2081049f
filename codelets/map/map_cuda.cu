#include "codelets/cuda/generated.hpp"
#include "codelets/cuda/kernel.hpp"
#include "codelets/map/map.hpp"
#include "src/expr/formulas.hpp"

#include <array>
#include <optional>

namespace arenite::codelets {
namespace {

struct MapState {
  std::optional<cuda::Each> kernel;  ///< none where there is nothing to do
  std::size_t operands, results;
  std::int64_t count;

  explicit MapState(const OpView& op)
      : operands(op.operand_count()),
        results(op.op().results.size()),
        count(op.result(0).shape.elements()) {
    if (count > 0) kernel.emplace(map_source(op));
  }

  void run(const KernelCall& call) const {
    if (!kernel) return;
    std::array<void*, cuda::most_parameters> parameters{};
    for (std::size_t i = 0; i < operands; ++i)
      parameters[i] = const_cast<void**>(&call.operands[i]);
    for (std::size_t i = 0; i < results; ++i)
      parameters[operands + i] = const_cast<void**>(&call.results[i]);
    kernel->launch(call, count, {parameters.data(), operands + results});
  }
};

graph::Support supports(const OpView& op) {
  if (op.operand_count() + op.op().results.size() > cuda::most_parameters)
    return "more operands and results than a kernel has parameters";
  return cuda::disjoint(op);
}

MapState state_of(const OpView& op) { return MapState(op); }

}  // namespace

void ARENITE_CUDA_KERNELS(map)(runtime::KernelTable& kernels) {
  const Kernel own = cuda::own("own", supports, prepare<state_of, cuda::run_state<MapState>>);
  kernels.add("map", own);
  for (const expr::Formula& formula : expr::formulas()) kernels.add(formula.name, own);
}

}  // namespace arenite::codelets
