#include <arenite/graph/spaces.hpp>

#include "codelets/cuda/kernel.hpp"

#include <cstring>
#include <utility>

namespace arenite::codelets {
namespace {

/// Elements of one operand.
template <class T, std::size_t operand>
void copy(const KernelCall& call, const std::int64_t& count) {
  const T* from = call.in<T>(operand);
  T* to = call.out<T>(0);
  cuda::for_each(call, count, [=] ARENITE_THREAD(std::int64_t i) { to[i] = from[i]; });
}

/// Between spaces the device's copy engine works beside the kernels.
void transfer(const KernelCall& call, const std::size_t& bytes) {
  if (bytes == 0) return;  // where nothing is, nothing is pinned
#ifdef __CUDACC__
  cudaMemcpyAsync(call.results[0], call.operands[0], bytes, cudaMemcpyDefault,
                  static_cast<cudaStream_t>(call.stream));
#else
  std::memcpy(call.results[0], call.operands[0], bytes);
#endif
}

bool is_transfer(const OpView& op) { return graph::is_crossing(op.graph(), op.op()); }

graph::Support between_spaces(const OpView& op) {
  if (!is_transfer(op)) return "both sides in one memory";
  return {};
}

/// Kernels do not reach the host's memory everywhere.
graph::Support within_one(const OpView& op) {
  if (is_transfer(op)) return "sides in two memories";
  return cuda::disjoint(op);
}

std::int64_t elements_of(const OpView& op) { return op.operand(0).shape.elements(); }

std::size_t bytes_of(const OpView& op) {
  return static_cast<std::size_t>(graph::byte_size(op.operand(0).type, op.operand(0).shape));
}

}  // namespace

void ARENITE_CUDA_KERNELS(assign)(runtime::KernelTable& kernels) {
  using std::uint32_t, std::uint64_t, std::uint8_t;
  kernels.add("assign",
              cuda::copying<elements_of, copy<uint8_t, 1>, copy<uint32_t, 1>, copy<uint64_t, 1>>());
  kernels.add("identity", {.name = "transfer",
                           .device = DeviceKind::cuda,
                           .supports = between_spaces,
                           .prepare = prepare<bytes_of, transfer>});
  Kernel within =
      cuda::copying<elements_of, copy<uint8_t, 0>, copy<uint32_t, 0>, copy<uint64_t, 0>>();
  within.supports = within_one;
  kernels.add("identity", std::move(within));
}

}  // namespace arenite::codelets
