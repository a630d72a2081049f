// Maps and reductions: each function of an expression as the scalar evaluator has it, of doubles in
// place of floats.
#include <arenite/expr/text.hpp>

#include "src/expr/functions.hpp"
#include "src/expr/scalar.hpp"
#include "tests/reference/rules.hpp"

#include <algorithm>
#include <cmath>

namespace arenite::reference {
namespace {

using expr::Function;
using expr::Type;

Type type_of(DType type) {
  constexpr std::pair<DType, Type> types[] = {{DType::uint8, Type::uint8},
                                              {DType::int32, Type::int32},
                                              {DType::int64, Type::int64},
                                              {DType::float32, Type::float32},
                                              {DType::float64, Type::float64}};
  return std::ranges::find(types, type, &std::pair<DType, Type>::first)->second;
}

Type widened(Type type) { return type == Type::float32 ? Type::float64 : type; }

std::uint64_t payload(Type type, double value) {
  return expr::with_value(type,
                          [&]<class T>(T) { return expr::payload_of(static_cast<T>(value)); });
}

double value(Type type, std::uint64_t payload) {
  return expr::with_value(
      type, [&]<class T>(T) { return static_cast<double>(expr::value_of<T>(payload)); });
}

/// What an op goes through, and the elements of it that are reduced together: one each in a map.
struct Groups {
  Shape whole;
  std::int64_t size = 1;
  std::vector<std::vector<std::int64_t>> elements;
};

/// One of them.
class Group {
 public:
  Group(Call& call, const expr::Expression& formula, const Groups& groups, std::size_t number)
      : call_(call),
        formula_(formula),
        groups_(groups),
        number_(number),
        elements_(groups.elements[number]) {}

  void run() {
    const auto varies = formula_.varying();
    for (const expr::Node& node : formula_.nodes()) payloads_.push_back(made_by(node));
    for (std::size_t r = 0; r < formula_.results().size(); ++r) {
      const expr::NodeId result = formula_.results()[r];
      const bool is_one = formula_.reduces() && !varies[result];
      for (std::size_t i = 0; i < elements_.size(); ++i) {
        const std::int64_t at = is_one ? static_cast<std::int64_t>(number_) : elements_[i];
        call_.out(r)[at] = value(widened(formula_.result_type(r)), payloads_[result][i]);
      }
    }
  }

 private:
  using Payloads = std::vector<std::uint64_t>;  // by element

  Payloads made_by(const expr::Node& node) {
    Payloads made;
    if (expr::is_reduction(node.function)) {
      const Payloads& sources = payloads_[node.sources[0]];
      const Type type = widened(formula_[node.sources[0]].type);
      decide_reduced(node.function, type, sources);
      made.assign(elements_.size(), expr::reduce_scalar(node.function, type, sources));
      return made;
    }
    for (std::size_t i = 0; i < elements_.size(); ++i) made.push_back(made_by(node, i));
    return made;
  }

  std::uint64_t made_by(const expr::Node& node, std::size_t i) {
    const Shape& whole = groups_.whole;
    const Type type = widened(node.type);
    switch (node.function) {
      case Function::operand: {
        const Tensor& x = call_.in(node.payload);
        return payload(type, x[seen_at(whole, x.shape, elements_[i])]);
      }
      case Function::constant:
        return payload(type, value(node.type, node.payload));
      case Function::count:
        return payload(type, static_cast<double>(groups_.size));
      case Function::index: {
        std::int64_t rest = elements_[i];
        for (int axis = whole.rank(); --axis > static_cast<int>(node.payload);) rest /= whole[axis];
        return payload(type, static_cast<double>(rest % whole[static_cast<int>(node.payload)]));
      }
      default:
        return of_sources(node, i);
    }
  }

  std::uint64_t of_sources(const expr::Node& node, std::size_t i) {
    std::vector<std::uint64_t> sources;
    for (const expr::NodeId source : expr::sources_of(node))
      sources.push_back(payloads_[source][i]);
    const bool selects = node.function == Function::select;
    const Type from = widened(formula_[node.sources[selects ? 1 : 0]].type);
    if (is_float(from)) decide(node.function, from, sources);
    expr::Node wide = node;
    wide.type = widened(node.type);
    return expr::apply_scalar(wide, from, sources);
  }

  /// Where a derivative jumps.
  void decide(Function function, Type type, const std::vector<std::uint64_t>& sources) {
    const double x = value(type, sources[0]);
    if (function == Function::abs) {
      call_.decide(x < 0, std::fabs(x));
    } else if (function == Function::floor) {
      call_.decide(0, std::min(x - std::floor(x), std::ceil(x) - x));
    } else if (function == Function::round) {
      call_.decide(0, std::fabs(x - std::floor(x) - 0.5));
    } else if (function == Function::min || function == Function::max ||
               expr::info(function).is(expr::predicate)) {
      const double y = value(type, sources[1]);
      call_.decide(x < y, std::fabs(x - y));
    }
  }

  /// The two that come first.
  void decide_reduced(Function function, Type type, const Payloads& sources) {
    const bool least = function == Function::least || function == Function::first_least;
    if (!is_float(type) || function == Function::sum || function == Function::product) return;
    std::vector<double> values;
    for (const std::uint64_t one : sources) values.push_back(value(type, one) * (least ? 1 : -1));
    if (values.size() < 2) return;
    const auto first = std::ranges::min_element(values);
    const double best = *first;
    call_.decide(first - values.begin(), [&] {
      values.erase(first);
      return std::ranges::min(values) - best;
    }());
  }

  Call& call_;
  const expr::Expression& formula_;
  const Groups& groups_;
  std::size_t number_;
  const std::vector<std::int64_t>& elements_;
  std::vector<Payloads> payloads_;  // by node
};

expr::Expression formula_of(Call& call) {
  std::vector<Type> types;
  for (std::size_t i = 0; i < call.operands(); ++i) types.push_back(type_of(call.type(i)));
  return expr::parse(call.attributes().text("expression"), types);
}

void run_all(Call& call, const expr::Expression& formula, const Groups& groups) {
  for (std::size_t i = 0; i < groups.elements.size(); ++i) Group(call, formula, groups, i).run();
}

void run_each(Call& call, const expr::Expression& formula) {
  Groups groups{.whole = call.out(0).shape};
  for (std::int64_t i = 0; i < groups.whole.elements(); ++i) groups.elements.push_back({i});
  run_all(call, formula, groups);
}

void map(Call& call) { run_each(call, formula_of(call)); }

/// The shape to which all operands are repeated.
Shape whole_of(Call& call) {
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < call.operands(); ++i) {
    const Shape& shape = call.in(i).shape;
    const auto missing = static_cast<std::int64_t>(shape.rank()) - std::ssize(dims);
    if (missing > 0) dims.insert(dims.begin(), static_cast<std::size_t>(missing), 1);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      std::int64_t& size = dims[dims.size() - static_cast<std::size_t>(shape.rank() - axis)];
      if (shape[axis] != 1) size = shape[axis];
    }
  }
  return Shape(dims);
}

void run_groups(Call& call, const expr::Expression& formula,
                const std::vector<std::int64_t>& axes) {
  Groups groups{.whole = whole_of(call)};
  const int rank = groups.whole.rank();
  std::vector<bool> reduced(static_cast<std::size_t>(rank));
  std::int64_t kept = 1;
  for (const std::int64_t axis : axes)
    reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  for (int axis = 0; axis < rank; ++axis)
    (reduced[static_cast<std::size_t>(axis)] ? groups.size : kept) *= groups.whole[axis];
  groups.elements.resize(static_cast<std::size_t>(kept));
  for (std::int64_t i = 0; i < groups.whole.elements(); ++i) {
    std::int64_t number = 0, step = 1, left = i;
    for (int axis = rank; axis-- > 0; left /= groups.whole[axis]) {
      if (reduced[static_cast<std::size_t>(axis)]) continue;
      number += left % groups.whole[axis] * step;
      step *= groups.whole[axis];
    }
    groups.elements[static_cast<std::size_t>(number)].push_back(i);
  }
  run_all(call, formula, groups);
}

void reduce(Call& call) { run_groups(call, formula_of(call), call.attributes().integers("axes")); }

void written(Call& call) {
  const graph::ElementFormula made = call.formula();
  made.expression.reduces() ? run_groups(call, made.expression, made.axes)
                            : run_each(call, made.expression);
}

}  // namespace

void add_map_rules(Rules& rules) {
  rules["map"] = map;
  rules["reduce"] = reduce;
  rules["formula"] = written;
}

}  // namespace arenite::reference
