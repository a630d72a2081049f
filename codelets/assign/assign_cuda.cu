#include <arenite/graph/spaces.hpp>

#include "codelets/cuda/kernel.hpp"

#include <cstring>
#include <utility>

namespace arenite::codelets {
namespace {

template <class T>
void copy(const KernelCall& call, const void* source, void* target) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(target);
  cuda::for_each(call, cuda::count_of(call),
                 [=] ARENITE_THREAD(std::int64_t i) { to[i] = from[i]; });
}

template <class T>
void assign(const KernelCall& call) {
  copy<T>(call, call.operands[1], call.results[0]);
}

template <class T>
void identity(const KernelCall& call) {
  copy<T>(call, call.operands[0], call.results[0]);
}

/// Between spaces the device's copy engine works beside the kernels.
void transfer(const KernelCall& call) {
  const auto bytes = static_cast<std::size_t>(cuda::count_of(call));
#ifdef __CUDACC__
  cudaMemcpyAsync(call.results[0], call.operands[0], bytes, cudaMemcpyDefault,
                  static_cast<cudaStream_t>(call.stream));
#else
  if (bytes > 0) std::memcpy(call.results[0], call.operands[0], bytes);
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

cuda::Elements bytes_of(const OpView& op) {
  return {graph::byte_size(op.operand(0).type, op.operand(0).shape)};
}

}  // namespace

void ARENITE_CUDA_KERNELS(assign)(runtime::KernelTable& kernels) {
  using std::uint32_t, std::uint64_t, std::uint8_t;
  kernels.add("assign", cuda::copying<cuda::elements_of>(assign<uint8_t>, assign<uint32_t>,
                                                         assign<uint64_t>));
  kernels.add("identity", {.name = "transfer",
                           .device = DeviceKind::cuda,
                           .supports = between_spaces,
                           .prepare = prepare<bytes_of, transfer>});
  Kernel within =
      cuda::copying<cuda::elements_of>(identity<uint8_t>, identity<uint32_t>, identity<uint64_t>);
  within.supports = within_one;
  kernels.add("identity", std::move(within));
}

}  // namespace arenite::codelets
