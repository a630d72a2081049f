#include "src/expr/scalar.hpp"

#include <array>
#include <utility>

#include "src/expr/meaning.hpp"

namespace arenite::expr {
namespace {

using Sources = std::span<const std::uint64_t>;

template <Function function, class T>
std::uint64_t payload_made_of(Sources sources) noexcept {
  std::array<T, 3> x{};
  for (std::size_t i = 0; i < sources.size(); ++i) x[i] = value_of<T>(sources[i]);
  return payload_of(of<function>(x[0], x[1], x[2]));
}

/// By function, for sources of one type.
template <class T, std::size_t... functions>
constexpr auto table_of(std::index_sequence<functions...>) noexcept {
  return std::array{&payload_made_of<static_cast<Function>(functions), T>...};
}

template <class T>
const auto& table() noexcept {
  static constexpr auto made = table_of<T>(std::make_index_sequence<function_count>());
  return made;
}

}  // namespace

std::uint64_t cast_payload(std::uint64_t from, Type from_type, Type to) noexcept {
  return with_value(from_type, [&](auto source) {
    return with_value(to, [&](auto target) {
      return payload_of(cast_value<decltype(target)>(value_of<decltype(source)>(from)));
    });
  });
}

std::uint64_t apply_scalar(const Node& node, Type source_type,
                           std::span<const std::uint64_t> sources) noexcept {
  if (node.function == Function::cast) return cast_payload(sources[0], source_type, node.type);
  if (node.function == Function::select)
    return value_of<bool>(sources[0]) ? sources[1] : sources[2];
  return with_value(source_type, [&]<class T>(T) {
    return table<T>()[static_cast<std::size_t>(node.function)](sources);
  });
}

namespace {

std::uint64_t apply_to(const Expression& expression, const Node& node,
                       std::span<const std::uint64_t> payloads,
                       std::span<const std::uint64_t> operands,
                       std::span<const std::int64_t> indices) noexcept {
  if (node.function == Function::operand) return operands[node.payload];
  if (node.function == Function::constant) return node.payload;
  if (node.function == Function::index) return payload_of(indices[node.payload]);
  std::array<std::uint64_t, 3> given{};
  const auto sources = sources_of(node);
  for (std::size_t i = 0; i < sources.size(); ++i) given[i] = payloads[sources[i]];
  const NodeId typed = sources[node.function == Function::select ? 1 : 0];
  return apply_scalar(node, expression[typed].type, {given.data(), sources.size()});
}

/// What comes before others where a NaN comes before all.
template <class T>
bool comes_before(T a, T b, bool least) noexcept {
  if (a != a) return b == b;
  if (b != b) return false;
  return least ? a < b : a > b;
}

template <class T>
std::uint64_t reduce(Function function, std::span<const std::uint64_t> elements) noexcept {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, long double, std::uint64_t>;
  const bool adds = function == Function::sum, multiplies = function == Function::product;
  if (adds || multiplies) {
    Wide total = adds ? 0 : 1;
    for (const std::uint64_t one : elements) {
      const auto value = static_cast<Wide>(value_of<T>(one));
      total = adds ? total + value : total * value;
    }
    return payload_of(static_cast<T>(total));
  }
  if (elements.empty()) return 0;
  if (function == Function::least || function == Function::greatest) {
    const bool least = function == Function::least;
    auto of_two = least ? Function::min : Function::max;
    if (std::is_same_v<T, bool>) of_two = least ? Function::bit_and : Function::bit_or;
    std::uint64_t most = elements[0];
    for (const std::uint64_t one : elements)
      most = table<T>()[static_cast<std::size_t>(of_two)](std::array{most, one});
    return most;
  }
  std::size_t first = 0;
  for (std::size_t i = 1; i < elements.size(); ++i) {
    if (comes_before(value_of<T>(elements[i]), value_of<T>(elements[first]),
                     function == Function::first_least))
      first = i;
  }
  return payload_of(static_cast<std::int64_t>(first));
}

}  // namespace

std::uint64_t reduce_scalar(Function function, Type type,
                            std::span<const std::uint64_t> elements) noexcept {
  return with_value(type, [&]<class T>(T) { return reduce<T>(function, elements); });
}

std::vector<std::uint64_t> evaluate(const Expression& expression,
                                    std::span<const std::uint64_t> operands,
                                    std::span<const std::int64_t> indices) {
  std::vector<std::uint64_t> payloads;
  for (const Node& node : expression.nodes())
    payloads.push_back(apply_to(expression, node, payloads, operands, indices));
  std::vector<std::uint64_t> results;
  for (const NodeId result : expression.results()) results.push_back(payloads[result]);
  return results;
}

std::vector<std::vector<std::uint64_t>> evaluate_group(
    const Expression& expression, std::span<const std::vector<std::uint64_t>> operands,
    std::span<const std::vector<std::int64_t>> indices) {
  const std::size_t count = operands.size();
  std::vector<std::vector<std::uint64_t>> payloads(count);  // by element, then by node
  for (const Node& node : expression.nodes()) {
    if (is_reduction(node.function)) {
      const NodeId source = node.sources[0];
      std::vector<std::uint64_t> elements;
      for (const auto& element : payloads) elements.push_back(element[source]);
      const std::uint64_t one = with_value(
          expression[source].type, [&]<class T>(T) { return reduce<T>(node.function, elements); });
      for (auto& element : payloads) element.push_back(one);
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      payloads[i].push_back(
          node.function == Function::count
              ? payload_of(static_cast<std::int64_t>(count))
              : apply_to(expression, node, payloads[i], operands[i],
                         indices.empty() ? std::span<const std::int64_t>{} : indices[i]));
    }
  }
  std::vector<std::vector<std::uint64_t>> results(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const NodeId result : expression.results()) results[i].push_back(payloads[i][result]);
  }
  return results;
}

}  // namespace arenite::expr
