#include <arenite/expr/builder.hpp>
#include <arenite/expr/derive.hpp>

#include <numbers>

#include "src/expr/functions.hpp"

namespace arenite::expr {
namespace {

/// Goes through the nodes backwards; what it needs of the expression's own values it appends when
/// it is first asked for.
class Derivation {
 public:
  Derivation(const Expression& expression, const std::vector<bool>& seeded,
             const std::vector<bool>& wanted, const std::vector<bool>& at_hand, std::int64_t group)
      : expression_(expression),
        group_(group),
        varies_(expression.varying()),
        depends_(expression.nodes().size(), false),
        gradients_(expression.nodes().size()),
        values_(expression.nodes().size()) {
    for (NodeId id = 0; id < depends_.size(); ++id) {
      const Node& node = expression[id];
      if (node.function == Function::operand) depends_[id] = wanted[node.payload];
      for (const NodeId source : sources_of(node)) depends_[id] = depends_[id] || depends_[source];
      depends_[id] = depends_[id] && is_float(node.type);
    }
    // First of all, as formulas of gradients have them.
    for (std::size_t i = 0; i < seeded.size(); ++i) {
      const NodeId id = expression.results()[i];
      if (seeded[i] && depends_[id]) gather(id, operand(GradientOperand::Kind::seed, i, id));
    }
    for (std::size_t i = 0; i < at_hand.size(); ++i) {
      const NodeId id = expression.results()[i];
      if (!at_hand[i] || sources_of(expression[id]).empty() || values_[id]) continue;
      values_[id] = operand(GradientOperand::Kind::result, i, id);
      tell_condition(expression[id], *values_[id]);
    }
  }

  std::optional<Gradient> run() {
    std::vector<std::optional<Value>> by_operand(expression_.operands().size());
    for (NodeId id = static_cast<NodeId>(depends_.size()); id-- > 0;) {
      if (!gradients_[id]) continue;
      if (expression_[id].function == Function::operand) {
        by_operand[expression_[id].payload] = gradients_[id];
      } else {
        pass_on(id, *gradients_[id]);
      }
    }
    return finish(by_operand);
  }

 private:
  /// What is cut off at a number, select(x <= c, c, x), tells where x was at most that.
  void tell_condition(const Node& node, Value y) {
    if (node.function != Function::select) return;
    const NodeId condition = node.sources[0], c = node.sources[1];
    const Node& compared = expression_[condition];
    if (expression_[c].function == Function::constant &&
        compared.function == Function::less_equal && compared.sources[0] == node.sources[2] &&
        compared.sources[1] == c)
      values_[condition] = y <= builder_.copy(expression_[c], {});
  }

  std::optional<Gradient> finish(const std::vector<std::optional<Value>>& by_operand) {
    std::vector<Value> results;
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < by_operand.size(); ++i) {
      // Folded to 0, as of a power 0.
      const bool is_flat =
          by_operand[i] && builder_[by_operand[i]->node()].function == Function::constant;
      if (!by_operand[i] || is_flat) continue;
      results.push_back(*by_operand[i]);
      of.push_back(i);
    }
    if (results.empty()) return std::nullopt;
    Reduced reduced = builder_.finish_reduced(results);
    Gradient made{.expression = std::move(reduced.expression), .operands = {}, .of = std::move(of)};
    for (const std::size_t i : reduced.operands) made.operands.push_back(operands_[i]);
    return made;
  }

  /// What is like a node.
  Value operand(GradientOperand::Kind kind, std::size_t number, NodeId like) {
    operands_.push_back({kind, number});
    operand_varies_.push_back(varies_[like]);
    return builder_.operand(expression_[like].type);
  }

  Value count(Type type) { return builder_.constant(type, group_); }

  /// Whether a value differs by element of a group.
  bool varies(Value value) {
    while (value_varies_.size() <= value.node()) {
      const Node& node = builder_[static_cast<NodeId>(value_varies_.size())];
      bool does = node.function == Function::index ||
                  (node.function == Function::operand && operand_varies_[node.payload]);
      for (const NodeId source : sources_of(node)) does = does || value_varies_[source];
      value_varies_.push_back(does && !is_reduction(node.function));
    }
    return value_varies_[value.node()];
  }

  /// A node's own value.
  Value value(NodeId wanted) {
    // By hand, for formulas may be deep.
    std::vector<NodeId> open{wanted};
    while (!open.empty()) {
      const NodeId id = open.back();
      const Node& node = expression_[id];
      if (!values_[id]) {
        bool is_ready = true;
        for (const NodeId source : sources_of(node)) {
          if (values_[source]) continue;
          open.push_back(source);
          is_ready = false;
        }
        if (!is_ready) continue;
        values_[id] = append(id);
      }
      open.pop_back();
    }
    return *values_[wanted];
  }

  Value append(NodeId id) {
    const Node& node = expression_[id];
    if (node.function == Function::operand)
      return operand(GradientOperand::Kind::operand, node.payload, id);
    if (node.function == Function::count) return count(node.type);
    std::vector<Value> sources;
    for (const NodeId source : sources_of(node)) sources.push_back(*values_[source]);
    return builder_.copy(node, sources);
  }

  void gather(NodeId id, Value gradient) {
    gradients_[id] = gradients_[id] ? *gradients_[id] + gradient : gradient;
  }

  /// What a reader, for each element or once for the group, has of a node.
  void add(NodeId id, Value gradient) {
    if (!depends_[id]) return;
    if (reads_each_ && !varies_[id])
      gradient = varies(gradient) ? sum(gradient) : gradient * count(gradient.type());
    gather(id, gradient);
  }

  void pass_on(NodeId id, Value g) {
    const Node& node = expression_[id];
    const auto sources = sources_of(node);
    reads_each_ = varies_[id] || is_reduction(node.function);
    switch (sources.size()) {
      case 1:
        return add_of_one(id, sources[0], g);
      case 2:
        return add_of_two(id, sources[0], sources[1], g);
      case 3:
        return add_of_three(node, g);
      default:
        return;
    }
  }

  void add_of_one(NodeId id, NodeId source, Value g) {
    if (const auto gradient = of_one(id, source, g)) add(source, *gradient);
  }

  /// Of a function of one value; none where it is flat.
  std::optional<Value> of_one(NodeId id, NodeId source, Value g) {
    const auto x = [&] { return value(source); };
    const auto y = [&] { return value(id); };
    switch (expression_[id].function) {
      case Function::cast:
        return cast(expression_[source].type, g);
      case Function::bfloat16:
        return g;
      case Function::negate:
        return -g;
      case Function::abs:
        return select(x() > 0, g, select(x() < 0, -g, 0));
      case Function::sqrt:
        return g / (2 * y());
      case Function::rsqrt:
        return g * (-0.5 * (y() * y() * y()));
      case Function::exp:
        return g * y();
      case Function::expm1:
        return g * (y() + 1);
      case Function::log:
        return g / x();
      case Function::log1p:
        return g / (1 + x());
      case Function::sin:
        return g * cos(x());
      case Function::cos:
        return -(g * sin(x()));
      case Function::tanh:
        return g * (1 - y() * y());
      case Function::erf:
        return g * (2 * std::numbers::inv_sqrtpi * exp(-(x() * x())));
      case Function::sigmoid:
        return g * (y() * (1 - y()));
      case Function::sum:
        return g;
      case Function::product:
        return of_product(g, x(), y());
      case Function::least:
      case Function::greatest: {
        const Value is_it = x() == y();
        return select(is_it, g / sum(select(is_it, ones(g), 0)), 0);
      }
      default:
        return std::nullopt;  // floor, round
    }
  }

  Value ones(Value like) { return builder_.constant(like.type(), 1); }

  /// Where one element is 0 it alone has a gradient: the product of the others.
  Value of_product(Value g, Value x, Value y) {
    const Value is_zero = x == 0, zeros = sum(select(is_zero, ones(g), 0)),
                others = prod(select(is_zero, ones(g), x));
    return g * select(is_zero, select(zeros == 1, others, 0), select(zeros == 0, y / x, 0));
  }

  void add_of_two(NodeId id, NodeId a, NodeId b, Value g) {
    const auto with = [&](NodeId source, auto gradient) {
      if (depends_[source]) add(source, gradient());
    };
    switch (expression_[id].function) {
      case Function::add:
        with(a, [&] { return g; });
        return with(b, [&] { return g; });
      case Function::subtract:
        with(a, [&] { return g; });
        return with(b, [&] { return -g; });
      case Function::multiply:
        with(a, [&] { return g * value(b); });
        return with(b, [&] { return g * value(a); });
      case Function::divide:
        with(a, [&] { return g / value(b); });
        return with(b, [&] { return -(g / value(b) * value(id)); });
      case Function::min:
        with(a, [&] { return share(g, value(b), value(a)); });
        return with(b, [&] { return share(g, value(a), value(b)); });
      case Function::max:
        with(a, [&] { return share(g, value(a), value(b)); });
        return with(b, [&] { return share(g, value(b), value(a)); });
      case Function::pow:
        with(a, [&] { return of_base(g, value(a), value(b)); });
        return with(b, [&] { return of_exponent(g, value(a), value(b), value(id)); });
      default:
        return;
    }
  }

  /// None where the first is the smaller one, half where both are equal; all where one is NaN.
  static Value share(Value g, Value larger, Value smaller) {
    return select(larger < smaller, 0, select(larger == smaller, g / 2, g));
  }

  /// No power of 0 is asked for where the exponent is 0.
  static Value of_base(Value g, Value a, Value b) {
    return select(b == 0, 0, g * (b * pow(a, b - 1)));
  }
  static Value of_exponent(Value g, Value a, Value b, Value y) {
    const Value at_zero = select(b >= 0, 0, g * (y * log(a)));
    return select(a == 0, at_zero, g * (y * log(a)));
  }

  void add_of_three(const Node& node, Value g) {
    const auto [a, b, c] = node.sources;
    if (node.function == Function::select) {
      if (depends_[b]) add(b, select(value(a), g, 0));
      if (depends_[c]) add(c, select(value(a), 0, g));
    } else {  // fma
      if (depends_[a]) add(a, g * value(b));
      if (depends_[b]) add(b, g * value(a));
      add(c, g);
    }
  }

  const Expression& expression_;
  std::int64_t group_;
  std::vector<bool> varies_;  // by node of the expression
  Builder builder_;
  std::vector<bool> value_varies_, operand_varies_;  // of the builder
  bool reads_each_ = false;    // the node whose gradient is passed on reads each element
  std::vector<bool> depends_;  // on what is wanted, in a way that has a gradient
  std::vector<std::optional<Value>> gradients_, values_;
  std::vector<GradientOperand> operands_;  // of the builder
};

}  // namespace

std::optional<Gradient> derive(const Expression& expression, const std::vector<bool>& seeded,
                               const std::vector<bool>& wanted, const std::vector<bool>& at_hand,
                               std::int64_t group) {
  return Derivation(expression, seeded, wanted, at_hand, group).run();
}

}  // namespace arenite::expr
