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

/// What a step says of the rows to replace.
struct Rows {
  const std::int64_t *begin, *end;  ///< `end` may be null

  ARENITE_GPU bool inside(const State& s) const {
    return *begin >= 0 && *begin <= s.rows - s.replaced;
  }
  ARENITE_GPU bool agree(const State& s) const {
    return end == nullptr || *end == *begin + s.replaced;
  }
};

Rows report_rows(const KernelCall& call, const State& s) {
  const Rows rows{call.in<std::int64_t>(2), s.has_end ? call.in<std::int64_t>(3) : nullptr};
  runtime::StatusWord* status = call.status;
  const std::uint32_t op = call.op;
  cuda::for_each(call, 1, [=] ARENITE_THREAD(std::int64_t) {
    if (!rows.inside(s)) {
      cuda::report(status, op, static_cast<std::uint32_t>(RowsFault::begin));
    } else if (!rows.agree(s)) {
      cuda::report(status, op, static_cast<std::uint32_t>(RowsFault::end));
    }
  });
  return rows;
}

template <class T>
void replace(const KernelCall& call) {
  const State s = *static_cast<const State*>(call.state);
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  const Rows rows = report_rows(call, s);
  // In place the other rows are there already.
  if (x != y)
    cuda::for_each(call, s.rows * s.row, [=] ARENITE_THREAD(std::int64_t i) { y[i] = x[i]; });
  const T* replacement = call.in<T>(1);
  cuda::for_each(call, s.replaced * s.row, [=] ARENITE_THREAD(std::int64_t i) {
    if (rows.inside(s) && rows.agree(s)) y[*rows.begin * s.row + i] = replacement[i];
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(replace_slice)(runtime::KernelTable& kernels) {
  using std::uint32_t, std::uint64_t, std::uint8_t;
  kernels.add("replace_slice",
              cuda::copying<state_of>(replace<uint8_t>, replace<uint32_t>, replace<uint64_t>));
}

}  // namespace arenite::codelets
