#include <arenite/error.hpp>
#include <arenite/graph/operator.hpp>

#include <algorithm>

namespace arenite::graph {
namespace {

/// Levenshtein distance, for "did you mean".
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

namespace {

std::size_t required(const OperatorDefinition& definition) {
  const auto& all = definition.operands;
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const auto& o) { return !o.optional; }));
}

}  // namespace

std::string OperatorDefinition::expected_operands() const {
  std::string names;
  for (const OperandSchema& operand : operands)
    names += (names.empty() ? "" : ", ") + operand.name + (operand.optional ? "?" : "");
  const std::size_t least = required(*this);
  std::string groups;
  if (variadic > 1) groups = ", and any number of the last " + std::to_string(variadic) + " again";
  return (least == operands.size() ? "" : "at least ") + std::to_string(least) + " (" + names +
         (variadic > 0 ? ", …" : "") + ")" + groups;
}

bool OperatorDefinition::takes(std::size_t count) const noexcept {
  if (count <= operands.size()) return count >= required(*this);
  return variadic > 0 && (count - operands.size()) % variadic == 0;
}

const OperandSchema& OperatorDefinition::operand_schema(std::size_t operand) const noexcept {
  if (operand < operands.size() || variadic == 0)
    return operands[std::min(operand, operands.size() - 1)];
  return operands[operands.size() - variadic + (operand - operands.size()) % variadic];
}

Effect OperatorDefinition::effect(std::size_t operand) const noexcept {
  return operands.empty() ? Effect::read : operand_schema(operand).effect;
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
  if (definition.fusion &&
      (definition.fusion->chain.size() < 2 || !definition.fusion->attributes)) {
    fail({.found = "operator '" + definition.name + "' fused from a chain of " +
                   std::to_string(definition.fusion->chain.size()) +
                   (definition.fusion->attributes ? "" : " without a rule for its attributes"),
          .expected = "at least two operators and an `attributes` function"});
  }
  const auto selects_rows = [&](const AttributeSchema& schema) {
    const AttributeValue none = std::vector<std::int64_t>{};
    return schema.name == definition.row_range && schema.default_value == none;
  };
  if (!definition.row_range.empty() &&
      (definition.results.size() != 1 ||
       std::none_of(definition.attributes.begin(), definition.attributes.end(), selects_rows))) {
    fail({.found = "operator '" + definition.name + "' whose rows '" + definition.row_range +
                   "' selects",
          .expected = "one result, and a list of integers of this name that is empty by default"});
  }
  if (definition.by_rows && (!definition.results.empty() || definition.operands.empty())) {
    fail({.found = "operator '" + definition.name + "' by rows with " +
                   std::to_string(definition.operands.size()) + " operands and " +
                   std::to_string(definition.results.size()) + " results",
          .expected = "at least one operand, and no results"});
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
  std::string nearest;
  std::size_t best = 4;  // a hint further away than three edits would be noise
  for (const auto& [known, definition] : definitions_) {
    const std::size_t shorter = std::min(name.size(), known.size()),
                      longer = std::max(name.size(), known.size());
    if (longer - shorter >= best) continue;  // no nearer than that, and the name may be a megabyte
    const std::size_t d = distance(name, known);
    if (d < best) best = d, nearest = known;
  }
  fail(
      {.found = "unknown operator '" + std::string(name) + "'",
       .expected = "a registered operator",
       .hint = nearest.empty() ? "register_operator adds one" : "did you mean '" + nearest + "'?"});
}

std::vector<std::string> OperatorTable::names() const {
  std::vector<std::string> all;
  for (const auto& [name, definition] : definitions_) all.push_back(name);
  return all;
}

}  // namespace arenite::graph
