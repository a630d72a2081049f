#include "codelets/rows.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets {
namespace {

struct State {
  ByteRows gradient, dx;
  std::int64_t begin = 0, end = 0, all = 0;  ///< rows of dx: the slice, and how many there are
};

void run(const KernelCall& call, const State& s) {
  auto* dx = call.out<std::uint8_t>(0);
  // All zero bits are the number 0.
  std::fill_n(dx, s.dx.span(s.begin), std::uint8_t{0});
  s.gradient.copy(call.in<std::uint8_t>(0), s.dx, dx + s.dx.span(s.begin), s.end - s.begin);
  std::fill(dx + s.dx.span(s.end), dx + s.dx.span(s.all), std::uint8_t{0});
  s.dx.zero_halo(dx);
}

State state_of(const OpView& op) {
  const graph::Value &gradient = op.operand(0), &dx = op.result(0);
  const bool by_row = any_halo({&gradient, &dx});
  const std::int64_t begin = op.integer("begin");
  return {ByteRows(gradient, by_row), ByteRows(dx, by_row), begin, begin + gradient.shape[0],
          dx.shape[0]};
}

}  // namespace

std::vector<Kernel> slice_grad_kernels() {
  return {plain_with_halos<prepare<state_of, run>, skipped_halo<0>>()};
}

}  // namespace arenite::codelets
