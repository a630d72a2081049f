// Maps: each function of an expression as the scalar evaluator has it, of doubles in place of
// floats.
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

/// The elements of one place.
class Place {
 public:
  Place(Call& call, const expr::Expression& formula, std::int64_t element)
      : call_(call), formula_(formula), element_(element) {}

  void run() {
    for (const expr::Node& node : formula_.nodes()) payloads_.push_back(made_by(node));
    for (std::size_t r = 0; r < formula_.results().size(); ++r) {
      call_.out(r)[element_] =
          value(widened(formula_.result_type(r)), payloads_[formula_.results()[r]]);
    }
  }

 private:
  std::uint64_t made_by(const expr::Node& node) {
    const Shape& whole = call_.out(0).shape;
    const Type type = widened(node.type);
    switch (node.function) {
      case Function::operand: {
        const Tensor& x = call_.in(node.payload);
        return payload(type, x[seen_at(whole, x.shape, element_)]);
      }
      case Function::constant:
        return payload(type, value(node.type, node.payload));
      case Function::index: {
        std::int64_t rest = element_;
        for (int axis = whole.rank(); --axis > static_cast<int>(node.payload);) rest /= whole[axis];
        return payload(type, static_cast<double>(rest % whole[static_cast<int>(node.payload)]));
      }
      default:
        return of_sources(node);
    }
  }

  std::uint64_t of_sources(const expr::Node& node) {
    std::vector<std::uint64_t> sources;
    for (const expr::NodeId source : expr::sources_of(node)) sources.push_back(payloads_[source]);
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

  Call& call_;
  const expr::Expression& formula_;
  std::int64_t element_;
  std::vector<std::uint64_t> payloads_;
};

void map(Call& call) {
  std::vector<Type> types;
  for (std::size_t i = 0; i < call.operands(); ++i) types.push_back(type_of(call.type(i)));
  const expr::Expression formula = expr::parse(call.attributes().text("expression"), types);
  for (std::int64_t i = 0; i < call.out(0).shape.elements(); ++i) Place(call, formula, i).run();
}

}  // namespace

void add_map_rules(Rules& rules) { rules["map"] = map; }

}  // namespace arenite::reference
