// softmax_cross_entropy(logits [N, C], labels int32 [N], weights float32 [N]), attribute divisor
// (0: N), in one sweep:
//   loss float32 [1]                 sum over samples of −weight · log softmax(logits)[label], over
//                                    divisor
//   statistics float64 [2]           that sum, not divided; the number of samples whose largest
//                                    logit is the label's (of equal ones the first counts; a row
//                                    with NaN does not)
//   logits_gradient float32 [N, C]   weight · (softmax(logits) − onehot(labels)) / divisor
// Without weights all are 1. A sample of weight 0 is not looked at, whatever its logits and label.
// A lane gives the whole batch's size as divisor, so that the lanes' losses and gradients add up.
#include "codelets/softmax_cross_entropy/softmax_cross_entropy.hpp"

#include "codelets/rules.hpp"

namespace arenite::codelets {
namespace {

using graph::GradientContext;
Results infer_loss(const OpView& op) {
  expect_type(op, 0, DType::float32);
  expect_rank(op, 0, 2, "[N, C]");
  const Shape& logits = op.operand(0).shape;
  expect_value(op, 1, DType::int32, {logits[0]},
               "one label for each row of logits " + to_string(logits));
  if (op.has_operand(2)) {
    expect_value(op, 2, DType::float32, {logits[0]},
                 "one weight for each row of logits " + to_string(logits));
  }
  if (logits.elements() == 0) {
    fail({.found = operand_text(op, 0) + " of shape " + to_string(logits),
          .expected = "at least one sample and one class"});
  }
  const std::int64_t divisor = op.integer("divisor");
  if (divisor < 0) {
    fail({.found = "divisor=" + std::to_string(divisor),
          .expected = "at least 1, or 0 for the number of samples"});
  }
  return {{DType::float32, {1}}, {DType::float64, {2}}, {DType::float32, logits}};
}

/// Of a sample's weight: its loss, over the divisor.
ValueId weights_gradient(GradientContext& context) {
  graph::Builder& builder = context.builder();
  const OpView op = context.forward();
  const std::int64_t samples = op.operand(0).shape[0], given = op.integer("divisor");
  const ValueId labels = builder.add1("reshape", {context.operand(1)},
                                      {{"shape", std::vector<std::int64_t>{samples, 1}}});
  const std::string divisor = std::to_string(given > 0 ? given : samples);
  return builder.add1(
      "reduce", {context.operand(0), labels},
      {{"axes", std::vector<std::int64_t>{1}},
       {"keep", std::int64_t{0}},
       {"expression",
        "yield (logsumexp($1) - sum(select(index(1) == int64($2), $1, 0))) / " + divisor}});
}

void loss_gradient(GradientContext& context) {
  const bool of_weights = context.forward().has_operand(2) && context.wants(2);
  if (!context.wants(0) && !of_weights) return;
  for (std::size_t i : {1u, 2u}) {
    if (!context.is_seed(i) && !context.result_gradient(i)) continue;
    fail({.found = "a gradient of result '" + context.forward().op().definition->results[i] + "'",
          .expected = "a gradient of 'loss' only",
          .where = context.forward().op().where});
  }
  const bool is_seed = context.is_seed(0);  // of 1, which changes nothing
  const ValueId factor = is_seed ? ValueId{} : context.result_gradient(0);
  if (!is_seed && !factor) return;
  const auto set = [&](std::size_t operand, ValueId gradient) {
    context.set(operand,
                is_seed ? gradient : context.builder().add1("scale_by", {gradient, factor}));
  };
  if (context.wants(0)) set(0, context.result(2));  // which the forward pass has computed already
  if (of_weights) set(2, weights_gradient(context));
}

/// The divisor is the whole batch's, so that the shares' losses add up to its mean.
std::optional<graph::OfShare> loss_of_share(const OpView& op, const graph::Share& share) {
  for (std::size_t i = 0; i < op.operand_count(); ++i)
    if (op.has_operand(i) && !share.has_rows(i)) return std::nullopt;
  graph::Attributes attributes = op.attributes();
  if (op.integer("divisor") == 0) attributes.set("divisor", op.operand(0).shape[0]);
  using enum graph::OfShare::Result;
  return graph::OfShare{.results = {sum, sum, rows}, .attributes = std::move(attributes)};
}

/// Labels of a lane are rows of the batch's, or a batch of their own.
ErrorText wrong_label(const OpView& op, std::uint32_t code, std::span<const void* const> operands) {
  const std::int64_t row = std::int64_t{code} - 1, first = op.operand(1).offset / 4,
                     classes = op.operand(0).shape[1];
  const bool is_apart = op.op().lane > 0 && first == 0;
  const std::string label =
      operands[1] == nullptr
          ? "a label"
          : "label " + std::to_string(static_cast<const std::int32_t*>(operands[1])[row]);
  return {.found = label + " of sample " + std::to_string(first + row) +
                   (is_apart ? " of lane " + std::to_string(op.op().lane) : ""),
          .expected = "0 to " + std::to_string(classes - 1) + ", one of " +
                      std::to_string(classes) + " classes"};
}

}  // namespace

void register_softmax_cross_entropy(Registry& registry) {
  registry.add({.name = "softmax_cross_entropy",
                .operands = {{"logits"}, {"labels"}, {.name = "weights", .optional = true}},
                .results = {"loss", "statistics", "logits_gradient"},
                .attributes = {{"divisor", graph::AttributeType::integer, std::int64_t{0}}},
                .infer = infer_loss,
                .gradient = loss_gradient,
                .in_place = {{2, 0}},
                .cost = cost_each<25>,  // about twenty operations an exponential
                .of_share = loss_of_share,
                .fault = wrong_label},
               softmax_cross_entropy_kernels());
}

}  // namespace arenite::codelets
