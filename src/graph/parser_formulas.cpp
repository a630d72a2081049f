// Reads operators that a script has of its own: `formula` statements.
#include <arenite/graph/formula.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/graph/notes.hpp"
#include "src/graph/parser.hpp"
#include "src/graph/words.hpp"

namespace arenite::graph {

/// "formula NAME(x, beta=1) { … }"
WrittenFormula Parser::written_formula() {
  advance();
  WrittenFormula made{.name = word("a name, as in formula swish(x) { … }")};
  expect('(', made.name);
  do {
    const std::string own = word("an operand, or a number as in beta=1");
    const bool is_number = !made.numbers.empty() || (token_.is('=') && !made.operands.empty());
    if (is_number) {
      expect('=', own + ", as operands stand before numbers");
      made.numbers.emplace_back(own, number());
    } else {
      made.operands.push_back(own);
    }
  } while (accept(','));
  if (token_.is('=')) unexpected("',' or ')', as operands stand before numbers");
  expect(')', "the parameters of " + made.name);
  if (!token_.is('{')) unexpected("a formula in braces");
  made.text = braced();
  advance();
  return made;
}

std::string Parser::braced() {
  Lexer::Formula found = lexer_.formula(token_);
  formula_ = found.position;
  return std::move(found.text);
}

void Parser::define_formula(const std::vector<Target>& left) {
  const Token statement = token_;
  refuse_in_block(statement);
  if (!left.empty())
    lexer_.refuse(left[0].position, "a result of formula", "formula NAME(…) { … }, which has none");
  const WrittenFormula made = written_formula();
  accept(';');
  auto definition = at(statement.position, [&] { return graph::define(builder_.table(), made); });
  if (!written_.emplace(made.name, std::move(definition)).second)
    lexer_.refuse(statement.position, "a second formula '" + made.name + "'", "a name of its own");
}

WrittenFormula Parser::formula_alone() {
  advance();
  if (!token_.is_name("formula")) unexpected("formula NAME(…) { … }");
  WrittenFormula made = written_formula();
  if (token_.kind != TokenKind::end) unexpected("nothing behind the formula");
  return made;
}

std::shared_ptr<const OperatorDefinition> Parser::find_operator(const std::string& name) const {
  const auto known = written_.find(name);
  return known != written_.end() ? known->second : builder_.table().find(name);
}

void check_optimizer(const OperatorDefinition& definition) {
  if (definition.is_optimizer()) return;
  fail({.found = "formula '" + definition.name + "', which is no optimizer",
        .expected = "operands (weight, gradient, learning_rate, …), of which the second and third "
                    "are called so"});
}

std::string to_string(const WrittenFormula& formula) {
  std::string text = "formula " + formula.name + "(";
  const char* comma = "";
  for (const std::string& operand : formula.operands) text += std::exchange(comma, ", ") + operand;
  for (const auto& [name, standard] : formula.numbers)
    text += std::exchange(comma, ", ") + name + "=" + to_string(AttributeValue(standard));
  return text + ") { " + formula.text + " }";
}

WrittenFormula parse_formula(std::string_view declaration) {
  static const OperatorTable none;
  return Parser(declaration, none, "formula").formula_alone();
}

std::shared_ptr<const OperatorDefinition> define(const OperatorTable& table,
                                                 const WrittenFormula& formula) {
  if (needs_quotes(formula.name) || operator_of(formula.name) != formula.name) {
    fail({.found = "a formula named " + quote(formula.name),
          .expected = "letters, digits, '_' and '.', and no word of scripts"});
  }
  if (formula.operands.empty()) {
    fail({.found = "formula '" + formula.name + "' of no operand", .expected = "at least one"});
  }
  for (const auto& [name, standard] : formula.numbers) {
    if (std::isfinite(standard)) continue;
    fail({.found = name + "=" + to_string(AttributeValue(standard)) + " of formula '" +
                   formula.name + "'",
          .expected = "a finite number"});
  }
  if (formula.text.find_first_of("{}") != std::string::npos)
    fail({.found = "a brace in formula '" + formula.name + "'", .expected = "none"});
  if (table.find(formula.name)) {
    fail({.found = "a formula named '" + formula.name + "', as an operator is",
          .expected = "a name of its own"});
  }
  if (!table.define_by) {
    fail({.found = "a formula as an operator",
          .expected = "an operator table that takes some, as arenite::operators()"});
  }
  OperatorDefinition made = table.define_by(formula);
  if (made.is_optimizer() && std::ranges::count(formula.operands, "average") > 0) {
    fail({.found = "state 'average' of optimizer '" + formula.name + "'",
          .expected = "another name: means of parameters are called so"});
  }
  for (const auto& [name, standard] : formula.numbers) {
    if (!made.is_optimizer() || !is_training_setting(name)) continue;
    fail({.found = "number '" + name + "' of optimizer '" + formula.name + "'",
          .expected = "another name: `train` has a setting of this one"});
  }
  made.written = to_string(formula);
  return std::make_shared<const OperatorDefinition>(std::move(made));
}

}  // namespace arenite::graph
