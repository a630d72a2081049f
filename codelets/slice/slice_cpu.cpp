#include "codelets/rows.hpp"

namespace arenite::codelets {
namespace {

/// Counts are floats of dx, halos included.
struct State {
  Rows from, into;          ///< the gradient, and its rows within dx
  std::int64_t before = 0;  ///< the rows ahead of the slice
  std::int64_t after = 0;   ///< where those behind it begin
  std::int64_t all = 0;
};

void run(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const float* gradient = call.in<float>(0);
  float* dx = call.out<float>(0);
  float* slice = dx + state.before;
  std::fill(dx, slice, 0.0f);
  for (std::int64_t r = 0; r < state.from.count(); ++r)
    std::copy_n(gradient + state.from.at(r), state.from.length(), slice + state.into.at(r));
  state.into.zero_halo(slice);
  std::fill(dx + state.after, dx + state.all, 0.0f);
}

State state_of(const OpView& op) {
  const graph::Value &gradient = op.operand(0), &dx = op.result(0);
  const bool by_row = any_halo({&gradient, &dx});
  graph::Value part = dx;
  part.shape = gradient.shape;
  const auto floats = [&](std::int64_t rows) {
    return graph::byte_size(dx.type, dx.shape.with(0, rows), dx.layout) / float_bytes;
  };
  const std::int64_t begin = op.integer("begin"), rows = op.integer("rows");
  return {.from = Rows(gradient, by_row),
          .into = Rows(part, by_row),
          .before = floats(begin),
          .after = floats(begin + gradient.shape[0]),
          .all = floats(rows)};
}

}  // namespace

std::vector<Kernel> slice_grad_kernels() {
  return {plain_with_halos<prepare<state_of, run>, skipped_halo<0>>()};
}

}  // namespace arenite::codelets
