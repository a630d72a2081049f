// replace_slice(x [R, …], replacement [n, …], begin int64 [1], end int64 [1]?) -> y [R, …]: x, but
// for rows begin … begin + n − 1 of the first axis, which are the replacement. In place of x only
// those are written. Begin is data: see RowsFault. So is end, which says once more what begin + n
// has to be.
#include "codelets/replace_slice/replace_slice.hpp"

#include "codelets/dynamic_rows.hpp"

namespace arenite::codelets {
namespace {

using graph::OpView;

std::vector<graph::ResultType> infer(const OpView& op) {
  expect_rows(op, 0);
  const graph::Value &x = op.operand(0), &replacement = op.operand(1);
  expect_type(op, 1, x.type);
  const Shape& shape = replacement.shape;
  if (shape.rank() != x.shape.rank() || shape[0] > x.shape[0] ||
      shape.with(0, 0) != x.shape.with(0, 0)) {
    fail({.found = operand_text(op, 1) + " of shape " + to_string(shape),
          .expected = "at most " + std::to_string(x.shape[0]) +
                      " rows like those of 'x', of the shape " + to_string(x.shape)});
  }
  expect_begin(op, 2);
  if (op.has_operand(3)) {
    expect_type(op, 3, DType::int64);
    expect_shape(op, 3, {1}, "the index behind the last row");
  }
  return {{x.type, x.shape}};
}

void gradient(graph::GradientContext& context) {
  const graph::ValueId gradient = context.result_gradient(0), begin = context.operand(2);
  const graph::Value& replacement = context.forward().operand(1);
  if (!gradient || !is_real(replacement.type)) return;
  const std::string type(to_string(replacement.type));
  const std::vector<std::int64_t> shape(replacement.shape.begin(), replacement.shape.end());
  graph::Builder& builder = context.builder();
  // First what reads the gradient: then the other may take its place.
  if (context.wants(1))
    context.set(1, builder.add1("dynamic_slice", {gradient, begin}, {{"rows", shape[0]}}));
  if (context.wants(0)) {
    const graph::ValueId zeros = builder.add1("full", {}, {{"shape", shape}, {"type", type}});
    context.set(0, builder.add1("replace_slice", {gradient, zeros, begin}));
  }
}

}  // namespace

void register_replace_slice(Registry& registry) {
  graph::OperatorDefinition replace;
  replace.name = "replace_slice";
  replace.operands = {{"x"},
                      {"replacement"},
                      {"begin"},
                      {.name = "end", .effect = graph::Effect::read, .optional = true}};
  replace.results = {"y"};
  replace.in_place = {{0, 0}};
  replace.new_version = true;
  replace.infer = infer;
  replace.gradient = gradient;
  replace.status_messages = rows_status_messages();
  replace.status_messages.emplace_back(static_cast<std::uint32_t>(RowsFault::end),
                                       "an end that is not begin and the replacement's rows");
  registry.add(std::move(replace), replace_slice_kernels());
}

}  // namespace arenite::codelets
