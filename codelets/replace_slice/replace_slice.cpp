// replace_slice(x [R, …], replacement [n, …], begin int64 [1], end int64 [1]?) -> y [R, …]: x, but
// for rows begin … begin + n − 1 of the first axis, which are the replacement. In place of x only
// those are written. Begin is data: see RowsFault. So is end, which says once more what begin + n
// has to be.
#include "codelets/dynamic_rows.hpp"
#include "codelets/registry.hpp"
#include "codelets/simpler.hpp"

namespace arenite::codelets {

std::vector<Kernel> replace_slice_kernels();

namespace {

Results infer(const OpView& op) {
  expect_axes(op, 0, "[R, …]");
  const graph::Value &x = op.operand(0), &replacement = op.operand(1);
  expect_type(op, 1, x.type);
  const Shape& shape = replacement.shape;
  if (shape.rank() != x.shape.rank() || shape[0] > x.shape[0] ||
      shape.with(0, 0) != x.shape.with(0, 0)) {
    fail({.found = operand_text(op, 1) + " of shape " + to_string(shape),
          .expected = "at most " + std::to_string(x.shape[0]) + " rows like those of '" +
                      op.op().definition->operand_schema(0).name + "', of the shape " +
                      to_string(x.shape)});
  }
  expect_begin(op, 2);
  if (op.has_operand(3)) {
    expect_value(op, 3, DType::int64, {1}, "the index behind the last row");
  }
  return {{x.type, x.shape}};
}

double bytes_of(const graph::Value& value) {
  return static_cast<double>(graph::byte_size(value.type, value.shape));
}

/// The rows are read and written, whatever else x holds, and x is copied where y lies elsewhere.
graph::Cost cost(const OpView& op) {
  graph::Cost cost{.bytes = 2 * bytes_of(op.operand(1))};
  if (op.graph().root(op.operand(0).storage) != op.graph().root(op.result(0).storage))
    cost.bytes += 2 * bytes_of(op.operand(0));
  return cost;
}

/// All rows of x, which is known. An x that may be trained stays: its gradient is zeros, and it has
/// an update.
std::optional<Simpler> simplify(const OpView& op) {
  const graph::Value& x = op.operand(0);
  const bool untrained =
      constant(op, 0) || (x.is_declared() && op.graph().root_storage(op.op().operands[0]).cls !=
                                                 graph::StorageClass::parameter);
  const Shape& shape = op.operand(1).shape;
  const auto end = constant(op, 3);
  const bool all = untrained && shape == x.shape && constant(op, 2) == 0.0 &&
                   (!op.has_operand(3) || end == static_cast<double>(shape[0]));
  return all ? is_value(op.op().operands[1]) : std::nullopt;
}

void gradient(graph::GradientContext& context) {
  const ValueId gradient = context.result_gradient(0), begin = context.operand(2);
  const graph::Value replacement = context.forward().operand(1);  // appending ops moves it
  if (!gradient || !is_real(replacement.type)) return;
  graph::Builder& builder = context.builder();
  // First what reads the gradient: then the other may take its place.
  if (context.wants(1))
    context.set(1,
                builder.add1("dynamic_slice", {gradient, begin}, {{"rows", replacement.shape[0]}}));
  if (context.wants(0))
    context.set(0,
                builder.add1("replace_slice", {gradient, zeros_like(builder, replacement), begin}));
}

}  // namespace

void register_replace_slice(Registry& registry) {
  FaultTexts texts = begin_fault;
  texts.emplace_back(static_cast<std::uint32_t>(RowsFault::end),
                     "an end that is not begin and the replacement's rows");
  registry.add({.name = "replace_slice",
                .operands = {{.name = "x", .renews = graph::Renews::buffers},
                             {"replacement"},
                             {"begin"},
                             {.name = "end", .optional = true}},
                .results = {"y"},
                .infer = infer,
                .gradient = gradient,
                .cost = cost,
                .simplify = simplify,
                .fault = faults(texts)},
               replace_slice_kernels());
}

}  // namespace arenite::codelets
