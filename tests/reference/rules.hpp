// The files that hold the rules, by what they are about. `rules()` gathers them.
#pragma once

#include "tests/reference/evaluator.hpp"

namespace arenite::reference {

void add_pointwise_rules(Rules& rules);    ///< relu, sums, scales, views
void add_dense_rules(Rules& rules);        ///< dense with and without ReLU, bias
void add_product_rules(Rules& rules);      ///< matmul
void add_axis_rules(Rules& rules);         ///< permute
void add_convolution_rules(Rules& rules);  ///< conv2d, alone and fused with ReLU and pooling
void add_elementwise_rules(Rules& rules);  ///< what broadcasts, smooth functions
void add_map_rules(Rules& rules);          ///< map
void add_formula_rules(Rules& rules);      ///< formulas by name
void add_dropout_rules(Rules& rules);      ///< dropout_in_training
void add_indexing_rules(Rules& rules);     ///< rows from an index that is data
void add_pooling_rules(Rules& rules);      ///< max_pool2d, avg_pool2d
void add_norm_rules(Rules& rules);         ///< rms_norm, softmax
void add_complex_rules(Rules& rules);      ///< complex_mul
void add_training_rules(Rules& rules);     ///< batches, the loss, updates by sgd
void add_optimizer_rules(Rules& rules);    ///< other updates

/// The element of `part`, which may lack the first axes, that is seen at element i of `whole`.
std::int64_t seen_at(const Shape& whole, const Shape& part, std::int64_t i);

/// Result 0 becomes its ReLU.
void rectify(Call& call);
/// Result 0 becomes what a ReLU lets through of it, whose output is operand i.
void rectify_gradient(Call& call, std::size_t i);

/// Where an op that updates its operand 0 has the rest.
struct SgdOperands {
  std::size_t weight, learning_rate, velocity;
  std::size_t result = 0;  ///< the new weight; the next one is the velocity
};

/// PyTorch's form: velocity ← momentum · velocity + g, weight ← weight − rate · velocity.
void sgd_step(Call& call, const std::vector<double>& gradient, SgdOperands at);

}  // namespace arenite::reference
