#include "codelets/cuda/generated.hpp"
#include "codelets/cuda/kernel.hpp"
#include "codelets/map/map.hpp"
#include "codelets/reduce/reduce_source.hpp"

#include <array>
#include <vector>

namespace arenite::codelets {
namespace {

struct ReduceState {
  struct Launch {
    cuda::Each kernel;
    std::int64_t count;
  };
  std::vector<Launch> launches;
  std::size_t operands, results;

  explicit ReduceState(const OpView& op)
      : operands(op.operand_count()), results(op.op().results.size()) {
    for (const ReduceLaunch& one : reduce_source(op).launches)
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
      one.kernel.launch(call, one.count, {parameters.data(), operands + results + 1});
  }
};

graph::Support supports(const OpView& op) {
  if (op.operand_count() + op.op().results.size() >= cuda::most_parameters)
    return "more operands and results than a kernel has parameters";
  return cuda::disjoint(op);
}

ReduceState state_of(const OpView& op) { return ReduceState(op); }
std::int64_t workspace_of(const OpView& op) { return reduce_source(op).workspace; }

}  // namespace

void ARENITE_CUDA_KERNELS(reduce)(runtime::KernelTable& kernels) {
  kernels.add(
      reduce_name,
      cuda::own("own", supports, prepare<state_of, cuda::run_state<ReduceState>>, workspace_of));
}

}  // namespace arenite::codelets
