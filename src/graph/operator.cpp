#include <arenite/error.hpp>
#include <arenite/graph/operator.hpp>

#include <algorithm>

#include "src/base/nearest.hpp"

namespace arenite::graph {
namespace {

std::size_t required(const OperatorDefinition& definition) {
  const auto& all = definition.operands;
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const auto& o) { return !o.optional; }));
}

/// Operands at the end of the last group, of so many.
std::size_t left_out_of(const OperatorDefinition& definition, std::size_t count) {
  const std::size_t group = definition.variadic;
  return group == 0 ? 0 : (group - (count - definition.operands.size()) % group) % group;
}

}  // namespace

std::string OperatorDefinition::expected_operands() const {
  std::string names;
  for (const OperandSchema& operand : operands)
    names += (names.empty() ? "" : ", ") + operand.name + (operand.optional ? "?" : "");
  const std::size_t least = required(*this);
  const std::size_t most = operands.size();
  std::string count = std::to_string(least), groups;
  if (least < most && variadic > 0) count = "at least " + count;
  if (least < most && variadic == 0)
    count += (most == least + 1 ? " or " : " to ") + std::to_string(most);
  if (variadic > 1) groups = ", and any number of the last " + std::to_string(variadic) + " again";
  return count + " (" + names + (variadic > 0 ? ", …" : "") + ")" + groups;
}

bool OperatorDefinition::takes(std::size_t count) const noexcept {
  if (count <= operands.size()) return count >= required(*this);
  if (variadic == 0) return false;
  const std::size_t left_out = left_out_of(*this, count);
  return std::all_of(operands.end() - static_cast<std::ptrdiff_t>(left_out), operands.end(),
                     [](const OperandSchema& operand) { return operand.optional; });
}

bool OperatorDefinition::is_optimizer() const noexcept {
  const auto renewed =
      std::ranges::count(operands, Renews::state, [](const OperandSchema& o) { return o.renews; });
  return variadic == 0 && operands.size() > 2 && operands[1].name == "gradient" &&
         operands[2].name == "learning_rate" &&
         (each_step || renewed + 2 == std::ssize(operands)) &&
         operands[1].renews == Renews::nothing && operands[2].renews == Renews::nothing;
}

Attributes OperatorDefinition::with_defaults(Attributes given) const {
  for (const AttributeSchema& schema : attributes) {
    if (!given.has(schema.name) && schema.default_value)
      given.set(schema.name, *schema.default_value);
  }
  return given;
}

bool OperatorDefinition::gives(const OperandSchema& operand, const Attributes& given) const {
  if (operand.given_with.empty()) return !operand.optional;
  return with_defaults(given).real(operand.given_with) != 0;
}

const OperandSchema& OperatorDefinition::operand_schema(std::size_t operand) const noexcept {
  if (operand < operands.size() || variadic == 0)
    return operands[std::min(operand, operands.size() - 1)];
  return operands[operands.size() - variadic + (operand - operands.size()) % variadic];
}

std::vector<ResultType> infer(const OpView& op) {
  const OperatorDefinition& definition = *op.op().definition;
  auto types = definition.infer(op);
  std::size_t count = std::max(op.operand_count(), definition.operands.size());
  count += left_out_of(definition, count);
  for (std::size_t i = 0; i < count; ++i) {
    const OperandSchema& schema = definition.operand_schema(i);
    if (schema.given_with.empty() || definition.gives(schema, op.attributes()) == op.has_operand(i))
      continue;
    const std::string with =
        schema.given_with + "=" + to_string(*op.attributes().find(schema.given_with));
    if (op.has_operand(i)) {
      fail({.found = with + " with a " + schema.name,
            .expected = "no " + schema.name,
            .hint = "leave the operand out: it would only take memory"});
    }
    fail(
        {.found = with + " without a " + schema.name, .expected = "operand '" + schema.name + "'"});
  }
  return types;
}

void OperatorTable::add(OperatorDefinition definition) {
  if (definition.name.empty() || !definition.infer) {
    fail({.found = "operator '" + definition.name + "' without a " +
                   (definition.name.empty() ? "name" : "shape rule"),
          .expected = "a name and an `infer` function"});
  }
  if (definition.variadic > definition.operands.size()) {
    fail({.found = "variadic operator '" + definition.name + "' without operands",
          .expected = "at least one operand to repeat"});
  }
  const auto* chain = std::get_if<ChainOf>(&definition.does);
  if (chain && (chain->operators.size() < 2 || !chain->attributes)) {
    fail({.found = "operator '" + definition.name + "' fused from a chain of " +
                   std::to_string(chain->operators.size()) +
                   (chain->attributes ? "" : " without a rule for its attributes"),
          .expected = "at least two operators and an `attributes` function"});
  }
  for (const OperandSchema& operand : definition.operands) {
    const auto decides = [&](const AttributeSchema& attribute) {
      return attribute.name == operand.given_with && attribute.default_value &&
             (attribute.type == AttributeType::real || attribute.type == AttributeType::integer);
    };
    if (operand.given_with.empty() ||
        (operand.optional && std::ranges::any_of(definition.attributes, decides)))
      continue;
    fail({.found = "operand '" + operand.name + "' of operator '" + definition.name +
                   "' given with '" + operand.given_with + "'",
          .expected = "an optional operand, and a number with a default among the attributes"});
  }
  const std::string name = definition.name;
  auto shared = std::make_shared<const OperatorDefinition>(std::move(definition));
  if (!definitions_.emplace(name, std::move(shared)).second) {
    fail({.found = "operator '" + name + "' registered twice", .expected = "a name of its own"});
  }
}

std::shared_ptr<const OperatorDefinition> OperatorTable::find(
    std::string_view name) const noexcept {
  auto it = definitions_.find(name);
  return it == definitions_.end() ? nullptr : it->second;
}

std::shared_ptr<const OperatorDefinition> OperatorTable::at(std::string_view name) const {
  if (auto found = find(name)) return found;
  Nearest nearest(name);
  for (const auto& [known, definition] : definitions_) nearest.consider(known);
  fail({.found = "unknown operator '" + std::string(name) + "'",
        .expected = "a registered operator",
        .hint = nearest.hint("register_operator adds one")});
}

std::vector<std::string> OperatorTable::names() const {
  std::vector<std::string> all;
  for (const auto& [name, definition] : definitions_) all.push_back(name);
  return all;
}

}  // namespace arenite::graph
