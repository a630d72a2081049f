#include "src/expr/cuda.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "src/expr/functions.hpp"
#include "src/expr/scalar.hpp"

namespace arenite::expr {
namespace {

/// NVRTC has no headers: the names of the standard library that meaning.hpp takes.
constexpr std::string_view types =
    "namespace std {\n"
    "using uint8_t = unsigned char;\n"
    "using int32_t = int;\n"
    "using uint32_t = unsigned;\n"
    "using int64_t = long;\n"
    "using uint64_t = unsigned long;\n"
    "}\n";

/// NVRTC (13.0) makes false of `x != x` where it knows that x is a NaN of arithmetic, as of
/// `nan + 0`: what it would know so is kept from it.
constexpr std::string_view hiding =
    "__device__ inline float hidden(float x) {\n"
    "  auto bits = __builtin_bit_cast(std::uint32_t, x);\n"
    "  asm(\"\" : \"+r\"(bits));\n"
    "  return __builtin_bit_cast(float, bits);\n"
    "}\n"
    "__device__ inline double hidden(double x) {\n"
    "  auto bits = __builtin_bit_cast(std::uint64_t, x);\n"
    "  asm(\"\" : \"+l\"(bits));\n"
    "  return __builtin_bit_cast(double, bits);\n"
    "}\n";

/// Whether it may be a NaN, or an infinity, of which the compiler knows.
bool is_to_be_hidden(const Expression& expression, const Node& node) {
  if (!is_float(node.type)) return false;
  if (node.function == Function::constant) {
    return with_value(node.type, [&]<class T>(T) {
      return !std::isfinite(static_cast<double>(value_of<T>(node.payload)));
    });
  }
  const auto sources = sources_of(node);
  return !sources.empty() && std::ranges::all_of(sources, [&](NodeId source) {
    return expression[source].function == Function::constant;
  });
}

constexpr std::string_view meaning =
#include "meaning_text.inc"
    ;

std::string functions() {
  std::string names;
  for (const FunctionInfo& one : all_functions().first(function_count))
    names += fmt::format("{}, ", one.name);
  return "namespace arenite::expr { enum class Function : unsigned char { " + names + "}; }\n";
}

}  // namespace

std::string cuda_preamble() {
  return std::string(types) + functions() + std::string(meaning) + std::string(hiding);
}

std::string_view cuda_name(Type type) noexcept {
  constexpr std::string_view names[] = {"bool",         "std::uint8_t", "std::int32_t",
                                        "std::int64_t", "float",        "double"};
  return names[static_cast<std::size_t>(type)];
}

/// With all of its bits, whatever it is: −0, an infinity, the lowest integer.
std::string cuda_constant(const Node& node) {
  return with_value(node.type, [&]<class T>(T) -> std::string {
    const std::string_view type = cuda_name(node.type);
    if constexpr (std::is_floating_point_v<T>) {
      return fmt::format("__builtin_bit_cast({}, {:#x}{}) /* {} */", type, node.payload,
                         sizeof(T) == 8 ? "ul" : "u", value_of<T>(node.payload));
    } else {
      return fmt::format("static_cast<{}>({:#x}ul)", type, node.payload);
    }
  });
}

std::string cuda_statement(const Expression& expression, NodeId id, const CudaNames& names) {
  const Node& node = expression[id];
  const auto name = [](NodeId source) { return "t" + std::to_string(source); };
  const auto value = [&]() -> std::string {
    switch (node.function) {
      case Function::operand:
        return names.operands[node.payload];
      case Function::constant:
        return cuda_constant(node);
      case Function::index:
        return names.indices[node.payload];
      case Function::count:
        return fmt::format("{}L", names.group);
      case Function::cast:
        return fmt::format("cast_value<{}>({})", cuda_name(node.type), name(node.sources[0]));
      case Function::select:
        return fmt::format("{} ? {} : {}", name(node.sources[0]), name(node.sources[1]),
                           name(node.sources[2]));
      default:
        break;
    }
    std::string sources;
    for (const NodeId source : sources_of(node))
      sources += (sources.empty() ? "" : ", ") + name(source);
    return fmt::format("of<Function::{}>({})", info(node.function).name, sources);
  };
  const std::string made = is_to_be_hidden(expression, node) ? "hidden(" + value() + ")" : value();
  return fmt::format("const {} {} = {};\n", cuda_name(node.type), name(id), made);
}

CudaStatements cuda_statements(const Expression& expression, const CudaNames& names,
                               std::string_view indent) {
  CudaStatements made;
  for (NodeId i = 0; i < expression.nodes().size(); ++i)
    made.text += std::string(indent) + cuda_statement(expression, i, names);
  for (const NodeId result : expression.results())
    made.results.push_back("t" + std::to_string(result));
  return made;
}

}  // namespace arenite::expr
