// dynamic_slice(x [R, …], begin int64 [1], rows) -> y [rows, …]: a copy of rows begin …
// begin + rows − 1 of the first axis. Where a slice's begin is known when the graph is built, this
// one's is data: see RowsFault. Its gradient is zeros with those rows replaced.
#include "codelets/dynamic_rows.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> dynamic_slice_kernels();

namespace {

using graph::OpView;

std::vector<graph::ResultType> infer(const OpView& op) {
  expect_rows(op, 0);
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

void gradient(graph::GradientContext& context) {
  const graph::ValueId gradient = context.result_gradient(0);
  const graph::Value& x = context.forward().operand(0);
  if (!gradient || !context.wants(0) || !is_real(x.type)) return;
  const std::vector<std::int64_t> shape(x.shape.begin(), x.shape.end());
  const graph::ValueId zeros = context.builder().add1(
      "full", {}, {{"shape", shape}, {"type", std::string(to_string(x.type))}});
  context.set(0, context.builder().add1("replace_slice", {zeros, gradient, context.operand(1)}));
}

}  // namespace

void register_dynamic_slice(Registry& registry) {
  graph::OperatorDefinition slice;
  slice.name = "dynamic_slice";
  slice.operands = {{"x"}, {"begin"}};
  slice.results = {"y"};
  slice.attributes = {{"rows", graph::AttributeType::integer, {}}};
  slice.infer = infer;
  slice.gradient = gradient;
  slice.status_messages = rows_status_messages();
  registry.add(std::move(slice), dynamic_slice_kernels());
}

}  // namespace arenite::codelets
