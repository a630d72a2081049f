#include <arenite/expr/builder.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "src/base/refuse.hpp"
#include "src/expr/functions.hpp"
#include "src/expr/scalar.hpp"

namespace arenite::expr {
namespace {

/// splitmix64's last steps: no two of its inputs give one output.
std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t join(std::uint64_t hash, std::uint64_t word) noexcept {
  return mix(mix(hash) + 0x9e3779b97f4a7c15u + word);
}

std::uint64_t hash_of(const Node& node) noexcept {
  return join(
      static_cast<std::uint64_t>(node.function) << 8 | static_cast<std::uint64_t>(node.type),
      node.payload);
}

std::string number_text(const Term& number) {
  if (number.is_integer()) return std::to_string(number.integer());
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number.real()).ptr};
}

/// Which numbers a type holds.
std::string range_of(Type type) {
  switch (type) {
    case Type::boolean:
      return "0 or 1";
    case Type::uint8:
      return "an integer from 0 to 255";
    default:
      return "an integer of " + std::string(to_string(type));
  }
}

/// The number in a type that holds it.
std::uint64_t payload_in(Type type, const Term& number) {
  if (is_float(type)) {
    return with_value(type, [&](auto zero) {
      using T = decltype(zero);
      const bool is_nan = std::isnan(number.real());
      return payload_of(is_nan ? std::numeric_limits<T>::quiet_NaN()
                               : static_cast<T>(number.real()));
    });
  }
  const auto refuse_it = [&] { refuse("the number " + number_text(number), range_of(type)); };
  if (!number.is_integer() &&
      !(std::fabs(number.real()) <= 0x1p53 && number.real() == std::floor(number.real())))
    refuse_it();
  const std::int64_t integer =
      number.is_integer() ? number.integer() : static_cast<std::int64_t>(number.real());
  return with_value(type, [&](auto zero) {
    using T = decltype(zero);
    if (integer < static_cast<std::int64_t>(std::numeric_limits<T>::min()) ||
        integer > static_cast<std::int64_t>(std::numeric_limits<T>::max()))
      refuse_it();
    return payload_of(static_cast<T>(integer));
  });
}

/// Workers take what is too small to be normal for 0, and a NaN may have any bits: what has to do
/// with either is left to them.
bool is_plain(Type type, std::uint64_t payload) noexcept {
  return with_value(type, [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>) {
      const int kind = std::fpclassify(value_of<T>(payload));
      return kind != FP_SUBNORMAL && kind != FP_NAN;
    } else {
      return true;
    }
  });
}

bool is_constant(const Node& node, double number) noexcept {
  return node.function == Function::constant && with_value(node.type, [&]<class T>(T) {
           const T value = value_of<T>(node.payload);
           return value == static_cast<T>(number) &&
                  !(number == 0 && is_float(node.type) && node.payload != 0);
         });
}

/// How results come out of a node's sources: in what order those that commute stand.
int rank(const Node& node) noexcept {
  if (node.function == Function::operand) return 0;
  return node.function == Function::constant ? 2 : 1;
}

}  // namespace

Value Builder::operand(Type type) {
  operands_.push_back(type);
  return add({.function = Function::operand, .type = type, .payload = operands_.size() - 1});
}

Value Builder::constant(Type type, Term number) {
  if (!number.is_number()) refuse("a value", "a number");
  return add({.function = Function::constant, .type = type, .payload = payload_in(type, number)});
}

Value Builder::index(int axis) {
  if (axis < 0 || axis >= 8) refuse("index(" + std::to_string(axis) + ")", "an axis from 0 to 7");
  return add({.function = Function::index,
              .type = Type::int64,
              .payload = static_cast<std::uint64_t>(axis)});
}

Value Builder::count() { return add({.function = Function::count, .type = Type::int64}); }

NodeId Builder::take(Term term, Type type) {
  if (term.is_number()) return constant(type, term).node();
  if (term.builder() != this) refuse("a value of another builder", "one of this");
  return term.node();
}

Value Builder::cast(Type type, Term source) {
  if (source.is_number()) return constant(type, source);
  const NodeId from = take(source, type);
  if (nodes_[from].node.type == type) return {*this, from};
  return add({.function = Function::cast, .type = type, .sources = {from}});
}

Value Builder::apply(Function function, std::span<const Term> sources) {
  const FunctionInfo& known = info(function);
  const std::string where(known.name);
  if (known.sources == 0 || function == Function::cast || sources.size() != known.sources) {
    refuse(std::to_string(sources.size()) + " arguments", std::to_string(known.sources), where);
  }
  const bool selects = function == Function::select;
  const auto alike = selects ? sources.subspan(1) : sources;
  const auto typed = std::ranges::find_if(alike, [](const Term& t) { return !t.is_number(); });
  if (typed == alike.end()) {
    refuse("numbers alone", "a value among them, or a number with a type, as float32(2)", where);
  }
  const Type type = nodes_[take(*typed, {})].node.type;
  if (!takes(known, type)) {
    const bool stored = type == Type::uint8;
    refuse("values of type " + std::string(to_string(type)),
           std::string(known.takes == floats     ? "float32 or float64"
                       : known.takes == integers ? "int32 or int64"
                       : known.takes == bits     ? "int32, int64 or bool"
                       : known.takes == numbers  ? "float32, float64, int32 or int64"
                                                 : "another type than uint8"),
           where, stored ? "cast them first: float32(…)" : "");
  }
  Node node{.function = function,
            .type = known.is(predicate) ? Type::boolean
                    : known.is(places)  ? Type::int64
                    : known.is(draws)   ? Type::float32
                                        : type};
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Type wanted = selects && i == 0 ? Type::boolean : type;
    node.sources[i] = take(sources[i], wanted);
    const Type found = nodes_[node.sources[i]].node.type;
    if (found != wanted) {
      refuse("argument " + std::to_string(i + 1) + " of type " + std::string(to_string(found)),
             std::string(to_string(wanted)) + (selects && i == 0 ? "" : ", as the others"), where,
             std::string(to_string(wanted)) + "(…) casts");
    }
  }
  if (function == Function::bfloat16 && type != Type::float32)
    refuse("a value of type float64", "float32", where);
  return add(node);
}

/// select(y <= c, c, y) of a y that is cut off at c itself, select(x <= c, c, x).
bool Builder::is_cut_off(const Node& node) const {
  const auto at = [&](const Node& cut, const Node& y) {
    const Node& condition = nodes_[cut.sources[0]].node;
    return condition.function == Function::less_equal && condition.sources[0] == cut.sources[2] &&
           condition.sources[1] == cut.sources[1] && y.function == Function::select &&
           y.sources[1] == cut.sources[1];
  };
  const Node& y = nodes_[node.sources[2]].node;
  return at(node, y) && at(y, y);
}

/// A node that has the same bits.
std::optional<NodeId> Builder::simpler(const Node& node) {
  const auto source = [&](int i) -> const Node& {
    return nodes_[node.sources[static_cast<std::size_t>(i)]].node;
  };
  switch (node.function) {
    case Function::negate:
    case Function::invert:
      if (source(0).function == node.function) return source(0).sources[0];
      break;
    case Function::multiply:
      if (is_constant(source(1), 1)) return node.sources[0];
      break;
    case Function::divide:
      if (is_constant(source(1), 1)) return node.sources[0];
      break;
    case Function::subtract:
      if (is_constant(source(1), 0)) return node.sources[0];
      break;
    case Function::add:
      if (is_integer(node.type) && is_constant(source(1), 0)) return node.sources[0];
      break;
    case Function::select:
      if (node.sources[1] == node.sources[2]) return node.sources[1];
      if (source(0).function == Function::constant)
        return node.sources[value_of<bool>(source(0).payload) ? 1 : 2];
      if (is_cut_off(node)) return node.sources[2];
      break;
    default:
      break;
  }
  return std::nullopt;
}

Value Builder::add(Node node) {
  const FunctionInfo& known = info(node.function);
  const auto sources = sources_of(node);
  const auto node_of = [&](NodeId id) -> const Node& { return nodes_[id].node; };
  if (known.is(commutes)) {
    const auto place = [&](NodeId id) {
      return std::tuple(rank(node_of(id)),
                        node_of(id).function == Function::operand ? node_of(id).payload : 0,
                        nodes_[id].hash, id);
    };
    if (place(node.sources[1]) < place(node.sources[0]))
      std::swap(node.sources[0], node.sources[1]);
  }
  if (const auto same = simpler(node)) return {*this, *same};
  if (known.is(exact) && std::ranges::all_of(sources, [&](NodeId id) {
        return node_of(id).function == Function::constant &&
               is_plain(node_of(id).type, node_of(id).payload);
      })) {
    std::array<std::uint64_t, 3> payloads{};
    for (std::size_t i = 0; i < sources.size(); ++i) payloads[i] = node_of(sources[i]).payload;
    const Type of = node_of(sources[node.function == Function::select ? 1 : 0]).type;
    const std::uint64_t made = apply_scalar(node, of, {payloads.data(), sources.size()});
    if (is_plain(node.type, made))
      return add({.function = Function::constant, .type = node.type, .payload = made});
  }
  std::uint64_t hash = hash_of(node);
  for (const NodeId id : sources) hash = join(hash, nodes_[id].hash);
  if (nodes_.size() == by_hash_.size()) grow();
  NodeId* place = &by_hash_[hash & (by_hash_.size() - 1)];
  for (; *place != none; place = &nodes_[*place].next) {
    if (node_of(*place) == node) return {*this, *place};
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  *place = id;
  nodes_.push_back({node, hash, none});
  return {*this, id};
}

void Builder::grow() {
  by_hash_.assign(std::max<std::size_t>(32, 2 * by_hash_.size()), none);
  for (NodeId id = 0; id < nodes_.size(); ++id)
    nodes_[id].next = std::exchange(by_hash_[nodes_[id].hash & (by_hash_.size() - 1)], id);
}

Value Builder::copy(const Node& node, std::span<const Value> sources) {
  Node own = node;
  for (std::size_t i = 0; i < sources.size(); ++i) own.sources[i] = sources[i].node();
  return add(own);
}

std::vector<Value> Builder::insert(const Expression& expression, std::span<const Value> operands) {
  if (operands.size() != expression.operands().size()) {
    refuse(std::to_string(operands.size()) + " operands",
           std::to_string(expression.operands().size()));
  }
  std::vector<Value> made;
  for (const Node& node : expression.nodes()) {
    if (node.function == Function::operand) {
      const Value given = operands[node.payload];
      take(given, node.type);  // of this builder
      if (given.type() != node.type) {
        refuse("operand $" + std::to_string(node.payload + 1) + " of type " +
                   std::string(to_string(given.type())),
               std::string(to_string(node.type)));
      }
      made.push_back(given);
      continue;
    }
    Node own = node;
    for (std::size_t i = 0; i < sources_of(node).size(); ++i)
      own.sources[i] = made[node.sources[i]].node();
    made.push_back(add(own));
  }
  std::vector<Value> results;
  for (const NodeId result : expression.results()) results.push_back(made[result]);
  return results;
}

/// What the results need, with all operands.
Expression Builder::collect(std::span<const Value> results) const {
  if (results.empty()) refuse("no result", "at least one");
  std::vector<NodeId> place(nodes_.size(), none);
  Expression expression;
  expression.operands_ = operands_;
  // Depth first, by hand: formulas may be deep.
  std::vector<std::pair<NodeId, std::size_t>> open;
  for (const Value& result : results) {
    if (&result.builder() != this) refuse("a value of another builder", "one of this");
    if (result.type() == Type::boolean) {
      refuse("a result of type bool", "a number", {}, "select(…, 1, 0), or a cast, as in uint8(…)");
    }
    open.emplace_back(result.node(), 0);
    while (!open.empty()) {
      auto& [id, next] = open.back();
      const Node& node = nodes_[id].node;
      if (place[id] == none && next < sources_of(node).size()) {
        open.emplace_back(node.sources[next++], 0);
        continue;
      }
      if (place[id] == none) {
        Node own = node;
        for (std::size_t i = 0; i < sources_of(node).size(); ++i)
          own.sources[i] = place[node.sources[i]];
        place[id] = static_cast<NodeId>(expression.nodes_.size());
        expression.nodes_.push_back(own);
      }
      open.pop_back();
    }
    expression.results_.push_back(place[result.node()]);
  }
  return expression;
}

Reduced Builder::finish_reduced(std::span<const Value> results) const {
  Reduced made{.expression = collect(results), .operands = {}};
  std::vector<bool> is_needed(operands_.size());
  for (const Node& node : made.expression.nodes()) {
    if (node.function == Function::operand) is_needed[node.payload] = true;
  }
  // Anew, for the order of what commutes depends on the operands' numbers.
  Builder renumbered;
  std::vector<Value> operands;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    if (is_needed[i]) made.operands.push_back(i);
    operands.push_back(is_needed[i] ? renumbered.operand(operands_[i]) : renumbered.index(0));
  }
  if (made.operands.size() < operands_.size())
    made.expression = renumbered.collect(renumbered.insert(made.expression, operands));
  return made;
}

Expression Builder::finish(std::span<const Value> results) const {
  Reduced made = finish_reduced(results);
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    if (i < made.operands.size() && made.operands[i] == i) continue;
    refuse("operand $" + std::to_string(i + 1) + ", which no result needs",
           "operands that some result needs");
  }
  return std::move(made.expression);
}

Value apply(Function function, std::initializer_list<Term> sources) {
  const auto* value = std::ranges::find_if(sources, [](const Term& t) { return !t.is_number(); });
  if (value == sources.end())
    refuse("numbers alone", "a value among them", std::string(info(function).name));
  return value->builder()->apply(function, std::span(sources.begin(), sources.size()));
}

Value all(Value x) { return min(x.type() == Type::boolean ? x : cast(Type::boolean, x)); }
Value any(Value x) { return max(x.type() == Type::boolean ? x : cast(Type::boolean, x)); }

Value mean(Value x) { return sum(x) / cast(x.type(), x.builder().count()); }

Value variance(Value x) {
  const Value distance = x - mean(x);
  return mean(distance * distance);
}

/// Of infinities too, of which the difference would be NaN.
Value logsumexp(Value x) {
  const Value most = max(x),
              from = select(abs(most) == std::numeric_limits<double>::infinity(), 0, most);
  return from + log(sum(exp(x - from)));
}

std::uint64_t Expression::hash() const noexcept {
  std::uint64_t hash = nodes_.size();
  for (const Node& node : nodes_) {
    hash = join(hash, hash_of(node));
    for (const NodeId source : sources_of(node)) hash = join(hash, source);
  }
  for (const NodeId result : results_) hash = join(hash, result);
  return hash;
}

}  // namespace arenite::expr
