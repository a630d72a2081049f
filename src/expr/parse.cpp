#include <arenite/error.hpp>
#include <arenite/expr/builder.hpp>
#include <arenite/expr/text.hpp>

#include <algorithm>
#include <unordered_map>

#include "src/base/nearest.hpp"
#include "src/expr/functions.hpp"
#include "src/expr/lexer.hpp"
#include "src/expr/parse_words.hpp"
#include "src/expr/scalar.hpp"

namespace arenite::expr {
namespace {

// Each level takes up to ten frames, a binary operator's precedence each: far from a stack's end.
constexpr int deepest = 200;
constexpr std::size_t most_nodes = 100'000;

class Parser {
 public:
  Parser(std::string_view text, std::span<const Type> operands) : lexer_(text) {
    for (const Type type : operands) operands_.push_back(builder_.operand(type));
    take();
    take();
  }

  Parser(std::string_view text, std::span<const Parameter> parameters)
      : lexer_(text), parameters_(parameters), rounds_(true) {
    for (const Parameter& parameter : parameters) {
      const auto* type = std::get_if<Type>(&parameter.is);
      if (type != nullptr) operands_.push_back(builder_.operand(*type));
      widens_ = widens_ && (type == nullptr || *type == Type::float64);
      const Term term =
          type != nullptr ? Term(operands_.back()) : Term(std::get<double>(parameter.is));
      // Functions have parentheses, and so their names are free.
      const bool is_own = is_name(parameter.name) && parameter.name != "yield" &&
                          parameter.name != "inf" && parameter.name != "nan";
      if (is_own && names_.emplace(parameter.name, Name{term, {}}).second) continue;
      fail({.found =
                (is_own ? "a second parameter '" : "a parameter named '") + parameter.name + "'",
            .expected = "a name of its own, of letters, digits and '_'"});
    }
    take();
    take();
  }

  Expression body() {
    while (token_.kind == TokenKind::name && next_.is("=")) define();
    const Token first = token_;
    const bool bare = defined_.empty() && token_.text != "yield";
    if (!bare && token_.text != "yield") {
      refuse(token_, describe(token_), "a definition, as in x = $1 * 2;, or 'yield'",
             "yield says what the results are");
    }
    if (!bare) take();
    yield_one();
    while (!bare && token_.is(",")) {
      take();
      yield_one();
    }
    if (!bare && token_.is(";")) take();
    if (token_.kind != TokenKind::end)
      refuse(token_, describe(token_),
             bare ? "an operator or the end" : "an operator, ',' or the end");
    for (const Token& name : defined_) {
      if (!names_.at(name.text).used) {
        refuse(name, "the name " + describe(name) + ", which nothing reads", "names that are read",
               "leave it out");
      }
    }
    for (const Parameter& parameter : parameters_) {
      if (names_.at(parameter.name).used) continue;
      refuse(first, "a formula that does not read '" + parameter.name + "'",
             "one that reads all its parameters");
    }
    return finish(first);
  }

 private:
  struct Name {
    Term term;
    Token token;
    bool used = false;
  };
  struct Result {
    Value value;
    Token token;
  };

  [[noreturn]] void refuse(const Token& at, std::string found, std::string expected,
                           std::string hint = {}) const {
    lexer_.refuse(at.text, std::move(found), std::move(expected), std::move(hint));
  }

  Token take() {
    const Token taken = token_;
    token_ = next_;
    next_ = lexer_.next();
    return taken;
  }

  void expect(std::string_view symbol, const std::string& after) {
    if (!token_.is(symbol))
      refuse(token_, describe(token_), "'" + std::string(symbol) + "' after " + after);
    take();
  }

  /// Says where, of what the builder refuses.
  template <class Make>
  auto placed(const Token& at, const std::string& within, Make make) {
    try {
      return make();
    } catch (const Error& error) {
      const ErrorText& text = error.text();
      refuse(at, text.found + within, text.expected, text.hint);
    }
  }

  template <class Make>
  Term built(const Token& at, Make make) {
    const Value value = placed(at, " in " + describe(at), make);
    if (builder_.node_count() > most_nodes)
      refuse(at, "more than 100,000 nodes", "a smaller expression");
    return value;
  }

  Term apply(const Token& at, Function function, std::span<const Term> sources) {
    if (std::ranges::all_of(sources, &Term::is_number) &&
        sources.size() == info(function).sources) {
      if (const auto number = of_numbers(function, sources)) return *number;
    }
    if (rounds_) {
      if (const auto made = of_given_numbers(function, sources)) return *made;
      if (function == Function::select && sources.size() == 3 && is_constant(sources[0]))
        return sources[value_of<bool>(builder_[sources[0].node()].payload) ? 1 : 2];
      if (const auto rounded = with_one_type(sources))
        return built(at, [&] { return builder_.apply(function, *rounded); });
    }
    return built(at, [&] { return builder_.apply(function, sources); });
  }

  /// Parameters that are numbers are not written where they stand, and so functions of them alone
  /// are done in float64. None: it is no such function.
  std::optional<Term> of_given_numbers(Function function, std::span<const Term> sources) {
    const FunctionInfo& f = info(function);
    if (sources.size() != f.sources || f.sources == 0 ||
        !std::ranges::all_of(sources, &Term::is_number) || !takes(f, Type::float64) ||
        is_reduction(function) || f.is(draws) || f.is(places))
      return std::nullopt;
    std::vector<std::uint64_t> payloads;
    for (const Term& source : sources) payloads.push_back(payload_of(source.real()));
    const Type type = f.is(predicate) ? Type::boolean : Type::float64;
    const std::uint64_t made =
        apply_scalar({.function = function, .type = type}, Type::float64, payloads);
    if (type == Type::boolean) return Term(builder_.constant(type, value_of<bool>(made) ? 1 : 0));
    return Term(value_of<double>(made));
  }

  bool is_constant(const Term& term) const {
    return !term.is_number() && builder_[term.node()].function == Function::constant &&
           builder_[term.node()].type == Type::boolean;
  }

  /// Where operands are float32, rounds what others and numbers alone make; where all are float64,
  /// float32 is widened. None: there are not both.
  std::optional<std::vector<Term>> with_one_type(std::span<const Term> sources) {
    const auto is_node = [&](const Term& term, Type type) {
      return !term.is_number() && builder_[term.node()].type == type;
    };
    const Type from = widens_ ? Type::float32 : Type::float64,
               to = widens_ ? Type::float64 : Type::float32;
    std::vector<Term> cast(sources.begin(), sources.end());
    bool has_other = false, has_cast = false;
    for (Term& term : cast) {
      has_other = has_other || is_node(term, to);
      if (!is_node(term, from) || (!widens_ && !is_given(term.node()))) continue;
      term = builder_.cast(to, term);
      has_cast = true;
    }
    return has_other && has_cast ? std::optional(std::move(cast)) : std::nullopt;
  }

  /// Of float64 parameters and numbers alone.
  bool is_given(NodeId id) {
    for (auto next = static_cast<NodeId>(is_given_.size()); next <= id; ++next) {
      const Node& node = builder_[next];
      const auto sources = sources_of(node);
      const bool is_leaf = node.function == Function::constant ||
                           (node.function == Function::operand && node.type == Type::float64);
      is_given_.push_back(is_leaf || (!sources.empty() && !is_reduction(node.function) &&
                                      std::ranges::all_of(sources, [&](NodeId source) {
                                        return is_given_[source];
                                      })));
    }
    return is_given_[id];
  }

  void define() {
    const Token name = take();
    take();
    if (is_reserved(name.text)) {
      refuse(name, "a definition of " + describe(name), "a name of its own",
             describe(name) + " has a meaning already");
    }
    if (const auto first = names_.find(name.text); first != names_.end()) {
      refuse(name, "a second definition of " + describe(name), "a name of its own",
             first->second.token.text.empty()
                 ? "it is a parameter"
                 : "the first is at " + lexer_.place(first->second.token.text));
    }
    const Term term = expression();
    expect(";", "the definition of " + describe(name));
    names_.emplace(name.text, Name{term, name});
    defined_.push_back(name);
  }

  void yield_one() {
    const Token first = token_;
    const Term term = expression();
    if (term.is_number()) {
      refuse(first, "a number without a type", "a result of some type", "float32(…) gives it one");
    }
    results_.push_back({builder_.value(term.node()), first});
  }

  Expression finish(const Token& first) {
    std::vector<Value> values;
    for (const Result& result : results_) values.push_back(result.value);
    const auto boolean = std::ranges::find_if(
        results_, [](const Result& result) { return result.value.type() == Type::boolean; });
    return placed(boolean == results_.end() ? first : boolean->token, "",
                  [&] { return builder_.finish(values); });
  }

  /// With operators that bind at least as close.
  Term expression(int precedence = 0, int depth = 0) {
    Term left = unary(depth);
    while (const FunctionInfo* function = function_of(token_, 2)) {
      if (function->precedence < precedence) break;
      const Token symbol = take();
      const Term right = expression(function->precedence + 1, depth);
      const bool swapped = symbol.text[0] == '>' && symbol.text != ">>";
      left = apply(symbol, function->function,
                   std::array{swapped ? right : left, swapped ? left : right});
    }
    return left;
  }

  Term unary(int depth) {
    if (depth > deepest) {
      refuse(token_, "an expression more than " + std::to_string(deepest) + " levels deep",
             "fewer parentheses within parentheses", "give inner parts names: x = …;");
    }
    const FunctionInfo* function = function_of(token_, 1);
    if (function == nullptr) return primary(depth);
    const Token symbol = take();
    // At once: 2^63 is there behind a minus only.
    if (symbol.is("-") && token_.is_number()) return literal(true);
    const Term source = unary(depth + 1);
    return apply(symbol, function->function, std::array{source});
  }

  Term literal(bool negative) {
    const Token token = take();
    if (token.kind == TokenKind::real) return negative ? -token.real : token.real;
    const std::uint64_t most = (std::uint64_t{1} << 63) - (negative ? 0 : 1);
    if (token.integer > most) {
      refuse(token, describe(token), "an integer of at most 64 bits", "others are written as 1e20");
    }
    return static_cast<std::int64_t>(negative ? 0 - token.integer : token.integer);
  }

  Term primary(int depth) {
    if (token_.is_number()) return literal(false);
    if (token_.kind == TokenKind::operand) return operand();
    if (token_.kind == TokenKind::name) return next_.is("(") ? call(depth) : name();
    if (!token_.is("(")) {
      const bool doubled = token_.is("&") || token_.is("|");
      refuse(token_, describe(token_), "an operand, a number, a name or '('",
             doubled ? "booleans are joined by a single '" + std::string(token_.text) + "'" : "");
    }
    take();
    const Term inner = expression(0, depth + 1);
    expect(")", "what stands in parentheses");
    return inner;
  }

  Term operand() {
    const Token token = take();
    const std::size_t count = operands_.size();
    if (token.integer == 0 || token.integer > count) {
      const std::string all = count == 1 ? "$1, the only one" : "$1 to $" + std::to_string(count);
      refuse(token, "unknown operand " + describe(token),
             count == 0 ? "no operand, as none is given" : all);
    }
    return operands_[token.integer - 1];
  }

  Term name() {
    const Token token = take();
    if (token.text == "inf") return std::numeric_limits<double>::infinity();
    if (token.text == "nan") return real_number(std::numeric_limits<double>::quiet_NaN());
    const auto known = names_.find(token.text);
    if (known == names_.end()) {
      if (is_reserved(token.text)) {
        refuse(token, describe(token), "an operand, a number or a name",
               token.text == "yield"
                   ? ""
                   : "a call has parentheses: " + std::string(token.text) + "(…)");
      }
      Nearest nearest(token.text);
      for (const Token& name : defined_) nearest.consider(name.text);
      for (const Parameter& parameter : parameters_) nearest.consider(parameter.name);
      refuse(token, "unknown name " + describe(token), "a name defined above",
             nearest.hint(parameters_.empty() ? "operands are $1, $2, …" : ""));
    }
    known->second.used = true;
    return known->second.term;
  }

  Term call(int depth) {
    const Token name = take();
    const auto type = type_named(name.text);
    const bool index = name.text == "index", count = name.text == "count";
    const auto known = all_composed();
    const auto made = std::ranges::find(known, name.text, &Composed::name);
    const bool is_composed = made != known.end();
    if (!type && !function_named(name.text) && !index && !count && !is_composed)
      refuse_function(name);
    take();
    std::vector<Term> sources;
    while (token_.is(",") || (sources.empty() && !(count && token_.is(")")))) {
      if (!sources.empty()) take();
      sources.push_back(expression(0, depth + 1));
    }
    expect(")", "the arguments of " + describe(name));
    const std::size_t wanted = count ? 0 : 1;
    if (const FunctionInfo* function = function_named(name.text, sources.size()))
      return apply(name, function->function, sources);
    if (sources.size() != wanted) {
      refuse(name, std::to_string(sources.size()) + " arguments of " + describe(name),
             std::to_string(wanted));
    }
    if (count) return builder_.count();
    if (is_composed) {
      if (sources[0].is_number())
        refuse(name, "a number alone in " + describe(name), "a value that differs by element");
      return built(name, [&] { return made->make(builder_.value(sources[0].node())); });
    }
    if (type) return built(name, [&] { return builder_.cast(*type, sources[0]); });
    const Term axis = sources[0];
    if (!axis.is_integer() || axis.integer() != static_cast<int>(axis.integer()))
      refuse(name, describe(name) + " of no axis", "an axis from 0 to 7, as in index(0)");
    return placed(name, "", [&] { return builder_.index(static_cast<int>(axis.integer())); });
  }

  [[noreturn]] void refuse_function(const Token& name) const {
    Nearest nearest(name.text);
    for (const FunctionInfo& function : all_functions()) {
      if (function_named(function.name) != nullptr) nearest.consider(function.name);
    }
    for (const Composed& one : all_composed()) nearest.consider(one.name);
    nearest.consider("index");
    nearest.consider("count");
    for (int i = 0; i <= static_cast<int>(Type::float64); ++i)
      nearest.consider(to_string(static_cast<Type>(i)));
    refuse(name, "unknown function " + describe(name), "a function, or a type to cast to",
           name.text == "cast" ? "a type's name casts: float32(…)" : nearest.hint());
  }

  Lexer lexer_;
  Token token_, next_;
  std::span<const Parameter> parameters_;
  bool widens_ = true;          // all operands are float64
  bool rounds_ = false;         // what float64 parameters make, where it meets a float32
  std::vector<bool> is_given_;  // by node
  Builder builder_;
  std::vector<Value> operands_;
  std::unordered_map<std::string_view, Name> names_;
  std::vector<Token> defined_;
  std::vector<Result> results_;
};

}  // namespace

Expression parse(std::string_view text, std::span<const Type> operands) {
  return Parser(text, operands).body();
}

Expression parse_named(std::string_view text, std::span<const Parameter> parameters) {
  try {
    return Parser(text, parameters).body();
  } catch (const Error& error) {
    // Operands have names here.
    ErrorText said = error.text();
    std::size_t number = 0;
    for (const Parameter& parameter : parameters) {
      if (!std::holds_alternative<Type>(parameter.is)) continue;
      const std::string found = "operand $" + std::to_string(++number) + ",";
      const std::size_t at = said.found.find(found);
      if (at != said.found.npos) said.found.replace(at, found.size(), "'" + parameter.name + "',");
    }
    throw Error(said);
  }
}

std::size_t operand_count(std::string_view text) {
  Lexer lexer(text);
  std::uint64_t largest = 0;
  for (Token token = lexer.next(); token.kind != TokenKind::end; token = lexer.next()) {
    if (token.kind != TokenKind::operand) continue;
    if (token.integer > most_nodes)
      lexer.refuse(token.text, describe(token), "operands up to $100000");
    largest = std::max(largest, token.integer);
  }
  return largest;
}

}  // namespace arenite::expr
