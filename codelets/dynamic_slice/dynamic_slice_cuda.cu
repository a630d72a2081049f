#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/status.hpp"
#include "codelets/dynamic_rows.hpp"

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t last = 0;   ///< begin that there is room for
  std::int64_t row = 0;    ///< elements
  std::int64_t count = 0;  ///< elements of the result
};

State state_of(const OpView& op) {
  const Shape &x = op.operand(0).shape, &y = op.result(0).shape;
  return {.last = x[0] - y[0], .row = cuda::row_elements(x), .count = y.elements()};
}

template <class T>
void run(const KernelCall& call) {
  const State s = *static_cast<const State*>(call.state);
  const T* x = call.in<T>(0);
  const auto* begin = call.in<std::int64_t>(1);
  T* y = call.out<T>(0);
  runtime::StatusWord* status = call.status;
  const std::uint32_t op = call.op;
  cuda::for_each(call, 1, [=] ARENITE_THREAD(std::int64_t) {
    if (*begin < 0 || *begin > s.last)
      cuda::report(status, op, static_cast<std::uint32_t>(RowsFault::begin));
  });
  cuda::for_each(call, s.count, [=] ARENITE_THREAD(std::int64_t i) {
    const bool inside = *begin >= 0 && *begin <= s.last;
    y[i] = inside ? x[*begin * s.row + i] : T{0};
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(dynamic_slice)(runtime::KernelTable& kernels) {
  kernels.add("dynamic_slice",
              cuda::copying<state_of>(run<std::uint8_t>, run<std::uint32_t>, run<std::uint64_t>));
}

}  // namespace arenite::codelets
