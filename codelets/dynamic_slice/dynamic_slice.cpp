// dynamic_slice(x [R, …], begin int64 [1], rows) -> y [rows, …]: a copy of rows begin …
// begin + rows − 1 of the first axis. Where a slice's begin is known when the graph is built, this
// one's is data: see RowsFault. Its gradient is zeros with those rows replaced.
#include "codelets/dynamic_rows.hpp"
#include "codelets/registry.hpp"
#include "codelets/simpler.hpp"

namespace arenite::codelets {

std::vector<Kernel> dynamic_slice_kernels();

namespace {

Results infer(const OpView& op) {
  expect_axes(op, 0, "[R, …]");
  expect_begin(op, 1);
  const graph::Value& x = op.operand(0);
  const std::int64_t rows = op.integer("rows");
  if (rows < 0 || rows > x.shape[0]) {
    fail({.found = "rows=" + std::to_string(rows),
          .expected = "0 ≤ rows ≤ " + std::to_string(x.shape[0]) + ", as x has the shape " +
                      to_string(x.shape)});
  }
  return {{x.type, x.shape.with(0, rows)}};
}

/// From a begin that is known, and right. Of doubles `slice` has no gradient.
std::optional<Simpler> simplify(const OpView& op) {
  if (op.operand(0).type == DType::float64) return std::nullopt;
  const std::int64_t rows = op.integer("rows");
  const auto begin = constant(op, 1);
  if (!begin || *begin < 0 || *begin > static_cast<double>(op.operand(0).shape[0] - rows))
    return std::nullopt;
  const auto first = static_cast<std::int64_t>(*begin);
  return is_op("slice", {op.op().operands[0]}, {{"begin", first}, {"end", first + rows}});
}

void gradient(graph::GradientContext& context) {
  const ValueId gradient = context.result_gradient(0);
  const graph::Value& x = context.forward().operand(0);
  if (!gradient || !context.wants(0) || !is_real(x.type)) return;
  const ValueId zeros = zeros_like(context.builder(), x);
  context.set(0, context.builder().add1("replace_slice", {zeros, gradient, context.operand(1)}));
}

}  // namespace

void register_dynamic_slice(Registry& registry) {
  registry.add({.name = "dynamic_slice",
                .operands = {{"x"}, {"begin"}},
                .results = {"y"},
                .attributes = {{"rows", graph::AttributeType::integer, {}}},
                .infer = infer,
                .gradient = gradient,
                .simplify = simplify,
                .fault = faults(begin_fault)},
               dynamic_slice_kernels());
}

}  // namespace arenite::codelets
