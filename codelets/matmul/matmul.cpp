// matmul(a, b, transpose_a, transpose_b) -> c, of float32 or float64:
//   a [m, n] · b [n, k] -> c [m, k]
//   a [n] · b [n, k] -> c [k]: a is a row
//   a [b, m, n] · b [b, n, k] -> c [b, m, k]: each matrix with its own
// transpose_a=1 reads the last two axes of a transposed: it has the shape [n, m]. A vector has
// none. Gradients are products again.
#include "codelets/matmul/sizes.hpp"
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/simpler.hpp"

namespace arenite::codelets {

std::vector<Kernel> matmul_kernels();

namespace {

Results infer(const OpView& op) {
  const DType type = op.operand(0).type;
  expect_real(op, 0);
  expect_type(op, 1, type);
  const bool transpose_a = flag(op, "transpose_a"), transpose_b = flag(op, "transpose_b");
  const Shape &a = op.operand(0).shape, &b = op.operand(1).shape;
  const int rank = a.rank();
  if (rank < 1 || rank > 3) {
    fail({.found = operand_text(op, 0) + " of shape " + to_string(a),
          .expected = "rank 1 to 3, [n], [m, n] or [b, m, n]"});
  }
  if (transpose_a && rank == 1) {
    fail({.found = "transpose_a=1 for a " + to_string(a),
          .expected = "0, as a vector has one axis only"});
  }
  const std::string batch = rank == 3 ? "[b, " : "[",
                    letters = batch + (transpose_b ? "k, n]" : "n, k]"),
                    of_a = " for a " + to_string(a) + (transpose_a ? " transposed" : "");
  expect_rank(op, 1, rank == 3 ? 3 : 2, letters + of_a);
  const std::int64_t inner = a.at(transpose_a ? -2 : -1), columns = b.at(transpose_b ? -2 : -1);
  Shape fitting = b.with(b.rank() - (transpose_b ? 1 : 2), inner);
  if (rank == 3) fitting = fitting.with(0, a[0]);
  expect_shape(op, 1, fitting, letters + of_a);
  if (rank == 1) return {{type, {columns}}};
  const std::int64_t rows = a.at(transpose_a ? -1 : -2);
  return {{type, a.with(rank - 2, rows).with(rank - 1, columns)}};
}

/// A vector as the matrix of one row that it stands for.
ValueId as_row(graph::Builder& builder, ValueId vector) {
  const std::int64_t length = builder.graph()[vector].shape[0];
  return builder.add1("reshape", {vector}, {{"shape", std::vector<std::int64_t>{1, length}}});
}

void gradient(graph::GradientContext& context) {
  ValueId of_c = context.result_gradient(0);
  if (!of_c || !(context.wants(0) || context.wants(1))) return;
  graph::Builder& builder = context.builder();
  const OpView forward = context.forward();
  const std::int64_t transpose_a = forward.integer("transpose_a"),
                     transpose_b = forward.integer("transpose_b"), yes = 1;
  const bool is_vector = forward.operand(0).shape.rank() == 1;
  const std::int64_t length = forward.operand(0).shape.at(-1);
  ValueId a = context.operand(0);
  const ValueId b = context.operand(1);
  const auto product = [&](ValueId left, ValueId right, std::int64_t left_transposed,
                           std::int64_t right_transposed) {
    return builder.add1("matmul", {left, right},
                        {{"transpose_a", left_transposed}, {"transpose_b", right_transposed}});
  };
  if (is_vector) of_c = as_row(builder, of_c);
  if (context.wants(0)) {
    const ValueId of_a = transpose_a == 1 ? product(b, of_c, transpose_b, yes)
                                          : product(of_c, b, 0, 1 - transpose_b);
    context.set(0, is_vector ? builder.add1("reshape", {of_a},
                                            {{"shape", std::vector<std::int64_t>{length}}})
                             : of_a);
  }
  if (context.wants(1)) {
    if (is_vector) a = as_row(builder, a);
    context.set(1, transpose_b == 1 ? product(of_c, a, yes, transpose_a)
                                    : product(a, of_c, 1 - transpose_a, 0));
  }
}

/// Rows of a by the whole b, or matrices of a by those of b.
std::optional<graph::OfShare> of_share(const OpView& op, const graph::Share& share) {
  const int rank = op.operand(0).shape.rank();
  const bool rows = share.has_rows(0),
             by_row = rank == 2 && rows && share.is_whole(1) && op.integer("transpose_a") == 0,
             by_matrix = rank == 3 && rows && share.has_rows(1);
  if (!by_row && !by_matrix) return std::nullopt;
  return all_rows(op, op.attributes());
}

/// Reads what was transposed for it as it was before.
std::optional<Simpler> simplify(const OpView& op) {
  const char* const flags[] = {"transpose_a", "transpose_b"};
  for (std::size_t i = 0; i < 2; ++i) {
    const graph::Op* permuted = made_by(op, i, "permute");
    if (!permuted || !swaps_last_two(*permuted)) continue;
    std::vector<ValueId> operands = op.op().operands;
    operands[i] = permuted->operands[0];
    graph::Attributes attributes = op.attributes();
    attributes.set(flags[i], 1 - op.integer(flags[i]));
    return is_op("matmul", std::move(operands), std::move(attributes));
  }
  return std::nullopt;
}

/// 2·b·m·n·k: one multiplication and one addition for every term.
graph::Cost cost(const OpView& op) {
  const MatmulSizes size(op);
  const double terms = static_cast<double>(op.result(0).shape.elements());
  return {.flops = 2 * terms * static_cast<double>(size.inner), .bytes = bytes_touched(op)};
}

}  // namespace

void register_matmul(Registry& registry) {
  registry.add({.name = "matmul",
                .operands = {factor("a"), factor("b")},
                .results = {"c"},
                .attributes = {{"transpose_a", graph::AttributeType::integer, std::int64_t{0}},
                               {"transpose_b", graph::AttributeType::integer, std::int64_t{0}}},
                .infer = infer,
                .gradient = gradient,
                .cost = cost,
                .simplify = simplify,
                .of_share = of_share},
               matmul_kernels());
}

}  // namespace arenite::codelets
