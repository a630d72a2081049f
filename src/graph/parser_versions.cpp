// Statements without targets, as in 'accumulate($1, $2);': the numbers of what they make new
// versions of stand for these from there on, in a script that otherwise says what each number is.
#include "src/graph/parser.hpp"

#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"

#include <algorithm>

namespace arenite::graph {

void Parser::renew(const Call& made, OpId id) {
  const Op op = graph_[id];  // a copy: adding ops moves what a reference would refer to
  for_each_renewed(op, [&](std::size_t result, std::size_t operand) {
    const OperandSchema& schema = op.definition->operand_schema(operand);
    const ValueId value = op.operands[operand];
    const StorageClass cls = graph_.root_storage(value).cls;
    if (cls == StorageClass::constant || cls == StorageClass::input) {
      lexer_.refuse(made.position,
                    made.word + ": operand '" + schema.name + "' would change '" +
                        graph_[value].name + "', of class " + std::string(to_string(cls)),
                    "a value that may change", "what a target '$… =' takes is a value of its own");
    }
    const bool updates = op.phase == Phase::update || op.phase == Phase::init;
    if (is_persistent(cls) && cls != StorageClass::buffer && !updates) {
      lexer_.refuse(made.position,
                    made.word + ": a new version of " + std::string(to_string(cls)) + " '" +
                        graph_.root_storage(value).name + "' in phase " +
                        std::string(to_string(op.phase)),
                    "one of phase update or init");
    }
    at(made.position, [&] { renew(value, op.results[result]); });
  });
  op_positions_.resize(graph_.op_count(), made.position);
}

/// Numbers that stand for the value, or views of it, stand for the version now.
void Parser::renew(ValueId value, ValueId version) {
  refuse_named_size(value);
  Renewed& storage = renewed(value);
  const Value old = graph_[storage.now], part = graph_[value];
  if (byte_size(part.type, part.shape) != byte_size(old.type, old.shape)) {
    const std::int64_t begin = (part.offset - old.offset) / size_of(old.type);
    const ValueId first = builder_.add1("full", {},
                                        {{"shape", std::vector<std::int64_t>{1}},
                                         {"value", static_cast<double>(begin)},
                                         {"type", std::string("int64")}});
    version = builder_.add1("replace_slice", {flat(storage.now), flat(version), first});
  }
  version = shaped(version, old.shape);
  storage.now = version;
  storage.views.clear();
  origins_[graph_[version].storage] = origin(storage.whole);
}

Parser::Renewed& Parser::renewed(ValueId value) {
  const auto [known, fresh] = renewed_.try_emplace(origin(value));
  if (fresh) {
    while (graph_[value].producer) {
      const Op& op = graph_[graph_[value].producer];
      const auto views = result_views(graph_, op);
      const auto& view = views[result_index(op, value)];
      if (!view) break;
      value = op.operands[view->operand];
    }
    known->second = {value, value, {}};
  }
  return known->second;
}

/// What a number stands for now: `value` was meant.
ValueId Parser::current(ValueId value) {
  if (renewed_.empty()) return value;
  const auto known = renewed_.find(origin(value));
  if (known == renewed_.end()) return value;
  Renewed& storage = known->second;
  if (value == storage.whole) return storage.now;
  if (graph_[value].storage == graph_[storage.now].storage) return value;
  ValueId& view = storage.views[value];
  if (!view) {
    refuse_named_size(value);
    // A copy: adding ops moves what a reference would refer to.
    const Value old = graph_[value], now = graph_[storage.now];
    if (old.type != now.type) {
      fail({.found = "'" + old.name + "', a view of '" + now.name + "' as " +
                     std::string(to_string(old.type)) + ", of which there is a new version",
            .expected = "a view of type " + std::string(to_string(now.type)),
            .hint = "take the view again behind the statement that made the version"});
    }
    builder_.context = {.phase = now.producer ? graph_[now.producer].phase : default_phase_,
                        .lane = Op::shared_lane,
                        .where = {}};
    const std::int64_t begin = old.offset / size_of(old.type), count = old.shape.elements();
    ValueId elements = flat(storage.now);
    if (count != now.shape.elements())
      elements = builder_.add1("slice", {elements}, {{"begin", begin}, {"end", begin + count}});
    view = shaped(elements, old.shape);
  }
  return view;
}

/// The storage of what a version replaced first.
StorageId Parser::origin(ValueId value) const {
  const StorageId own = graph_[value].storage;
  const auto known = origins_.find(own);
  return known == origins_.end() ? own : known->second;
}

/// Of a view, whose place in the new version would be that at the bound alone.
void Parser::refuse_named_size(ValueId view) const {
  while (graph_[view].producer) {
    const Op& op = graph_[graph_[view].producer];
    const auto views = result_views(graph_, op);
    const auto& owner = views[result_index(op, view)];
    if (!owner) return;
    if (!op.attributes.size_names().empty()) {
      const std::string name = "'" + graph_[view].name + "'";
      fail({.found = name + ", a view by a named size, of which there is a new version",
            .expected = "views by numbers",
            .hint = "give the new version a number of its own, '$… =', and take the view of that"});
    }
    view = op.operands[owner->operand];
  }
}

ValueId Parser::flat(ValueId value) { return shaped(value, {graph_[value].shape.elements()}); }

ValueId Parser::shaped(ValueId value, const Shape& shape) {
  if (graph_[value].shape == shape) return value;
  const auto dims = shape.dims();
  return builder_.add1("reshape", {value},
                       {{"shape", std::vector<std::int64_t>(dims.begin(), dims.end())}});
}

namespace {

/// Reads ahead over the statements of blocks: what they make new versions of, by number.
class Ahead {
 public:
  using Find = std::function<std::shared_ptr<const OperatorDefinition>(const std::string&)>;

  /// `find` knows operators by their names.
  Ahead(const Lexer& lexer, Token token, Find find)
      : lexer_(lexer), token_(std::move(token)), find_(std::move(find)) {}

  /// To the end of so many blocks.
  std::vector<std::int64_t> run(std::size_t blocks) {
    std::size_t depth = 0;
    for (; token_.kind != TokenKind::end; token_ = lexer_.next()) {
      if (token_.is('{')) ++depth;
      if (token_.is('}') && (depth == 0 || (--depth == 0 && --blocks == 0))) break;
      if (token_.is('{') || token_.is('}') || token_.is(';')) {
        statement_ = {};
      } else if (depth > 0) {
        look();
      }
    }
    return std::move(renewed_);
  }

 private:
  struct Statement {
    std::vector<std::int64_t> targets;
    bool has_targets = false, in_call = false, in_operands = false;
    std::shared_ptr<const OperatorDefinition> definition;
    std::size_t operand = 0;
  };

  void look() {
    Statement& now = statement_;
    const bool is_word = token_.kind == TokenKind::name || token_.kind == TokenKind::text;
    if (!now.in_call) {
      if (token_.kind == TokenKind::reference) now.targets.push_back(token_.integer);
      if (token_.is('@')) skip_note();
      if (token_.is('=')) now.has_targets = true;
      if (is_word && (now.has_targets || now.targets.empty())) {
        now.in_call = now.in_operands = true;
        now.definition = find_(operator_of(token_.text));
      }
      return;
    }
    if (!now.in_operands || !now.definition || now.definition->operands.empty()) return;
    if (token_.kind == TokenKind::reference) operand(token_.integer);
    if (token_.kind == TokenKind::reference || token_.is_name("_")) ++now.operand;
    now.in_operands = !token_.is(')') && (!is_word || token_.is_name("_"));
  }

  void operand(std::int64_t number) {
    const Statement& now = statement_;
    const auto views = [&](std::int64_t of) {
      const auto known = viewed_.find(of);
      return known == viewed_.end() ? of : known->second;
    };
    if (now.definition->views && now.operand == 0) {
      for (const std::int64_t target : now.targets) viewed_[target] = views(number);
    }
    if (now.targets.empty() &&
        now.definition->operand_schema(now.operand).renews != Renews::nothing)
      renewed_.push_back(views(number));
  }

  /// "@name", "@name(…)": the last token of it is the current one then.
  void skip_note() {
    lexer_.next();
    Lexer behind = lexer_;
    if (!behind.next().is('(')) return;
    while (!token_.is(')') && token_.kind != TokenKind::end) token_ = lexer_.next();
  }

  Lexer lexer_;
  Token token_;
  Find find_;
  Statement statement_;
  std::unordered_map<std::int64_t, std::int64_t> viewed_;
  std::vector<std::int64_t> renewed_;
};

}  // namespace

/// Looks ahead, from the first token behind a call.
std::vector<StorageId> Parser::renewed_in_blocks(const OperatorDefinition& holder) {
  std::vector<StorageId> found;
  std::vector<std::int64_t> numbers;
  try {
    numbers = Ahead(lexer_, token_, [this](const std::string& name) {
                return find_operator(name);
              }).run(holder.regions.size());
  } catch (const Error&) {
    return found;  // said when it is the block's turn
  }
  for (const std::int64_t number : numbers) {
    const auto known = definitions_.find(number);
    if (known == definitions_.end()) continue;  // made in the block
    const StorageId storage = origin(known->second.value);
    renewed(known->second.value);
    if (std::ranges::find(found, storage) == found.end()) found.push_back(storage);
  }
  return found;
}

}  // namespace arenite::graph
