#include "codelets/cuda/generated.hpp"
#include "codelets/cuda/kernel.hpp"
#include "codelets/map/source.hpp"

#include <array>
#include <vector>

namespace arenite::codelets {
namespace {

GroupLaunches launches_of(const OpView& op) {
  const Elementwise made(op);
  if (made.formula.reduces()) return launches_of_groups(made);
  GroupLaunches one;
  if (made.space.whole.elements() > 0) one.launches.push_back(launch_of_elements(made));
  return one;
}

struct MapState {
  struct Launch {
    cuda::Each kernel;
    std::int64_t count;
  };
  std::vector<Launch> launches;
  std::size_t operands, results;
  bool has_workspace;  ///< as a parameter

  explicit MapState(const OpView& op) : results(op.op().results.size()) {
    const Elementwise of(op);
    operands = of.formula.operands().size();
    has_workspace = of.formula.reduces();
    for (const GpuLaunch& one : launches_of(op).launches)
      launches.push_back({cuda::Each(one.source), one.count});
  }

  void run(const KernelCall& call) const {
    std::array<void*, cuda::most_parameters> parameters{};
    for (std::size_t i = 0; i < operands; ++i)
      parameters[i] = const_cast<void**>(&call.operands[i]);
    for (std::size_t i = 0; i < results; ++i)
      parameters[operands + i] = const_cast<void**>(&call.results[i]);
    void* workspace = call.workspace;
    parameters[operands + results] = &workspace;
    for (const Launch& one : launches)
      one.kernel.launch(call, one.count, {parameters.data(), operands + results + has_workspace});
  }
};

graph::Support supports(const OpView& op) {
  if (op.operand_count() + op.op().results.size() >= cuda::most_parameters)
    return "more operands and results than a kernel has parameters";
  return cuda::disjoint(op);
}

MapState state_of(const OpView& op) { return MapState(op); }
std::int64_t workspace_of(const OpView& op) { return launches_of(op).workspace; }

}  // namespace

void ARENITE_CUDA_KERNELS(map)(runtime::KernelTable& kernels) {
  kernels.add("map", cuda::own("own", supports, prepare<state_of, cuda::run_state<MapState>>,
                               workspace_of));
}

}  // namespace arenite::codelets
