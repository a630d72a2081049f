#include "codelets/cuda/kernel.hpp"

namespace arenite::codelets {
namespace {

template <class T>
void copy(const runtime::KernelCall& call, const void* source, void* target) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(target);
  cuda::for_each(call, cuda::count_of(call),
                 [=] ARENITE_THREAD(std::int64_t i) { to[i] = from[i]; });
}

template <class T>
void assign(const runtime::KernelCall& call) {
  copy<T>(call, call.operands[1], call.operands[0]);
}

template <class T>
void identity(const runtime::KernelCall& call) {
  copy<T>(call, call.operands[0], call.results[0]);
}

}  // namespace

void ARENITE_CUDA_KERNELS(assign)(runtime::KernelTable& kernels) {
  using std::uint32_t, std::uint64_t, std::uint8_t;
  kernels.add("assign", cuda::copying<cuda::elements_of>(assign<uint8_t>, assign<uint32_t>,
                                                         assign<uint64_t>));
  kernels.add("identity", cuda::copying<cuda::elements_of>(identity<uint8_t>, identity<uint32_t>,
                                                           identity<uint64_t>));
}

}  // namespace arenite::codelets
