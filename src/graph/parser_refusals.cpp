// What the parser says where arguments and references are not what they should be.
#include "src/graph/parser.hpp"

#include <cstdio>
#include <optional>
#include <utility>

namespace arenite::graph {

/// "_" in place of an operand.
void Parser::absent_operand(const OperatorDefinition& definition, std::size_t index) {
  // One too many is refused later, with all of them.
  const bool known = index < definition.operands.size() || definition.variadic > 0;
  if (known && !definition.operand_schema(index).optional) {
    unexpected("operand '" + definition.operand_schema(index).name + "' of " + definition.name +
               ", which is not optional");
  }
  advance();
}

void Parser::no_more_attributes(const Token& found, const Call& made) const {
  const auto& schemas = made.definition->attributes;
  std::string expected = "name=value for each further attribute";
  if (schemas.empty()) {
    const bool literal =
        found.is('[') || (found.kind != TokenKind::end && found.kind != TokenKind::symbol);
    expected = literal ? "operands only" : "an operand, as in $12";
  } else if (made.attributes.items().size() == schemas.size()) {
    expected = "')', as all attributes of " + made.word + " are given";
  }
  lexer_.refuse(found.position, describe(found), expected);
}

void Parser::refuse_at(Position position, ErrorText text) const {
  // "map, expression:2:7", of a formula that has been read: where that is in the script.
  const auto in_script =
      [&](const std::string& said) -> std::optional<std::pair<std::size_t, Position>> {
    constexpr std::string_view within = "expression:";
    const std::size_t at = said.find(within);
    std::size_t line = 0, column = 0;
    if (!formula_ || at == said.npos ||
        std::sscanf(said.c_str() + at + within.size(), "%zu:%zu", &line, &column) != 2)
      return {};
    return {{at, {formula_->line + line - 1, line == 1 ? formula_->column + column - 1 : column}}};
  };
  if (const auto place = in_script(text.where)) {
    position = place->second;
    text.where.resize(place->first < 2 ? 0 : place->first - 2);
    if (text.where.empty()) text.where = "formula";
  }
  if (const auto place = in_script(text.hint)) {
    text.hint.resize(place->first);
    text.hint += "line " + std::to_string(place->second.line) + ", column " +
                 std::to_string(place->second.column);
  }
  const std::string where = text.where.empty() ? "" : text.where + ": ";
  lexer_.refuse(position, where + text.found, text.expected, text.hint);
}

void Parser::unknown_reference(const Token& reference) const {
  // Is it defined further down? Then the order is what is wrong.
  Lexer ahead = lexer_;
  std::size_t line = 0;
  try {
    bool left = token_.is(';');  // of a statement's '=', outside its notes
    int depth = 0;
    for (Token token = ahead.next(); token.kind != TokenKind::end && line == 0;
         token = ahead.next()) {
      if (token.is(';') || token.is('{') || token.is('}')) left = true, depth = 0;
      if (token.is('=')) left = false;
      if (token.is('(')) ++depth;
      if (token.is(')')) --depth;
      const bool same = token.kind == TokenKind::reference && token.integer == reference.integer;
      if (same && left && depth == 0) line = token.position.line;
    }
  } catch (const Error&) {
    line = 0;  // what follows has errors of its own; this one comes first
  }
  if (line > 0) {
    lexer_.refuse(
        reference.position,
        describe(reference) + " is used before its definition in line " + std::to_string(line),
        "definitions before uses");
  }
  lexer_.refuse(reference.position, "unknown reference " + describe(reference),
                "a value defined above");
}

}  // namespace arenite::graph
