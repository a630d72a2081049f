// What kernels of dense layers know of their operands.
#pragma once

#include "codelets/registry.hpp"
#include "src/base/sum_tree.hpp"

#include <cstdint>
#include <vector>

namespace arenite::codelets {

/// x [n, i], weight [i, o], y [n, o].
struct DenseSizes {
  std::int64_t n = 0, i = 0, o = 0;
};

/// y = x · weight [+ bias], or the ReLU of that.
struct DenseForward : DenseSizes {
  bool biased, relu;

  explicit DenseForward(const OpView& op)
      : DenseSizes{op.operand(0).shape[0], op.operand(0).shape[1], op.operand(1).shape[1]},
        biased(op.has_operand(2)),
        relu(op.op().name() == "dense_relu") {}
};

/// dx = gradient · weightᵀ.
struct DenseGradInput : DenseSizes {
  bool masked;  ///< dx is 0 where operand 2 is, what a ReLU made of the layer before

  explicit DenseGradInput(const OpView& op)
      : DenseSizes{op.operand(0).shape[0], op.operand(1).shape[0], op.operand(0).shape[1]},
        masked(op.has_operand(2)) {}
};

/// The pairs (x, gradient) that a weight's gradient is the sum of, from operand `first` on.
struct DensePairs {
  static constexpr std::size_t of_update = 3;  ///< the first one's operand of dense_grad_weight_sgd

  std::size_t first = 0;
  std::int64_t inputs = 0, outputs = 0;
  std::int64_t begin = 0, end = 0;    ///< rows of the gradient: inputs
  std::vector<std::int64_t> samples;  ///< of each pair
  bool tree = false;  ///< products of pairs are added as `sum` adds, not one behind the other

  explicit DensePairs(const OpView& op, std::size_t first_pair = 0)
      : first(first_pair),
        inputs(op.operand(first).shape[1]),
        outputs(op.operand(first + 1).shape[1]),
        end(inputs) {
    const auto& rows = op.attributes().integers("rows");
    if (!rows.empty()) begin = rows[0], end = rows[1];
    for (std::size_t i = first; i < op.operand_count(); i += 2)
      samples.push_back(op.operand(i).shape[0]);
    tree = op.integer(graph::sum_tree) != 0 && samples.size() > 1;
  }

  const float* x(const KernelCall& call, std::size_t pair) const noexcept {
    return call.in<float>(first + 2 * pair);
  }
  const float* gradient(const KernelCall& call, std::size_t pair) const noexcept {
    return call.in<float>(first + 2 * pair + 1);
  }
};

/// What dense_grad_weight_sgd changes on the host: at first what it was given.
struct DenseUpdated {
  float *weight, *velocity;  ///< `velocity` is nullptr without momentum

  DenseUpdated(const KernelCall& call, const DensePairs& pairs)
      : weight(call.renewed<float>(0, 0, (pairs.end - pairs.begin) * pairs.outputs)),
        velocity(call.operands[2] == nullptr
                     ? nullptr
                     : call.renewed<float>(1, 2, (pairs.end - pairs.begin) * pairs.outputs)) {}
};

}  // namespace arenite::codelets
