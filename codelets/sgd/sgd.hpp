#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> sgd_kernels();

namespace sgd {

/// Which operands of an op are what it updates with.
struct Operands {
  std::size_t weight = 0, learning_rate = 2, velocity = 3;
};

/// Throws Error unless these, momentum and weight_decay agree, as `sgd` wants them.
void expect_rule(const graph::OpView& op, const Operands& at);

/// The attributes that `expect_rule` reads.
std::vector<graph::AttributeSchema> attributes();

}  // namespace sgd

}  // namespace arenite::codelets
