// Totals of groups' elements in kernels for GPUs: their text.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <limits>
#include <string>

#include "src/expr/cuda.hpp"
#include "src/expr/scalar.hpp"

namespace arenite::codelets {

/// Threads that run one after the other cannot share a group: the first one has it all.
inline constexpr std::string_view totals_preamble = R"(using namespace arenite::expr;
template <class T>
struct Best {
  T value;
  std::int64_t place;
};
/// A NaN comes before all, and of equals the first.
template <bool least, class T>
__device__ inline Best<T> better(Best<T> a, Best<T> b) {
  if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan ? a : b;
  if (a_nan || a.value == b.value) return a.place < b.place ? a : b;
  return (least ? a.value < b.value : b.value < a.value) ? a : b;
}
#ifdef ARENITE_THREADS_IN_TURN
constexpr int lanes = 1;
template <class T, class Join>
inline T joined(T mine, Join) { return mine; }
#else
constexpr int lanes = 32;
/// Of a block's threads: one total each, of any type.
__device__ inline char* totals_of_block() {
  __shared__ alignas(16) char bytes[256 * 16];
  return bytes;
}
/// Of 32 neighbours: all get what their totals come to.
template <class T, class Join>
__device__ inline T joined(T mine, Join join) {
  T* const all = reinterpret_cast<T*>(totals_of_block());
  __syncthreads();
  all[threadIdx.x] = mine;
  __syncthreads();
  const T* const own = all + threadIdx.x / lanes * lanes;
  T part[4] = {own[0], own[1], own[2], own[3]};
#pragma unroll
  for (int i = 4; i < lanes; ++i) part[i % 4] = join(part[i % 4], own[i]);
  return join(join(part[0], part[1]), join(part[2], part[3]));
}
#endif
)";

/// What a reduction of an expression's is in a kernel: a variable, and how others are put to it.
struct Total {
  expr::NodeId node, source;
  expr::Function function;
  expr::Type type;      // of the values
  std::string total;    // its type
  std::string none;     // of no element
  std::int64_t at = 0;  // of parts' totals in the workspace

  Total(const expr::Expression& formula, expr::NodeId reduction)
      : node(reduction),
        source(formula[reduction].sources[0]),
        function(formula[reduction].function),
        type(formula[source].type) {
    if (adds()) {
      total = is_float(type) ? "double" : "unsigned long";
      none = function == expr::Function::sum ? "0" : "1";
    } else if (is_place()) {
      total = fmt::format("Best<{}>", expr::cuda_name(type));
      none = "{0, -1}";
    } else {
      total = expr::cuda_name(type);
      none = limit();
    }
  }

  bool adds() const noexcept {
    return function == expr::Function::sum || function == expr::Function::product;
  }
  bool is_place() const noexcept {
    return function == expr::Function::first_least || function == expr::Function::first_greatest;
  }
  bool least() const noexcept {
    return function == expr::Function::least || function == expr::Function::first_least;
  }

  std::string name() const { return fmt::format("f{}", node); }
  std::string begin() const { return fmt::format("{} {} = {};\n", total, name(), none); }
  std::string add(std::string_view other) const {
    return fmt::format("{} = {};\n", name(), joined(name(), other));
  }
  /// Of the threads that share a group.
  std::string join_lanes() const {
    return fmt::format("{0} = joined({0}, []({1} a, {1} b) {{ return {2}; }});\n", name(), total,
                       joined("a", "b"));
  }

 private:
  std::string joined(std::string_view a, std::string_view b) const {
    if (adds()) return fmt::format("{} {} {}", a, function == expr::Function::sum ? "+" : "*", b);
    if (is_place()) return fmt::format("better<{}>({}, {})", least(), a, b);
    if (type == expr::Type::boolean) return fmt::format("{} {} {}", a, least() ? "&&" : "||", b);
    return fmt::format("of<Function::{}>({}, {})", least() ? "min" : "max", a, b);
  }

  /// The greatest value of a type where the least is looked for, and the other way round.
  std::string limit() const {
    expr::Node greatest{.function = expr::Function::constant, .type = type};
    greatest.payload = expr::with_value(type, [&]<class T>(T) {
      using Limits = std::numeric_limits<T>;
      if constexpr (std::is_same_v<T, bool>) return expr::payload_of(least());
      if constexpr (std::is_floating_point_v<T>)
        return expr::payload_of(least() ? Limits::infinity() : -Limits::infinity());
      return expr::payload_of(static_cast<T>(least() ? Limits::max() : Limits::lowest()));
    });
    return expr::cuda_constant(greatest);
  }
};

}  // namespace arenite::codelets
