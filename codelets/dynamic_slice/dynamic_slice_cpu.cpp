#include "codelets/dynamic_rows.hpp"
#include "codelets/rows.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets {
namespace {

struct State {
  ByteRows x, y;
  std::int64_t all = 0, rows = 0;  ///< of x, of y
};

void run(const KernelCall& call, const State& state) {
  const DynamicRows rows{state.all, state.rows, call.in<std::int64_t>(1)};
  auto* y = call.out<std::uint8_t>(0);
  if (const std::uint32_t fault = rows.fault(); fault != 0) {
    call.status->report(call.op, fault);
    // All zero bits are the number 0 in each type.
    std::fill_n(y, state.y.span(state.rows), std::uint8_t{0});
    return;
  }
  const std::uint8_t* from = call.in<std::uint8_t>(0) + state.x.span(*rows.begin);
  state.x.copy(from, state.y, y, state.rows);
  state.y.zero_halo(y);
}

State state_of(const OpView& op) {
  const graph::Value &x = op.operand(0), &y = op.result(0);
  const bool by_row = any_halo({&x, &y});
  return {ByteRows(x, by_row), ByteRows(y, by_row), x.shape[0], y.shape[0]};
}

}  // namespace

std::vector<Kernel> dynamic_slice_kernels() {
  return {plain_with_halos<prepare<state_of, run>, skipped_halo<0>>()};
}

}  // namespace arenite::codelets
