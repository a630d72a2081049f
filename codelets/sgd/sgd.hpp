#pragma once

#include "codelets/registry.hpp"
#include "codelets/sgd/step.hpp"

#include <cstdint>
#include <vector>

namespace arenite::codelets {

std::vector<Kernel> multi_sgd_kernels();

namespace sgd {

/// Which operands of an op are what it updates with.
struct Operands {
  std::size_t weight = 0, learning_rate = 2, velocity = 3;
};

/// Throws Error unless these, momentum and weight_decay agree, as `sgd` wants them.
void expect_rule(const OpView& op, const Operands& at);

/// What `multi_sgd` does: its operands behind the learning rate, by three.
struct Updates {
  static constexpr std::size_t stride = 3;  ///< weight, gradient, velocity

  struct Item {
    std::int64_t count = 0;  ///< elements of the weight
    std::int64_t rows = 1;   ///< so many times the gradient has as many, to be summed
  };
  std::vector<Item> items;
  Rule rule;
  bool has_velocity;

  explicit Updates(const OpView& op);

  static std::size_t weight(std::size_t item) noexcept { return 1 + item * stride; }
  static std::size_t gradient(std::size_t item) noexcept { return weight(item) + 1; }
  static std::size_t velocity(std::size_t item) noexcept { return weight(item) + 2; }
  /// The result that is the new weight; that behind it is the velocity.
  std::size_t renewed(std::size_t item) const noexcept { return has_velocity ? 2 * item : item; }
};

/// The operands of which it makes new versions, weight and velocity.
std::vector<graph::OperandSchema> states();
/// What an op makes of those that it is given.
Results versions(const OpView& op);

/// The attributes that `expect_rule` reads.
std::vector<graph::AttributeSchema> attributes();

}  // namespace sgd

}  // namespace arenite::codelets
