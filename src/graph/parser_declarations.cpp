// Reads what a script declares: inputs, parameters, constants, with their shapes.
#include "src/base/nearest.hpp"
#include "src/graph/parser.hpp"

namespace arenite::graph {
namespace {

constexpr const char* naming_hint =
    "a size known only at run time has a name and an upper bound, as in [rows<=64, 784], and is "
    "planned at it";

}  // namespace

void Parser::declaration(const std::vector<Target>& written, StorageClass cls, bool class_follows) {
  const std::vector<Target> left = left_side(written, 1);
  const Position position = token_.position;
  if (builder_.in_region()) {
    lexer_.refuse(position, describe(token_) + " in a block",
                  "declarations outside, before the statement");
  }
  if (left.size() != 1) {
    lexer_.refuse(position, std::to_string(left.size()) + " values before " + describe(token_),
                  "one");
  }
  const std::string what = token_.text;
  advance();
  if (!token_.is('(')) unexpected("'(' after " + what);
  Token name = lexer_.raw_name();  // not advance: a name here may be no token
  advance();
  expect(',', name.text.empty() ? "the name" : printable(name.text));
  Token type = name;
  if (cls == StorageClass::buffer && token_.is('[') && name.kind == TokenKind::name) {
    name.text = "buffer_" + std::to_string(left[0].number);
  } else {
    if (token_.kind != TokenKind::name) unexpected("an element type");
    type = token_;
    advance();
    expect(',', "the type");
  }
  const Position shape_position = token_.position;
  Dimensions dims = dimensions(name.text);
  if (class_follows) {
    expect(',', "the shape");
    const Position class_position = token_.position;
    const std::string class_name = word("a storage class");
    cls = at(class_position, [&] { return parse_storage_class(class_name); });
  }
  Value begun;
  if (is_persistent(cls) && accept(',')) beginning(begun, cls);
  expect(')', "the arguments of " + what);
  expect(';', "the statement");

  const DType element = at(type.position, [&] { return parse_dtype(type.text); });
  const Shape shape = at(shape_position, [&] { return Shape(dims.sizes); });
  const ValueId id =
      at(name.position, [&] { return builder_.declare(name.text, element, shape, cls); });
  graph_[id].size_names = std::move(dims.names);
  graph_[id].first = begun.first;
  graph_[id].frozen = begun.frozen;
  at(name.position, [&] { check(begun.first, element); });
  define(left[0], id);
  at(left[0].position, [&] {
    const ValueNotes& notes = left[0].notes;
    if (notes.name || notes.cls || notes.workspace) {
      fail({.found = "a name, class or workspace note on a declaration",
            .expected = "other notes",
            .hint = "a declaration says its name and class itself"});
    }
  });
  annotate(left[0], id);
  merge(left[0]);
}

void Parser::beginning(Value& declared, StorageClass cls) {
  if (!token_.is_name("frozen")) {
    declared.first = first_value();
    if (!accept(',')) return;
  }
  if (!token_.is_name("frozen")) unexpected("frozen");
  if (cls != StorageClass::parameter) {
    lexer_.refuse(token_.position, "'frozen' of class " + std::string(to_string(cls)),
                  "it of a parameter, for nothing else is trained");
  }
  declared.frozen = true;
  advance();
}

FirstValue Parser::first_value() {
  const Token token = token_;
  const std::string name = word("a first value, as in uniform(-0.1, 0.1), or frozen");
  if (name == "zeros") return {};
  const auto kind = first_value_kind(name);
  if (!kind) {
    Nearest nearest(name);
    for (const char* known : {"zeros", "constant", "uniform", "normal", "truncated_normal"})
      nearest.consider(known);
    lexer_.refuse(token.position, "an unknown first value " + describe(token),
                  "zeros, constant(…), uniform(…), normal(…), truncated_normal(…) or frozen",
                  nearest.hint());
  }
  FirstValue made{.kind = *kind};
  expect('(', name);
  made.a = number();
  if (made.kind != FirstValue::Kind::constant) {
    expect(',', "the first number of " + name);
    made.b = number();
    if (accept(',')) {
      if (!token_.is_name("seed")) unexpected("seed=…");
      advance();
      expect('=', "seed");
      const Token seed = token_;
      const std::int64_t number = integer("a seed");
      if (number < 0) lexer_.refuse(seed.position, "a seed of " + describe(seed), "at least 0");
      made.seed = static_cast<std::uint64_t>(number);
    }
  }
  expect(')', "the numbers of " + name);
  return made;
}

Parser::Dimensions Parser::dimensions(const std::string& value) {
  Dimensions dims;
  list([&] {
    const Token first = token_;
    std::string name;
    if (first.kind == TokenKind::name) {
      advance();
      name = first.text;
      dims.sizes.push_back(bound(first, value));
      dims.names.resize(dims.sizes.size());
      dims.names.back() = std::move(name);
      return;
    }
    if (first.kind != TokenKind::integer || first.integer < 0)
      unexpected("a dimension of '" + printable(value) + "', an integer of at least 0",
                 naming_hint);
    advance();
    dims.sizes.push_back(first.integer);
  });
  if (!dims.names.empty()) dims.names.resize(dims.sizes.size());
  return dims;
}

/// The upper bound of a named size of this value: said here, or where the name stood before.
std::int64_t Parser::bound(const Token& name, const std::string& value) {
  const auto known = bounds_.find(name.text);
  if (!token_.is('<')) {
    if (known != bounds_.end()) return known->second;
    lexer_.refuse(name.position,
                  "dimension " + describe(name) + " of '" + printable(value) +
                      "', known only at run time, without an upper bound",
                  "one, as in " + printable(name.text) + "<=64", "memory is planned at the bound");
  }
  if (token_.spelling != "<=") unexpected("'<=' and an upper bound of " + describe(name));
  advance();
  const Token most = token_;
  if (integer("the upper bound of " + describe(name)) < 1) {
    lexer_.refuse(most.position, describe(most),
                  "an upper bound of at least 1 for " + describe(name));
  }
  if (known != bounds_.end() && known->second != most.integer) {
    lexer_.refuse(most.position, "a second upper bound " + describe(most) + " of " + describe(name),
                  "the first one, " + std::to_string(known->second));
  }
  bounds_.emplace(name.text, most.integer);
  return most.integer;
}

}  // namespace arenite::graph
