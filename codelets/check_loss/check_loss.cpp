// check_loss(learning_rate, loss, …) -> rate: the same rate, as a new version of it, where the sum
// of the losses is finite. Else it is a fault of the step. Updates read that version: they wait for
// it, and then change nothing.
#include "codelets/check_loss/check_loss.hpp"

#include "codelets/rules.hpp"

namespace arenite::codelets {
namespace {

Results infer_check(const OpView& op) {
  expect_value(op, 0, DType::float32, {1}, "the learning rate");
  for (std::size_t i = 1; i < op.operand_count(); ++i) {
    expect_type(op, i, DType::float32);
    if (op.operand(i).shape.elements() == 1) continue;
    fail({.found = operand_text(op, i) + " of shape " + to_string(op.operand(i).shape),
          .expected = "one number"});
  }
  if (loss_count(op) > Losses::most) {
    fail({.found = std::to_string(loss_count(op)) + " losses",
          .expected = "at most " + std::to_string(Losses::most)});
  }
  return like_first(op);
}

ErrorText fault(const OpView&, std::uint32_t code, std::span<const void* const>) {
  const char* const found = code == static_cast<std::uint32_t>(LossFault::nan) ? "NaN"
                            : code == static_cast<std::uint32_t>(LossFault::infinite)
                                ? "infinity"
                                : "minus infinity";
  return {.found = std::string("a loss of ") + found,
          .expected = "a finite number",
          .hint = "a smaller learning rate, or gradients that are cut (clip_norm); finite inputs"};
}

}  // namespace

Losses losses_of(const KernelCall& call, int count) {
  Losses losses{.count = count};
  for (int i = 0; i < count; ++i) losses.parts[i] = call.in<float>(static_cast<std::size_t>(i) + 1);
  return losses;
}

int loss_count(const OpView& op) { return static_cast<int>(op.operand_count()) - 1; }

void register_check_loss(Registry& registry) {
  registry.add({.name = "check_loss",
                .operands = {{.name = "learning_rate", .renews = graph::Renews::state}, {"loss"}},
                .variadic = 1,
                .results = {"rate"},
                .infer = infer_check,
                .fault = fault},
               check_loss_kernels());
}

}  // namespace arenite::codelets
