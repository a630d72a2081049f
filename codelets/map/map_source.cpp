// A map as a kernel for GPUs: one thread for each element of the results.
#include "codelets/map/source.hpp"

#include <spdlog/fmt/fmt.h>

#include "codelets/cuda/generated.hpp"
#include "src/expr/cuda.hpp"

namespace arenite::codelets {
namespace {

/// Whether a value's elements lie as `i` numbers those of the results.
bool is_whole(const std::vector<JointAxis>& axes, std::size_t value) {
  std::int64_t step = 1;
  for (std::size_t a = axes.size(); a-- > 0; step *= axes[a].size) {
    if (axes[a].step[value] != step) return false;
  }
  return true;
}

/// "i / 12 % 7": the place along an axis that elements go through in such steps. Nothing is left to
/// divide by along the first one.
std::string place(std::int64_t step, std::int64_t size, bool is_first) {
  std::string text = "i";
  if (step > 1) text += fmt::format(" / {}", step);
  if (!is_first) text += fmt::format(" % {}", size);
  return text;
}

/// Of the joint axes, as statements, and where each operand's element is by them.
class Places {
 public:
  Places(const Elementwise& op, std::string_view indent)
      : axes_(joint_axes(op.values, op.space)), used_(axes_.size(), false) {
    for (std::size_t v = 0; v < op.formula.operands().size(); ++v)
      elements.push_back(fmt::format("in{}[{}]", v, of(v)));
    std::int64_t step = 1;
    for (std::size_t a = axes_.size(); a-- > 0; step *= axes_[a].size) {
      if (used_[a])
        statements +=
            fmt::format("{}const Index x{} = {};\n", indent, a, place(step, axes_[a].size, a == 0));
    }
  }

  std::string statements;
  std::vector<std::string> elements;

 private:
  std::string of(std::size_t value) {
    if (is_whole(axes_, value)) return "i";
    std::string sum;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      const std::int64_t step = axes_[a].step[value];
      if (step == 0) continue;
      used_[a] = true;
      if (!sum.empty()) sum += " + ";
      sum += fmt::format("x{}", a);
      if (step > 1) sum += fmt::format(" * {}", step);
    }
    return sum.empty() ? "0" : sum;
  }

  std::vector<JointAxis> axes_;
  std::vector<bool> used_;
};

std::vector<std::string> index_names(const Shape& shape) {
  std::vector<std::string> names;
  std::int64_t step = 1;
  for (int axis = shape.rank(); axis-- > 0; step *= shape[axis])
    names.insert(names.begin(), place(step, shape[axis], axis == 0));
  return names;
}

}  // namespace

GpuLaunch launch_of_elements(const Elementwise& op) {
  constexpr std::string_view indent = "    ";
  const expr::Expression& formula = op.formula;
  std::string parameters;
  const auto add = [&](const char* constant, expr::Type type, const char* name, std::size_t i) {
    parameters += fmt::format("{}{}{}* {}{}", parameters.empty() ? "" : ", ", constant,
                              expr::cuda_name(type), name, i);
  };
  for (std::size_t i = 0; i < formula.operands().size(); ++i)
    add("const ", formula.operands()[i], "in", i);
  for (std::size_t i = 0; i < formula.results().size(); ++i)
    add("", formula.result_type(i), "out", i);
  const Places places(op, indent);
  const Shape& shape = op.space.whole;
  const auto made = expr::cuda_statements(formula, {places.elements, index_names(shape)}, indent);
  std::string body = places.statements + made.text;
  for (std::size_t i = 0; i < made.results.size(); ++i)
    body += fmt::format("{}out{}[i] = {};\n", indent, i, made.results[i]);
  return {cuda::source_of_each(expr::cuda_preamble() + "using namespace arenite::expr;\n",
                               parameters, body, shape.elements()),
          shape.elements()};
}

}  // namespace arenite::codelets
