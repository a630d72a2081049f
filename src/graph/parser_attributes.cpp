// Reads attributes: numbers, texts and lists, and names of sizes in place of numbers.
#include "src/graph/parser.hpp"

#include <limits>
#include <utility>

#include "src/base/nearest.hpp"

namespace arenite::graph {

void Parser::attribute(Attributes& into, const AttributeSchema& schema) {
  if (token_.is('[')) {
    std::vector<std::int64_t> numbers;
    std::vector<std::string> names;
    list([&] {
      const Token token = token_;
      const bool named = token.kind == TokenKind::name;
      if (!named && token.kind != TokenKind::integer) unexpected("an integer");
      advance();
      numbers.push_back(named ? size(token) : token.integer);
      if (!named) return;
      names.resize(numbers.size());
      names.back() = token.text;
    });
    if (!names.empty()) names.resize(numbers.size());
    return into.set(schema.name, std::move(numbers), std::move(names));
  }
  const Token token = token_;
  const bool is_word = token.kind == TokenKind::name || token.kind == TokenKind::text;
  if (!is_word && token.kind != TokenKind::integer && token.kind != TokenKind::real)
    unexpected("a number, a text or a list of integers");
  advance();
  if (is_word) return word_attribute(into, schema, token);
  if (token.kind == TokenKind::integer) return into.set(schema.name, token.integer);
  into.set(schema.name, token.real);
}

void Parser::word_attribute(Attributes& into, const AttributeSchema& schema, const Token& word) {
  const bool is_real = schema.type == AttributeType::real;
  const bool is_number = is_real || schema.type == AttributeType::integer;
  if (word.kind == TokenKind::text || !is_number) return into.set(schema.name, word.text);
  if (is_real && word.text == "inf")
    return into.set(schema.name, std::numeric_limits<double>::infinity());
  if (is_real && word.text == "nan")
    return into.set(schema.name, std::numeric_limits<double>::quiet_NaN());
  into.set(schema.name, size(word), {word.text});
}

std::int64_t Parser::size(const Token& name) const {
  const auto known = bounds_.find(name.text);
  if (known != bounds_.end()) return known->second;
  Nearest nearest(name.text);
  for (const auto& [other, bound] : bounds_) nearest.consider(other);
  lexer_.refuse(name.position, "unknown size " + describe(name),
                "a number, or a size that a declaration above names, as in [rows<=64, 784]",
                nearest.hint());
}

}  // namespace arenite::graph
