// softmax_cross_entropy(logits [N, C], labels int32 [N]), attribute divisor (0: N), in one sweep:
//   loss float32 [1]                 sum over samples of −log softmax(logits)[label], over divisor
//   statistics float64 [2]           that sum, not divided; the number of samples whose largest
//                                    logit is the label's (of equal ones the first counts; a row
//                                    with NaN does not)
//   logits_gradient float32 [N, C]   (softmax(logits) − onehot(labels)) / divisor
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

void loss_gradient(GradientContext& context) {
  if (!context.wants(0)) return;
  for (std::size_t i : {1u, 2u}) {
    if (!context.is_seed(i) && !context.result_gradient(i)) continue;
    fail({.found = "a gradient of result '" + context.forward().op().definition->results[i] + "'",
          .expected = "a gradient of 'loss' only",
          .where = context.forward().op().where});
  }
  // The forward pass has computed it already; a seed of 1 changes nothing.
  if (context.is_seed(0)) {
    context.set(0, context.result(2));
  } else if (const ValueId factor = context.result_gradient(0)) {
    context.set(0, context.builder().add1("scale_by", {context.result(2), factor}));
  }
}

/// The divisor is the whole batch's, so that the shares' losses add up to its mean.
std::optional<graph::OfShare> loss_of_share(const OpView& op, const graph::Share& share) {
  if (!share.has_rows(0) || !share.has_rows(1)) return std::nullopt;
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
                .operands = {{"logits"}, {"labels"}},
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
