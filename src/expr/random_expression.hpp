// Random expressions of all functions and types, with what is rare in formulas: constants at the
// ends of their types' ranges, NaN, numbers too small to be normal, deep and shared parts.
#pragma once

#include <arenite/expr/builder.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "src/expr/functions.hpp"
#include "src/expr/scalar.hpp"

namespace arenite::expr::testing {

/// Whether two values are equal; a NaN equals any other.
inline bool same_bits(Type type, std::uint64_t a, std::uint64_t b) {
  if (a == b || !is_float(type)) return a == b;
  return with_value(type, [&]<class T>(T) {
    return std::isnan(static_cast<double>(value_of<T>(a))) &&
           std::isnan(static_cast<double>(value_of<T>(b)));
  });
}

struct RandomOptions {
  bool exact = false;  ///< of functions that have the same bits on all machines alone
  int axes = 8;        ///< that there are for indices
  /// Operands are of types that memory has: not booleans.
  bool stored = false;
};

class RandomExpression {
 public:
  explicit RandomExpression(unsigned seed, RandomOptions options = {})
      : random_(seed), options_(options) {}

  Expression make() {
    for (int i = pick(5) + options_.stored; i > 0; --i) {
      const Type type = any_type();
      const bool fits = !options_.stored || type != Type::boolean;
      values_.push_back(builder_.operand(fits ? type : Type::float32));
    }
    const std::size_t operands = values_.size();
    if (options_.axes > 0 && pick(3) == 0) values_.push_back(builder_.index(pick(options_.axes)));
    for (int i = 1 + pick(40); i > 0; --i) values_.push_back(node());
    std::vector<Value> results;
    for (int i = 1 + pick(3); i > 0; --i) results.push_back(stored(values_[recent()]));
    for (std::size_t i = 0; i < operands; ++i)
      if (pick(2) || !is_needed(results, i)) results.push_back(stored(values_[i]));
    return builder_.finish(results);
  }

  /// What an operand of this type may hold; no number that is too small to be normal.
  std::uint64_t payload(Type type) {
    return with_value(type, [&]<class T>(T) {
      const Term drawn = number(type);
      if constexpr (std::is_floating_point_v<T>) {
        const T value = static_cast<T>(drawn.real());
        return payload_of(std::fpclassify(value) == FP_SUBNORMAL ? T{1} : value);
      } else {
        return payload_of(static_cast<T>(drawn.integer()));
      }
    });
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  Type any_type() { return static_cast<Type>(pick(6)); }
  std::size_t recent() {
    const int all = static_cast<int>(values_.size());
    return static_cast<std::size_t>(pick(2) ? pick(all) : all - 1 - pick(std::min(all, 4)));
  }

  Value stored(Value value) {
    return value.type() == Type::boolean ? builder_.cast(Type::uint8, value) : value;
  }

  bool is_needed(const std::vector<Value>& results, std::size_t operand) {
    const auto left = builder_.finish_reduced(results).operands;
    return std::ranges::find(left, operand) != left.end();
  }

  Term number(Type type) {
    using float32 = std::numeric_limits<float>;
    using float64 = std::numeric_limits<double>;
    const double reals[] = {0.0,
                            -0.0,
                            1.0,
                            -1.5,
                            0.1,
                            1e-8,
                            16777217.0,
                            1e15,
                            1e20,
                            -3.5e30,
                            float32::max(),
                            float32::denorm_min(),
                            -float32::min() / 2,
                            float64::infinity(),
                            -float64::infinity(),
                            float64::quiet_NaN(),
                            float64::max(),
                            float64::denorm_min(),
                            std::exp(pick(200) - 100.0) * (1 + pick(1000) / 7.0)};
    switch (type) {
      case Type::boolean:
        return pick(2);
      case Type::uint8:
        return pick(256);
      case Type::int32:
        return pick(3) ? pick(100) - 50
                       : std::numeric_limits<std::int32_t>::min() + (pick(2) ? 0 : pick(1 << 30));
      case Type::int64:
        return pick(3) ? std::int64_t{pick(100)} - 50
                       : std::numeric_limits<std::int64_t>::min() +
                             static_cast<std::int64_t>(random_() >> (1 + pick(63)));
      default:
        return pick(2) ? Term(reals[pick(static_cast<int>(std::size(reals)))])
                       : Term(std::ldexp(static_cast<double>(random_()), pick(140) - 70));
    }
  }

  /// Of this type; at times a constant.
  Value source(Type type) {
    if (pick(6) == 0 || values_.empty()) return builder_.constant(type, number(type));
    for (int tries = 0; tries < 6; ++tries) {
      const Value value = values_[recent()];
      if (value.type() == type) return value;
    }
    return builder_.cast(type, values_[recent()]);
  }

  Value node() {
    while (true) {
      const FunctionInfo& function = info(static_cast<Function>(pick(function_count)));
      if (function.sources == 0 || (options_.exact && !function.is(exact))) continue;
      if (function.function == Function::cast) return source(any_type());
      const Type type = any_type();
      if (!takes(function, type)) continue;
      if (function.function == Function::bfloat16 && type != Type::float32) continue;
      std::vector<Term> sources;
      for (int i = 0; i < function.sources; ++i) {
        const bool condition = function.function == Function::select && i == 0;
        sources.push_back(source(condition ? Type::boolean : type));
      }
      return builder_.apply(function.function, sources);
    }
  }

  std::mt19937_64 random_;
  RandomOptions options_;
  Builder builder_;
  std::vector<Value> values_;
};

}  // namespace arenite::expr::testing
