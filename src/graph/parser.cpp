#include "src/graph/parser.hpp"

#include <arenite/graph/operator.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/graph/verify.hpp>

#include <algorithm>
#include <map>

#include "src/base/nearest.hpp"
#include "src/graph/flaw.hpp"
#include "src/graph/values.hpp"
#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"
#include "src/graph/words.hpp"

namespace arenite::graph {
namespace {

/// Names that scripts of an earlier form have for operators.
const std::map<std::string_view, const char*>& earlier_names() {
  static const std::map<std::string_view, const char*> names{
      {"ComplexHadamardProductNode", "complex_mul"},
      {"HadamardProductNode", "mul"},
      {"MatMulNode", "matmul"},
      {"MulNode", "matmul"},
      {"Permute", "permute"},
      {"PermuteNode", "permute"},
      {"RMSNormNode", "rms_norm"},
      {"ReLUNode", "relu"},
      {"ReplaceSlice", "replace_slice"},
      {"ReplaceSliceNode", "replace_slice"},
      {"ReshapeNode", "reshape"},
      {"SiLUNode", "silu"},
      {"SliceNode", "slice"},
      {"SlicedSoftmaxNode", "sliced_softmax"},
      {"SumNode", "add"},
      {"update_slice", "replace_slice"},
  };
  return names;
}

}  // namespace

std::shared_ptr<const OperatorDefinition> Parser::definition_of(
    const std::string& statement) const {
  if (auto found = find_operator(operator_of(statement))) return found;
  Nearest nearest(statement);
  for (const auto& [known, definition] : written_) nearest.consider(known);
  for (const std::string& known : builder_.table().names()) nearest.consider(known);
  for (const auto& [known, name] : earlier_names()) nearest.consider(known);
  for (const Declaration& declaration : declarations()) nearest.consider(declaration.word);
  fail({.found = "unknown operator '" + printable(statement) + "'",
        .expected = "a registered operator",
        .hint = nearest.hint("register_operator adds one")});
}

std::string operator_of(const std::string& statement) {
  const auto found = earlier_names().find(statement);
  return found == earlier_names().end() ? statement : found->second;
}

Parser::Parser(std::string_view text, const OperatorTable& table, std::string_view filename)
    : script_(text), filename_(filename), lexer_(text, filename), builder_(graph_, table) {}

Graph Parser::run() {
  advance();
  while (!token_.is_name("result")) {
    if (token_.kind == TokenKind::end)
      unexpected("'result = $…;'", "a script ends by naming its result");
    statement();
  }
  const Position position = token_.position;
  result();
  if (token_.kind != TokenKind::end) unexpected("nothing after the result");
  formula_.reset();
  check_whole(position);
  return std::move(graph_);
}

/// What only the whole shows to be wrong. `end` is where what has no place of its own is wrong.
void Parser::check_whole(Position end) {
  check_spaces();
  op_positions_.resize(graph_.op_count(), end);
  value_positions_.resize(graph_.value_count(), end);
  // One step from every storage to its root, whatever chain the script made of them.
  for (std::size_t i = 0; i < graph_.storage_count(); ++i) graph_.merge(StorageId(i), StorageId(i));
  try {
    verify(graph_);
    const Versions once(graph_);
  } catch (const Flaw& flaw) {
    const Position guilty = flaw.op      ? op_positions_[flaw.op.index]
                            : flaw.value ? value_positions_[flaw.value.index]
                                         : end;
    at(guilty, [&] { throw Error(flaw.text()); });
  }
  check_training();
  check_entries();
}

std::vector<ResultType> Parser::infer(std::vector<Value> operands) {
  for (Value& operand : operands) {
    // Of a class that every operator may read, and write.
    const ValueId id = add_with_storage(graph_, std::move(operand), StorageClass::buffer);
    define({.number = static_cast<std::int64_t>(id.index) + 1}, id);
  }
  advance();
  Call made = call();
  if (!made.definition->regions.empty()) blocks(made);
  if (token_.kind != TokenKind::end) unexpected("nothing after the call");
  const std::vector<ValueId> results =
      builder_.add(made.definition, made.operands, made.attributes, made.regions);
  std::vector<ResultType> types;
  for (ValueId id : results) types.push_back({graph_[id].type, graph_[id].shape});
  return types;
}

void Parser::result() {
  advance();
  expect('=', "result");
  graph_.outputs = outputs("the result");
}

/// "$1, $2;", or "_;"
std::vector<ValueId> Parser::outputs(const std::string& of) {
  std::vector<ValueId> all;
  if (token_.is_name("_")) {
    advance();
  } else {
    do {
      all.push_back(reference());
    } while (accept(','));
  }
  expect(';', of);
  return all;
}

void Parser::statement() {
  formula_.reset();
  std::vector<Target> left;
  if (token_.kind == TokenKind::reference) {
    left = targets();
    expect('=', "$" + std::to_string(left.back().number));
  }
  if (token_.kind == TokenKind::name) {
    for (const auto& [name, cls] : declarations()) {
      if (token_.text == name) return declaration(left, cls, false);
    }
    if (token_.text == "Tensor") return declaration(left, StorageClass::activation, true);
    if (token_.text == "grad") return gradients(left);
    if (token_.text == "train") return training(left);
    if (token_.text == "entry") return entry(left);
    if (token_.text == "formula") return define_formula(left);
  }
  Call right = call();
  if (!right.definition->regions.empty()) {
    if (in_pieces_) {
      lexer_.refuse(right.position, "'" + right.word + "' as a statement",
                    "the begin of its first block");
    }
    blocks(right);
  }
  if (right.has_formula || !right.definition->regions.empty()) {
    accept(';');
  } else {
    expect(';', "the statement");
  }
  finish(left, right);
}

std::vector<Parser::Target> Parser::targets() {
  std::vector<Target> all;
  do {
    if (token_.kind != TokenKind::reference) unexpected("'$' and a number, as in $12");
    Target target{.number = token_.integer, .position = token_.position};
    advance();
    while (accept('@')) {
      value_note(target.notes);
      target.has_notes = true;
    }
    all.push_back(std::move(target));
  } while (accept(','));
  return all;
}

void Parser::define(const Target& target, ValueId id) {
  const auto [known, fresh] = definitions_.emplace(target.number, Definition{id, target.position});
  if (!fresh) {
    lexer_.refuse(target.position, "a second $" + std::to_string(target.number),
                  "a number of its own for each value",
                  "the first is in line " + std::to_string(known->second.position.line));
  }
  value_positions_.resize(graph_.value_count());
  value_positions_[id.index] = target.position;
}

Parser::Call Parser::call() {
  Call made;
  made.position = token_.position;
  if (token_.kind != TokenKind::name && token_.kind != TokenKind::text) {
    unexpected("a statement, as in '$3 = relu($2);'");
  }
  if (token_.is_name("yield")) unexpected("a statement", "'yield' ends a block");
  const std::string statement = token_.text;
  made.word = operator_of(statement);
  made.definition = at(token_.position, [&] { return definition_of(statement); });
  advance();
  expect('(', statement);
  std::size_t positional = 0;
  if (!token_.is(')')) {
    do {
      argument(made, positional);
    } while (accept(','));
  }
  expect(')', "the arguments of " + statement);
  while (in_pieces_ && !made.operands.empty() && !made.operands.back() &&
         made.definition->takes(made.operands.size() - 1))
    made.operands.pop_back();
  while (accept('@')) op_note(made.notes);
  if (made.definition->regions.empty() && token_.is('{')) formula(made);
  return made;
}

void Parser::formula(Call& made) {
  const AttributeSchema* schema = formula_of(*made.definition);
  if (schema == nullptr) {
    lexer_.refuse(token_.position, "a formula of " + made.word,
                  "none, for it has no attribute that is one", "map has one");
  }
  if (made.attributes.has(schema->name)) {
    lexer_.refuse(token_.position,
                  "a formula of " + made.word + " that has '" + schema->name + "' already",
                  "either of them");
  }
  made.attributes.set(schema->name, braced());
  made.has_formula = true;
  advance();
}

void Parser::argument(Call& made, std::size_t& positional) {
  const auto& schemas = made.definition->attributes;
  if (token_.kind == TokenKind::reference || token_.is_name("_")) {
    if (!made.attributes.items().empty()) unexpected("an attribute: operands come first");
    const bool absent = token_.kind == TokenKind::name || (in_pieces_ && number_of(token_) == 0);
    if (absent) absent_operand(*made.definition, made.operands.size());
    made.operands.push_back(absent ? ValueId{} : reference());
    return;
  }
  const Token first = token_;
  const bool is_text = first.kind == TokenKind::name || first.kind == TokenKind::text;
  if (is_text) {
    advance();
    if (accept('=')) {
      if (made.attributes.has(first.text)) {
        lexer_.refuse(first.position, "a second attribute " + describe(first),
                      "each attribute once");
      }
      const auto known = std::ranges::find(schemas, first.text, &AttributeSchema::name);
      // At once, lest a script pile up attributes that the builder then refuses.
      if (known == schemas.end()) unknown_attribute(first, *made.definition);
      attribute(made.attributes, *known);
      positional = schemas.size();
      return;
    }
  }
  if (positional >= schemas.size()) no_more_attributes(first, made);
  const AttributeSchema& schema = schemas[positional++];
  is_text ? word_attribute(made.attributes, schema, first) : attribute(made.attributes, schema);
}

void Parser::unknown_attribute(const Token& name, const OperatorDefinition& definition) const {
  lexer_.refuse(name.position, definition.name + ": unknown attribute " + describe(name),
                expected_attributes(definition));
}

/// Once all values of a statement are there, for they may share bytes with each other.
void Parser::merge(const Target& target) {
  const StorageId own = graph_[definitions_.at(target.number).value].storage;
  const auto join = [&](const Token& other, bool into_other) {
    const StorageId theirs = graph_[defined(other)].storage;
    at(other.position, [&] { into_other ? graph_.merge(own, theirs) : graph_.merge(theirs, own); });
  };
  if (target.notes.in) join(*target.notes.in, true);
  for (const Token& held : target.notes.holds) join(held, false);
}

void Parser::set_context(const OpNotes& notes) {
  builder_.context = {.phase = notes.phase.value_or(default_phase_),
                      .lane = notes.lane.value_or(Op::shared_lane),
                      .where = notes.where.value_or("")};
}

void Parser::finish(const std::vector<Target>& written, const Call& made) {
  set_context(made.notes);
  const std::vector<ValueId> results = at(made.position, [&] {
    return builder_.add(made.definition, made.operands, made.attributes, made.regions);
  });
  const OpId op(graph_.op_count() - 1);
  op_positions_.resize(graph_.op_count(), made.position);
  graph_[op].kernel = made.notes.kernel.value_or("");
  const std::size_t expected = results.size() - made.carried.size();
  const std::vector<Target> left = left_side(written, expected);
  if (left.empty() && only_renews(graph_[op])) {
    if (!open_blocks_.empty()) {
      lexer_.refuse(made.position, made.word + " without results, in a block",
                    "results, for the block to yield");
    }
    return renew(made, op);
  }

  const auto scratch = std::count_if(left.begin(), left.end(),
                                     [](const Target& t) { return t.notes.workspace.has_value(); });
  const std::size_t given = left.size() - static_cast<std::size_t>(scratch);
  if (given != expected || scratch > 1) {
    lexer_.refuse(left.empty() ? made.position : left[0].position,
                  std::to_string(given) + " results" +
                      (scratch > 0 ? " and " + std::to_string(scratch) + " workspaces" : "") +
                      " of " + made.word,
                  std::to_string(expected) + (scratch > 1 ? " and at most one workspace" : ""));
  }
  const auto views = result_views(graph_, graph_[op]);
  std::size_t next = 0;
  for (const Target& target : left) {
    if (target.notes.workspace) {
      at(target.position, [&] { add_workspace(graph_, op, *target.notes.workspace); });
      define(target, graph_[op].workspace);
      annotate(target, graph_[op].workspace);
      continue;
    }
    define(target, results[next]);
    annotate(target, results[next], views[next].has_value());
    ++next;
  }
  for (const Target& target : left) merge(target);
  for (std::size_t i = 0; i < made.carried.size(); ++i) {
    const Renewed& storage = renewed_.at(made.carried[i]);
    ValueId now = results[expected + i];
    if (is_persistent(graph_.root_storage(storage.whole).cls))
      now = builder_.add1("assign", {storage.now, now});
    renew(storage.now, now);
  }
  op_positions_.resize(graph_.op_count(), made.position);
}

bool Parser::accept(char symbol) {
  if (!token_.is(symbol)) return false;
  advance();
  return true;
}

void Parser::expect(char symbol, std::string_view after) {
  if (symbol == ';' && in_pieces_ && token_.kind == TokenKind::end) return;
  if (!accept(symbol)) unexpected(std::string("'") + symbol + "' after " + printable(after));
}

void Parser::unexpected(std::string expected, std::string hint) const {
  lexer_.refuse(token_.position, describe(token_), std::move(expected), std::move(hint));
}

std::int64_t Parser::integer(std::string_view what) {
  if (token_.kind != TokenKind::integer) unexpected(std::string(what));
  const std::int64_t number = token_.integer;
  advance();
  return number;
}

std::string Parser::text(std::string_view what) {
  if (token_.kind != TokenKind::text && token_.kind != TokenKind::name)
    unexpected(std::string(what));
  std::string held = token_.text;
  advance();
  return held;
}

std::string Parser::word(std::string_view what) {
  if (token_.kind != TokenKind::name) unexpected(std::string(what));
  return text(what);
}

Token Parser::reference_token() {
  if (token_.kind != TokenKind::reference) unexpected("'$' and a number, as in $12");
  Token token = std::move(token_);
  advance();
  return token;
}

ValueId Parser::defined(const Token& reference) const {
  if (in_pieces_) return valued(number_of(reference));
  const auto known = definitions_.find(reference.integer);
  if (known == definitions_.end()) unknown_reference(reference);
  return known->second.value;
}

ValueId Parser::resolve(const Token& reference) {
  const ValueId value = defined(reference);
  return at(reference.position, [&] { return current(value); });
}

Graph parse(std::string_view text, const OperatorTable& table, std::string_view filename) {
  return Parser(text, table, filename).run();
}

}  // namespace arenite::graph
