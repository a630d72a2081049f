#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/status.hpp"
#include "codelets/dynamic_rows.hpp"

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t all = 0, rows = 0;  ///< of x, of the result
  std::int64_t row = 0;            ///< elements
};

State state_of(const OpView& op) {
  const Shape& x = op.operand(0).shape;
  return {x[0], op.result(0).shape[0], cuda::row_elements(x)};
}

template <class T>
void run(const KernelCall& call, const State& s) {
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  const DynamicRows rows{s.all, s.rows, call.in<std::int64_t>(1)};
  cuda::report_fault(call, rows);
  cuda::for_each(call, s.rows * s.row, [=] ARENITE_THREAD(std::int64_t i) {
    y[i] = rows.fault() == 0 ? x[*rows.begin * s.row + i] : T{0};
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(dynamic_slice)(runtime::KernelTable& kernels) {
  kernels.add("dynamic_slice",
              cuda::copying<state_of, run<std::uint8_t>, run<std::uint32_t>, run<std::uint64_t>>());
}

}  // namespace arenite::codelets
