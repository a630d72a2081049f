#include "codelets/dynamic_rows.hpp"
#include "codelets/rows.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets {
namespace {

struct State {
  ByteRows x, replacement, y;
  std::int64_t rows = 0, replaced = 0;
  bool has_end = false;
};

void replace(const KernelCall& call, const State& state) {
  const auto *x = call.in<std::uint8_t>(0), *replacement = call.in<std::uint8_t>(1);
  auto* y = call.out<std::uint8_t>(0);
  const DynamicRows rows{state.rows, state.replaced, call.in<std::int64_t>(2),
                         state.has_end ? call.in<std::int64_t>(3) : nullptr};
  const std::uint32_t fault = rows.fault();
  if (fault != 0) call.status->report(call.op, fault);
  const std::int64_t first = fault == 0 ? *rows.begin : 0,
                     end = fault == 0 ? first + state.replaced : 0;
  // In place the other rows are there already, and the zeros around all of them.
  if (x != y) {
    state.x.copy(x, state.y, y, first);
    state.x.copy(x + state.x.span(end), state.y, y + state.y.span(end), state.rows - end);
    state.y.zero_halo(y);
  }
  state.replacement.copy(replacement, state.y, y + state.y.span(first), end - first);
}

State state_of(const OpView& op) {
  const graph::Value &x = op.operand(0), &replacement = op.operand(1), &y = op.result(0);
  const bool by_row = any_halo({&x, &replacement, &y});
  return {.x = ByteRows(x, by_row),
          .replacement = ByteRows(replacement, by_row),
          .y = ByteRows(y, by_row),
          .rows = y.shape[0],
          .replaced = replacement.shape[0],
          .has_end = op.has_operand(3)};
}

}  // namespace

std::vector<Kernel> replace_slice_kernels() {
  return {plain_with_halos<prepare<state_of, replace>, skipped_halo<0, 1>>()};
}

}  // namespace arenite::codelets
