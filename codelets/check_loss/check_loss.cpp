// check_loss(learning_rate?, loss, …) -> rate: the same rate, as a new version of it, where the sum
// of the losses is finite. Else it is a fault of the step. Updates read that version: they wait for
// it, and then change nothing. Without a learning rate the result has no elements, and takes no
// bytes: as a loss of another check_loss it is one that has been looked at.
#include "codelets/check_loss/check_loss.hpp"

#include "codelets/rules.hpp"

namespace arenite::codelets {
namespace {

Results infer_check(const OpView& op) {
  if (op.has_operand(0)) expect_value(op, 0, DType::float32, {1}, "the learning rate");
  for (std::size_t i = 1; i < op.operand_count(); ++i) {
    expect_type(op, i, DType::float32);
    if (op.operand(i).shape.elements() <= 1) continue;
    fail({.found = operand_text(op, i) + " of shape " + to_string(op.operand(i).shape),
          .expected = "one number"});
  }
  if (op.operand_count() - 1 > Losses::most) {
    fail({.found = std::to_string(op.operand_count() - 1) + " losses",
          .expected = "at most " + std::to_string(Losses::most)});
  }
  return {{DType::float32, {op.has_operand(0) ? 1 : 0}}};
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

CheckLoss check_loss(const OpView& op) {
  CheckLoss made{.renews = op.has_operand(0)};
  for (std::size_t i = 1; i < op.operand_count(); ++i) {
    if (op.operand(i).shape.elements() == 0) continue;
    made.operands[made.count++] = static_cast<std::uint8_t>(i);
  }
  return made;
}

Losses losses_of(const KernelCall& call, const CheckLoss& of) {
  Losses losses{.count = of.count};
  for (int i = 0; i < of.count; ++i) losses.parts[i] = call.in<float>(of.operands[i]);
  return losses;
}

void register_check_loss(Registry& registry) {
  registry.add(
      {.name = "check_loss",
       .operands = {{.name = "learning_rate", .optional = true, .renews = graph::Renews::state},
                    {"loss"}},
       .variadic = 1,
       .results = {"rate"},
       .infer = infer_check,
       .fault = fault},
      check_loss_kernels());
}

}  // namespace arenite::codelets
