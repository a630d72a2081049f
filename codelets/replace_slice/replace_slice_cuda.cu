#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/status.hpp"
#include "codelets/dynamic_rows.hpp"

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t rows = 0, replaced = 0;
  std::int64_t row = 0;  ///< elements
  bool has_end = false;
};

State state_of(const OpView& op) {
  const Shape& x = op.operand(0).shape;
  return {.rows = x[0],
          .replaced = op.operand(1).shape[0],
          .row = cuda::row_elements(x),
          .has_end = op.has_operand(3)};
}

template <class T>
void replace(const KernelCall& call, const State& s) {
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  const DynamicRows rows{s.rows, s.replaced, call.in<std::int64_t>(2),
                         s.has_end ? call.in<std::int64_t>(3) : nullptr};
  cuda::report_fault(call, rows);
  // In place the other rows are there already.
  if (x != y)
    cuda::for_each(call, s.rows * s.row, [=] ARENITE_THREAD(std::int64_t i) { y[i] = x[i]; });
  const T* replacement = call.in<T>(1);
  cuda::for_each(call, s.replaced * s.row, [=] ARENITE_THREAD(std::int64_t i) {
    if (rows.fault() == 0) y[*rows.begin * s.row + i] = replacement[i];
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(replace_slice)(runtime::KernelTable& kernels) {
  using std::uint32_t, std::uint64_t, std::uint8_t;
  kernels.add("replace_slice",
              cuda::copying<state_of, replace<uint8_t>, replace<uint32_t>, replace<uint64_t>>());
}

}  // namespace arenite::codelets
