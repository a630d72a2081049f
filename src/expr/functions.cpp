#include "src/expr/functions.hpp"

#include <algorithm>

namespace arenite::expr {
namespace {

constexpr int loosest = 1;
constexpr FunctionInfo table[] = {
    // symbol, precedence, sources, their types, traits, work
    {Function::operand, "operand", "", 0, 0, all_types, no_traits, 0},
    {Function::constant, "constant", "", 0, 0, all_types, no_traits, 0},
    {Function::index, "index", "", 0, 0, integers},
    {Function::cast, "cast", "", 0, 1, all_types | bytes, exact},
    {Function::negate, "negate", "-", 9, 1, numbers, exact},
    {Function::abs, "abs", "", 0, 1, numbers, exact},
    {Function::floor, "floor", "", 0, 1, floats, exact},
    {Function::round, "round", "", 0, 1, floats, exact},
    {Function::sqrt, "sqrt", "", 0, 1, floats, exact, 5},
    {Function::rsqrt, "rsqrt", "", 0, 1, floats, exact, 5},
    {Function::exp, "exp", "", 0, 1, floats, no_traits, 20},
    {Function::expm1, "expm1", "", 0, 1, floats, no_traits, 20},
    {Function::log, "log", "", 0, 1, floats, no_traits, 20},
    {Function::log1p, "log1p", "", 0, 1, floats, no_traits, 20},
    {Function::sin, "sin", "", 0, 1, floats, no_traits, 20},
    {Function::cos, "cos", "", 0, 1, floats, no_traits, 20},
    {Function::tanh, "tanh", "", 0, 1, floats, no_traits, 20},
    {Function::erf, "erf", "", 0, 1, floats, no_traits, 20},
    {Function::sigmoid, "sigmoid", "", 0, 1, floats, no_traits, 20},
    {Function::bfloat16, "bfloat16", "", 0, 1, floats, exact},
    {Function::invert, "invert", "!", 9, 1, bits, exact},
    {Function::add, "add", "+", 7, 2, numbers, commutes | exact},
    {Function::subtract, "subtract", "-", 7, 2, numbers, exact},
    {Function::multiply, "multiply", "*", 8, 2, numbers, commutes | exact},
    {Function::divide, "divide", "/", 8, 2, numbers, exact, 5},
    {Function::remainder, "remainder", "%", 8, 2, integers, exact, 5},
    {Function::min, "min", "", 0, 2, numbers, commutes | exact},
    {Function::max, "max", "", 0, 2, numbers, commutes | exact},
    {Function::pow, "pow", "", 0, 2, floats, no_traits, 40},
    {Function::equal, "equal", "==", 4, 2, all_types, predicate | commutes | exact},
    {Function::not_equal, "not_equal", "!=", 4, 2, all_types, predicate | commutes | exact},
    {Function::less, "less", "<", 5, 2, numbers, predicate | exact},
    {Function::less_equal, "less_equal", "<=", 5, 2, numbers, predicate | exact},
    {Function::bit_and, "bit_and", "&", 3, 2, bits, commutes | exact},
    {Function::bit_or, "bit_or", "|", loosest, 2, bits, commutes | exact},
    {Function::bit_xor, "bit_xor", "^", 2, 2, bits, commutes | exact},
    {Function::shift_left, "shift_left", "<<", 6, 2, integers, exact},
    {Function::shift_right, "shift_right", ">>", 6, 2, integers, exact},
    {Function::philox, "philox", "", 0, 2, integers, exact, 40},
    {Function::uniform, "uniform", "", 0, 2, integers, exact | draws, 40},
    {Function::fma, "fma", "", 0, 3, floats, commutes | exact},
    {Function::select, "select", "", 0, 3, all_types, exact},
    {Function::sum, "sum", "", 0, 1, numbers},
    {Function::product, "prod", "", 0, 1, numbers},
    {Function::least, "min", "", 0, 1, all_types},
    {Function::greatest, "max", "", 0, 1, all_types},
    {Function::first_least, "argmin", "", 0, 1, numbers, places},
    {Function::first_greatest, "argmax", "", 0, 1, numbers, places},
    {Function::count, "count", "", 0, 0, integers},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(table); ++i) {
    if (static_cast<std::size_t>(table[i].function) != i) return false;
  }
  return std::size(table) == static_cast<std::size_t>(Function::count) + 1;
}
static_assert(in_order());

constexpr std::string_view names[] = {"bool", "uint8", "int32", "int64", "float32", "float64"};

}  // namespace

const FunctionInfo& info(Function function) noexcept {
  return table[static_cast<std::size_t>(function)];
}
std::span<const FunctionInfo> all_functions() noexcept { return table; }

std::string_view to_string(Type type) noexcept { return names[static_cast<std::size_t>(type)]; }

int size_of(Type type) noexcept {
  constexpr int sizes[] = {1, 1, 4, 8, 4, 8};
  return sizes[static_cast<std::size_t>(type)];
}

std::optional<Type> type_named(std::string_view name) noexcept {
  const auto* found = std::ranges::find(names, name);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<Type>(found - std::begin(names));
}

bool takes(const FunctionInfo& function, Type type) noexcept {
  const std::uint8_t set = is_float(type)          ? floats
                           : is_integer(type)      ? integers
                           : type == Type::boolean ? booleans
                                                   : bytes;
  return (function.takes & set) != 0;
}

int arity(Function function) noexcept { return info(function).sources; }

std::vector<bool> Expression::varying() const {
  std::vector<bool> varies;
  for (const Node& node : nodes_) {
    bool does = node.function == Function::operand || node.function == Function::index;
    for (const NodeId source : sources_of(node)) does = does || varies[source];
    varies.push_back(does && !is_reduction(node.function));
  }
  return varies;
}

bool Expression::reduces() const noexcept {
  return std::ranges::any_of(nodes_, [](const Node& node) {
    return is_reduction(node.function) || node.function == Function::count;
  });
}

std::span<const NodeId> sources_of(const Node& node) noexcept {
  return {node.sources.data(), info(node.function).sources};
}

}  // namespace arenite::expr
