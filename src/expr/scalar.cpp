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
    static constexpr auto table = table_of<T>(std::make_index_sequence<function_count>());
    return table[static_cast<std::size_t>(node.function)](sources);
  });
}

std::vector<std::uint64_t> evaluate(const Expression& expression,
                                    std::span<const std::uint64_t> operands,
                                    std::span<const std::int64_t> indices) {
  std::vector<std::uint64_t> payloads;
  for (const Node& node : expression.nodes()) {
    const auto payload = [&]() -> std::uint64_t {
      switch (node.function) {
        case Function::operand:
          return operands[node.payload];
        case Function::constant:
          return node.payload;
        case Function::index:
          return payload_of(indices[node.payload]);
        default:
          break;
      }
      std::array<std::uint64_t, 3> given{};
      const auto sources = sources_of(node);
      for (std::size_t i = 0; i < sources.size(); ++i) given[i] = payloads[sources[i]];
      const NodeId typed = sources[node.function == Function::select ? 1 : 0];
      return apply_scalar(node, expression[typed].type, {given.data(), sources.size()});
    };
    payloads.push_back(payload());
  }
  std::vector<std::uint64_t> results;
  for (const NodeId result : expression.results()) results.push_back(payloads[result]);
  return results;
}

}  // namespace arenite::expr
