// Makes expressions, written as formulas:
//
//   Builder builder;
//   const Value x = builder.operand(Type::float32);
//   const Expression silu = builder.finish({x / (1 + exp(-x))});
//
// A number takes the type of what it meets: in `1 + x` that of x. As a template, the same formula
// works on plain floats.
#pragma once

#include <arenite/expr/expression.hpp>

#include <concepts>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace arenite::expr {

class Builder;

/// A node of a builder's, for as long as the builder is there.
class Value {
 public:
  Type type() const noexcept;
  NodeId node() const noexcept { return node_; }
  Builder& builder() const noexcept { return *builder_; }

 private:
  friend class Builder;
  Value(Builder& builder, NodeId node) : builder_(&builder), node_(node) {}

  Builder* builder_;
  NodeId node_;
};

/// What a function may be given: a value, or a number that takes the type of the values beside it.
class Term {
 public:
  Term(Value value) : builder_(&value.builder()), node_(value.node()) {}  // NOLINT: as in x + 1
  template <class T>
  requires std::integral<T> Term(T number)
      : integer_(static_cast<std::int64_t>(number)), is_integer_(true) {}  // NOLINT
  template <class T>
  requires std::floating_point<T> Term(T number) : real_(static_cast<double>(number)) {}  // NOLINT

  bool is_number() const noexcept { return builder_ == nullptr; }
  bool is_integer() const noexcept { return is_integer_; }
  std::int64_t integer() const noexcept { return integer_; }
  double real() const noexcept { return is_integer_ ? static_cast<double>(integer_) : real_; }
  Builder* builder() const noexcept { return builder_; }  ///< of a value
  NodeId node() const noexcept { return node_; }

 private:
  Builder* builder_ = nullptr;
  NodeId node_ = 0;
  std::int64_t integer_ = 0;
  double real_ = 0;
  bool is_integer_ = false;
};

/// An expression of which some operands may be needed by none of its results.
struct Reduced {
  Expression expression;
  std::vector<std::size_t> operands;  ///< those that are left: their numbers before
};

class Builder {
 public:
  Builder() = default;
  Builder(const Builder&) = delete;  // values point to it
  Builder& operator=(const Builder&) = delete;

  /// The next one.
  Value operand(Type type);
  Value constant(Type type, Term number);
  Value index(int axis);
  Value count();
  /// Numbers take the type of the values. Throws Error on types that the function does not take,
  /// and where there are numbers alone.
  Value apply(Function function, std::span<const Term> sources);
  Value cast(Type type, Term source);  ///< of a number: a constant

  /// What the node of another builder or an expression is, of these values: as many as it has
  /// sources. Not of an operand.
  Value copy(const Node& node, std::span<const Value> sources);
  /// Appends an expression, with these values for its operands; returns its results. Throws Error
  /// where they are not as many, of other types, or another builder's.
  std::vector<Value> insert(const Expression& expression, std::span<const Value> operands);

  /// Throws Error where there is no result, one that is a boolean (nothing stores them), or an
  /// operand that no result needs. The builder may go on.
  Expression finish(std::span<const Value> results) const;
  Expression finish(std::initializer_list<Value> results) const {
    return finish(std::span(results.begin(), results.size()));
  }
  /// Leaves out operands that no result needs, and so no operands may be left.
  Reduced finish_reduced(std::span<const Value> results) const;

  const Node& operator[](NodeId node) const noexcept { return nodes_[node].node; }
  Value value(NodeId node) noexcept { return {*this, node}; }
  std::size_t node_count() const noexcept { return nodes_.size(); }

 private:
  struct Known {
    Node node;
    std::uint64_t hash;  // of all that it computes
    NodeId next;         // of those in its place of by_hash_
  };

  static constexpr NodeId none = std::numeric_limits<NodeId>::max();

  Value add(Node node);
  void grow();
  bool is_cut_off(const Node& node) const;
  std::optional<NodeId> simpler(const Node& node);
  Expression collect(std::span<const Value> results) const;
  NodeId take(Term term, Type type);

  std::vector<Known> nodes_;
  std::vector<NodeId> by_hash_;  // the first of each place: no heap call a node
  std::vector<Type> operands_;
};

inline Type Value::type() const noexcept { return (*builder_)[node_].type; }

// ---- Formulas ----------------------------------------------------------------------------------

/// Applies a function where one of the sources is a value.
Value apply(Function function, std::initializer_list<Term> sources);

inline Value operator-(Value x) { return apply(Function::negate, {x}); }
inline Value operator~(Value x) { return apply(Function::invert, {x}); }
inline Value operator!(Value x) { return apply(Function::invert, {x}); }
inline Value abs(Value x) { return apply(Function::abs, {x}); }
inline Value floor(Value x) { return apply(Function::floor, {x}); }
inline Value round(Value x) { return apply(Function::round, {x}); }
inline Value sqrt(Value x) { return apply(Function::sqrt, {x}); }
inline Value rsqrt(Value x) { return apply(Function::rsqrt, {x}); }
inline Value exp(Value x) { return apply(Function::exp, {x}); }
inline Value expm1(Value x) { return apply(Function::expm1, {x}); }
inline Value log(Value x) { return apply(Function::log, {x}); }
inline Value log1p(Value x) { return apply(Function::log1p, {x}); }
inline Value sin(Value x) { return apply(Function::sin, {x}); }
inline Value cos(Value x) { return apply(Function::cos, {x}); }
inline Value tanh(Value x) { return apply(Function::tanh, {x}); }
inline Value erf(Value x) { return apply(Function::erf, {x}); }
inline Value sigmoid(Value x) { return apply(Function::sigmoid, {x}); }
inline Value bfloat16(Value x) { return apply(Function::bfloat16, {x}); }
inline Value cast(Type type, Value x) { return x.builder().cast(type, x); }

// Over the elements of a group
inline Value sum(Value x) { return apply(Function::sum, {x}); }
inline Value prod(Value x) { return apply(Function::product, {x}); }
inline Value min(Value x) { return apply(Function::least, {x}); }
inline Value max(Value x) { return apply(Function::greatest, {x}); }
inline Value argmin(Value x) { return apply(Function::first_least, {x}); }
inline Value argmax(Value x) { return apply(Function::first_greatest, {x}); }
/// Of values as they are, or of booleans.
Value all(Value x);
Value any(Value x);
Value mean(Value x);
/// The mean square of the distance to the mean, in two passes.
Value variance(Value x);
/// log(sum(exp(x))), of any x.
Value logsumexp(Value x);

/// One of the two at least is a Value; the other may be a number.
template <class A, class B>
concept of_values =
    (std::same_as<A, Value> ||
     std::same_as<B, Value>)&&std::convertible_to<A, Term>&& std::convertible_to<B, Term>;

// clang-format off
template <class A, class B> requires of_values<A, B> Value operator+(A a, B b) { return apply(Function::add, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator-(A a, B b) { return apply(Function::subtract, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator*(A a, B b) { return apply(Function::multiply, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator/(A a, B b) { return apply(Function::divide, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator%(A a, B b) { return apply(Function::remainder, {a, b}); }
template <class A, class B> requires of_values<A, B> Value min(A a, B b) { return apply(Function::min, {a, b}); }
template <class A, class B> requires of_values<A, B> Value max(A a, B b) { return apply(Function::max, {a, b}); }
template <class A, class B> requires of_values<A, B> Value pow(A a, B b) { return apply(Function::pow, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator==(A a, B b) { return apply(Function::equal, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator!=(A a, B b) { return apply(Function::not_equal, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator<(A a, B b) { return apply(Function::less, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator<=(A a, B b) { return apply(Function::less_equal, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator>(A a, B b) { return apply(Function::less, {b, a}); }
template <class A, class B> requires of_values<A, B> Value operator>=(A a, B b) { return apply(Function::less_equal, {b, a}); }
template <class A, class B> requires of_values<A, B> Value operator&(A a, B b) { return apply(Function::bit_and, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator|(A a, B b) { return apply(Function::bit_or, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator^(A a, B b) { return apply(Function::bit_xor, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator<<(A a, B b) { return apply(Function::shift_left, {a, b}); }
template <class A, class B> requires of_values<A, B> Value operator>>(A a, B b) { return apply(Function::shift_right, {a, b}); }
// clang-format on

/// Random bits of the place `counter` in the sequence of `key`, one of whose sources is a Value:
/// 32 of them, which as an int64 are not negative.
inline Value philox(Term counter, Term key) { return apply(Function::philox, {counter, key}); }
/// The same as a float32 from 0 to below 1.
inline Value uniform(Term counter, Term key) { return apply(Function::uniform, {counter, key}); }
inline Value fma(Term a, Term b, Term c) { return apply(Function::fma, {a, b, c}); }
inline Value select(Value condition, Term yes, Term no) {
  return apply(Function::select, {condition, yes, no});
}

}  // namespace arenite::expr
