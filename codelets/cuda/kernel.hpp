// What the registrations of GPU kernels share. Values on a GPU have no halo.
#pragma once

#include "codelets/cuda/grid.hpp"
#include "codelets/words.hpp"

#include <functional>
#include <string>
#include <utility>

/// The functions in a folder's <op>_cuda.cu and <op>_tiled.cu that add their kernels to a table:
/// those of a GPU, or those whose grids are loops.
#ifdef __CUDACC__
#define ARENITE_CUDA_KERNELS(folder) register_##folder##_cuda
#define ARENITE_TILED_KERNELS(folder) register_##folder##_tiled
#else
#define ARENITE_CUDA_KERNELS(folder) register_##folder##_loops
#define ARENITE_TILED_KERNELS(folder) register_##folder##_tiled_loops
#endif

namespace arenite::codelets::cuda {

/// Whether no thread reads what another one writes: a result lies in all that an operand is, or in
/// none of it.
inline graph::Support disjoint(const OpView& op) {
  const graph::Graph& graph = op.graph();
  for (const ValueId result : op.op().results) {
    const graph::Value& written = graph[result];
    const std::int64_t end = written.offset + graph::byte_size(written.type, written.shape);
    for (const ValueId operand : op.op().operands) {
      if (!operand || graph.root(operand) != graph.root(result)) continue;
      const graph::Value& other = graph[operand];
      const std::int64_t bytes = graph::byte_size(other.type, other.shape);
      const bool same = other.offset == written.offset && other.offset + bytes == end;
      if (!same && other.offset < end && written.offset < other.offset + bytes)
        return "a result that is written where an operand is read";
    }
  }
  return {};
}

/// A kernel of our own, of which `prepare` makes what runs.
inline Kernel own(std::function<PreparedKernel(const OpView&)> prepare) {
  return {.name = "own",
          .device = DeviceKind::cuda,
          .supports = disjoint,
          .prepare = std::move(prepare),
          .guards_state = true};
}

/// The same with scratch memory: `workspace` gives its bytes.
inline Kernel own(std::function<PreparedKernel(const OpView&)> prepare,
                  std::function<std::int64_t(const OpView&)> workspace) {
  Kernel kernel = own(std::move(prepare));
  kernel.workspace = std::move(workspace);
  return kernel;
}

/// One that is named, and takes but what `supports` says.
inline Kernel own(std::string name, std::function<graph::Support(const OpView&)> supports,
                  std::function<PreparedKernel(const OpView&)> prepare,
                  std::function<std::int64_t(const OpView&)> workspace = nullptr) {
  Kernel kernel = own(std::move(prepare), std::move(workspace));
  kernel.name = std::move(name);
  kernel.supports = std::move(supports);
  return kernel;
}

/// A `Kernel::workspace`: what the state that `build` makes of an op asks for.
template <auto build>
std::int64_t workspace_of(const OpView& op) {
  return build(op).workspace();
}

/// Runs the `State` that was prepared for an op.
template <class State>
void run_state(const KernelCall& call, const State& state) {
  state.run(call);
}

/// Elements of a row of the first axis; none where there is no row.
inline std::int64_t row_elements(const Shape& shape) {
  return shape.elements() == 0 ? 0 : shape.elements() / shape[0];
}

/// A kernel of our own that only copies elements: what makes its state of an op, and the functions
/// for those of 1, 4 and 8 bytes.
template <auto state_of, auto one, auto four, auto eight>
Kernel copying() {
  return own([](const OpView& op) {
    const std::int64_t bytes = size_of(op.operand(0).type);
    return bytes == 1   ? prepare<state_of, one>(op)
           : bytes == 4 ? prepare<state_of, four>(op)
                        : prepare<state_of, eight>(op);
  });
}

}  // namespace arenite::codelets::cuda
