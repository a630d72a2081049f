// dense(x [N, I], weight [I, O], bias [O] or [1, O]?) -> y [N, O] = x · weight + bias,
// dense_relu(…), which is relu(dense(…)), and their gradients:
//   dense_grad_input(gradient [N, O], weight [I, O]) -> dx [N, I] = gradient · weightᵀ
//   dense_grad_input_relu(gradient, weight, output [N, I]) is relu_grad of that: 0 where output is
//   dense_grad_weight(x [N, I], gradient [N, O], …) -> dweight [I, O] = Σ xᵀ · gradient
// The last takes any number of pairs, each with an N of its own: the lanes of a batch. Its `rows`,
// [begin, end), ask for those rows of dweight only.
//   dense_grad_weight_sgd(weight, learning_rate, velocity?, x, gradient, …) is `sgd` with that
//   gradient, which is never written: weight and velocity are [I, O], or those rows of it
// The bias' gradient is bias_grad(gradient). A product of matrices and a sum with a row [1, O] are
// fused to it.
#include "codelets/dense/dense.hpp"

#include "codelets/rules.hpp"
#include "codelets/sgd/sgd.hpp"
#include "codelets/simpler.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

void expect_matrix(const OpView& op, std::size_t i, const char* letters) {
  expect_type(op, i, DType::float32);
  expect_rank(op, i, 2, letters);
}

Results infer_dense(const OpView& op) {
  expect_matrix(op, 0, "[N, I]");
  expect_matrix(op, 1, "[I, O]");
  const Shape &x = op.operand(0).shape, &weight = op.operand(1).shape;
  expect_shape(op, 1, {x[1], weight[1]}, "[I, O] for x " + to_string(x));
  if (op.has_operand(2)) {
    expect_type(op, 2, DType::float32);
    if (op.operand(2).shape != Shape{1, weight[1]})
      expect_shape(op, 2, {weight[1]}, "[O] of weight " + to_string(weight));
  }
  return {{DType::float32, {x[0], weight[1]}}};
}

Results infer_grad_input(const OpView& op) {
  expect_matrix(op, 0, "[N, O]");
  expect_matrix(op, 1, "[I, O]");
  const Shape &gradient = op.operand(0).shape, &weight = op.operand(1).shape;
  expect_shape(op, 1, {weight[0], gradient[1]}, "[I, O] for gradient " + to_string(gradient));
  return {{DType::float32, {gradient[0], weight[0]}}};
}

/// Shape of Σ xᵀ · gradient over the pairs from operand `first` on.
Shape expect_pairs(const OpView& op, std::size_t first) {
  expect_matrix(op, first, "[N, I]");
  expect_matrix(op, first + 1, "[N, O]");
  const Shape &x = op.operand(first).shape, &gradient = op.operand(first + 1).shape;
  expect_shape(op, first + 1, {x[0], gradient[1]}, "[N, O] for x " + to_string(x));
  for (std::size_t i = first + 2; i + 1 < op.operand_count(); i += 2) {
    expect_matrix(op, i, "[N, I]");
    expect_matrix(op, i + 1, "[N, O]");
    const std::int64_t samples = op.operand(i).shape[0];
    expect_shape(op, i, {samples, x[1]}, "[N, I] like the first x " + to_string(x));
    expect_shape(op, i + 1, {samples, gradient[1]},
                 "[N, O] for x " + to_string(op.operand(i).shape));
  }
  const auto& rows = op.attributes().integers("rows");
  if (rows.empty()) return {x[1], gradient[1]};
  if (rows.size() != 2 || rows[0] < 0 || rows[1] <= rows[0] || rows[1] > x[1]) {
    fail({.found = "rows=" + graph::to_string(*op.attributes().find("rows")),
          .expected = "none, or [begin, end) with 0 ≤ begin < end ≤ " + std::to_string(x[1]) +
                      ", the I of x " + to_string(x)});
  }
  return {rows[1] - rows[0], gradient[1]};
}

Results infer_grad_weight(const OpView& op) { return {{DType::float32, expect_pairs(op, 0)}}; }

constexpr sgd::Operands updated{.weight = 0, .learning_rate = 1, .velocity = 2};
constexpr std::size_t first_pair = 3;

Results infer_update(const OpView& op) {
  if (!op.has_operand(first_pair) || !op.has_operand(first_pair + 1)) {
    fail({.found = std::to_string(op.operand_count()) + " operands",
          .expected = "weight, learning_rate, velocity or none, and pairs of x and gradient"});
  }
  expect_type(op, updated.weight, DType::float32);
  expect_shape(op, updated.weight, expect_pairs(op, first_pair), "the shape of the gradient");
  sgd::expect_rule(op, updated);
  return sgd::versions(op);
}

Results infer_grad_input_relu(const OpView& op) {
  Results dx = infer_grad_input(op);
  expect_value(op, 2, DType::float32, dx[0].shape, "the shape of the result");
  return dx;
}

/// From the gradient of x · weight + bias on.
void add_gradients(graph::GradientContext& context, ValueId gradient) {
  graph::Builder& builder = context.builder();
  if (context.wants(0)) {
    context.set(0, builder.add1("dense_grad_input", {gradient, context.operand(1)}));
  }
  if (context.wants(1)) {
    context.set(1, builder.add1("dense_grad_weight", {context.operand(0), gradient}));
  }
  if (context.forward().has_operand(2) && context.wants(2)) {
    const std::int64_t outputs = builder.graph()[gradient].shape[1];
    const bool is_row = context.forward().operand(2).shape.rank() == 2;
    const ValueId sums = builder.add1("bias_grad", {gradient});
    context.set(2, is_row ? builder.add1("reshape", {sums},
                                         {{"shape", std::vector<std::int64_t>{1, outputs}}})
                          : sums);
  }
}

void dense_gradient(graph::GradientContext& context) {
  if (const ValueId gradient = context.result_gradient(0)) add_gradients(context, gradient);
}

void dense_relu_gradient(graph::GradientContext& context) {
  const ValueId gradient = context.result_gradient(0);
  const bool wanted = context.wants(0) || context.wants(1) ||
                      (context.forward().has_operand(2) && context.wants(2));
  if (!gradient || !wanted) return;
  add_gradients(context, context.builder().add1("relu_grad", {gradient, context.result(0)}));
}

/// Two ops one behind the other, as they are.
std::optional<graph::Attributes> fuse_as_they_are(const std::vector<OpView>&) {
  return graph::Attributes{};
}

std::optional<graph::Attributes> attributes_of_both(const std::vector<OpView>& chain) {
  graph::Attributes all = chain.at(1).op().attributes;
  for (const std::string_view name : {std::string_view("rows"), graph::sum_tree})
    all.set(name, *chain.at(0).op().attributes.find(name));
  return all;
}

/// matmul(x, weight) of two matrices as they are, then add(…, bias [1, O]).
std::optional<graph::Attributes> fuse(const std::vector<OpView>& chain) {
  const OpView &product = chain.at(0), &sum = chain.at(1);
  const graph::Value& y = product.result(0);
  const bool plain = product.integer("transpose_a") == 0 && product.integer("transpose_b") == 0;
  if (!plain || y.type != DType::float32 || y.shape.rank() != 2) return std::nullopt;
  if (sum.operand(1).shape != Shape{1, y.shape[1]}) return std::nullopt;
  return graph::Attributes{};
}

/// A product of matrices that were transposed for it, which needs no copies of them then.
std::optional<Simpler> simplify(const OpView& op) {
  if (op.has_operand(2)) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    const graph::Op* permuted = made_by(op, i, "permute");
    if (permuted && swaps_last_two(*permuted)) {
      return is_op("matmul", {op.op().operands[0], op.op().operands[1]},
                   {{"transpose_a", std::int64_t{0}}, {"transpose_b", std::int64_t{0}}});
    }
  }
  return std::nullopt;
}

/// Rows of x by the whole weight; or of some features, which are columns of x and rows of the
/// weight, a term of the product.
template <bool relu>
std::optional<graph::OfShare> of_share(const OpView& op, const graph::Share& share) {
  if (!share.is(graph::Split::columns, 0)) return rows_of_first<>(op, share);
  const bool biased = op.has_operand(2);
  if (!share.has_rows(1) || !share.is_whole(2)) return std::nullopt;
  if (biased && op.operand(2).shape.rank() != 1) return std::nullopt;
  graph::OfShare term{.results = {graph::OfShare::Result::sum}, .attributes = {}, .name = "dense"};
  if (biased) term.finish.push_back({"bias", {2}});
  if (relu) term.finish.push_back({"relu", {}});
  return term;
}

/// Rows of the gradient by the whole weight; or by some rows of the weight, those columns of dx.
std::optional<graph::OfShare> grad_input_of_share(const OpView& op, const graph::Share& share) {
  if (!share.is_whole(0) || !share.has_rows(1)) return rows_of_first<>(op, share);
  return graph::OfShare{.results = {graph::OfShare::Result::columns}, .attributes = {}};
}

/// Some rows of dweight, where nobody has asked for some by hand.
std::optional<graph::OfShare> grad_weight_of_share(const OpView& op, const graph::Share& share) {
  if (share.count_split() > 0 || !op.attributes().integers("rows").empty()) return std::nullopt;
  graph::Attributes attributes = op.attributes();
  attributes.set("rows", std::vector<std::int64_t>{share.begin, share.begin + share.count});
  return all_rows(op, std::move(attributes));
}

/// 2·N·I·O: each of the three products multiplies and adds once for every (sample, input, output).
graph::Cost cost(const OpView& op) {
  const Shape &a = op.operand(0).shape, &b = op.operand(1).shape, &c = op.result(0).shape;
  // Every letter of N, I and O is an axis of exactly two of the three matrices.
  const double squared = static_cast<double>(a.elements()) * static_cast<double>(b.elements()) *
                         static_cast<double>(c.elements());
  return {.flops = 2 * std::sqrt(squared), .bytes = bytes_touched(op)};
}

/// Of the pairs from operand `first` on, for so many rows; of x only the columns count that make
/// them. Without the bytes of the gradient itself.
graph::Cost cost_of_pairs(const OpView& op, std::size_t first, std::int64_t of_rows) {
  const auto rows = static_cast<double>(of_rows),
             outputs = static_cast<double>(op.operand(first + 1).shape[1]);
  graph::Cost total;
  for (std::size_t i = first; i + 1 < op.operand_count(); i += 2) {
    const auto samples = static_cast<double>(op.operand(i).shape[0]);
    total.flops += 2 * samples * rows * outputs;
    total.bytes += samples * (rows + outputs) * sizeof(float);
  }
  return total;
}

graph::Cost grad_weight_cost(const OpView& op) {
  const Shape& dweight = op.result(0).shape;
  graph::Cost total = cost_of_pairs(op, 0, dweight[0]);
  total.bytes += static_cast<double>(dweight.elements()) * sizeof(float);
  return total;
}

/// Weight and velocity are read and written.
graph::Cost update_cost(const OpView& op) {
  const Shape& weight = op.operand(updated.weight).shape;
  const auto n = static_cast<double>(weight.elements());
  const bool velocity = op.has_operand(updated.velocity);
  graph::Cost total = cost_of_pairs(op, first_pair, weight[0]);
  total.flops += (velocity ? 4 : 2) * n;
  total.bytes += (velocity ? 4 : 2) * n * sizeof(float);
  return total;
}

}  // namespace

void register_dense(Registry& registry) {
  graph::OperatorDefinition dense{
      .name = "dense",
      .operands = {factor("x"), factor("weight"), {.name = "bias", .optional = true}},
      .results = {"y"},
      .infer = infer_dense,
      .gradient = dense_gradient,
      .cost = cost,
      .simplify = simplify,
      .does = graph::ChainOf{{"matmul", "add"}, fuse},
      .of_share = of_share<false>};
  registry.add(dense, dense_kernels());
  dense.name = "dense_relu";
  dense.gradient = dense_relu_gradient;
  dense.simplify = {};
  dense.of_share = of_share<true>;
  dense.does = graph::ChainOf{{"dense", "relu"}, fuse_as_they_are};
  registry.add(std::move(dense), dense_kernels());

  graph::OperatorDefinition grad_input{.name = "dense_grad_input",
                                       .operands = {factor("gradient"), factor("weight")},
                                       .results = {"dx"},
                                       .infer = infer_grad_input,
                                       .cost = cost,
                                       .of_share = grad_input_of_share};
  registry.add(grad_input, dense_grad_input_kernels());
  grad_input.name = "dense_grad_input_relu";
  grad_input.operands.push_back({"output"});
  grad_input.infer = infer_grad_input_relu;
  grad_input.does = graph::ChainOf{{"dense_grad_input", "relu_grad"}, fuse_as_they_are};
  grad_input.of_share = {};
  registry.add(std::move(grad_input), dense_grad_input_kernels());

  const graph::AttributeSchema rows{"rows", graph::AttributeType::integers,
                                    std::vector<std::int64_t>{}};
  const graph::AttributeSchema tree{std::string(graph::sum_tree), graph::AttributeType::integer,
                                    std::int64_t{0}};
  registry.add({.name = "dense_grad_weight",
                .operands = {factor("x"), factor("gradient")},
                .variadic = 2,
                .results = {"dweight"},
                .attributes = {rows, tree},
                .infer = infer_grad_weight,
                .cost = grad_weight_cost,
                .does = graph::SumOf{"dense_grad_weight"},
                .of_share = grad_weight_of_share},
               dense_grad_weight_kernels());

  const auto states = sgd::states();
  graph::OperatorDefinition update{
      .name = "dense_grad_weight_sgd",
      .operands = {states[0], {"learning_rate"}, states[1], factor("x"), factor("gradient")},
      .variadic = 2,
      .results = {"weight", "velocity"},
      .attributes = sgd::attributes(),
      .infer = infer_update,
      .cost = update_cost,
      .does = graph::ChainOf{{"dense_grad_weight", "sgd"}, attributes_of_both, 1}};
  update.attributes.insert(update.attributes.end(), {rows, tree});
  registry.add(std::move(update), dense_grad_weight_sgd_kernels());
}

}  // namespace arenite::codelets
