// What stands at both ends of a training step: batches, the loss, updates.
#include "tests/reference/rules.hpp"

#include <algorithm>
#include <cmath>

namespace arenite::reference {
namespace {

/// Sample j is row order[cursor + begin + j], times `scale`.
void draw(Call& call) {
  const Tensor &data = call.in(0), &order = call.in(1);
  const std::int64_t first =
      static_cast<std::int64_t>(call.in(2)[0]) + call.attributes().integer("begin");
  const std::int64_t elements = data.shape.elements() / data.shape[0];
  for (std::int64_t j = 0; j < call.attributes().integer("count"); ++j) {
    const auto row = static_cast<std::int64_t>(order[first + j]);
    for (std::int64_t i = 0; i < elements; ++i)
      call.out(0)[j * elements + i] = data[row * elements + i] * call.attributes().real("scale");
  }
}

/// loss = Σ weight · (log Σ exp(logits) − logits[label]) / divisor, and its gradient; the
/// statistics are the sum, not divided, and how many rows are largest at their label (the first of
/// equals).
void softmax_cross_entropy(Call& call) {
  const Tensor &logits = call.in(0), &labels = call.in(1);
  const std::int64_t samples = logits.shape[0], classes = logits.shape[1],
                     given = call.attributes().integer("divisor");
  const auto divisor = static_cast<double>(given == 0 ? samples : given);
  Tensor& statistics = call.out(1);
  for (std::int64_t n = 0; n < samples; ++n) {
    const auto row = logits.data.begin() + n * classes;
    const auto largest = std::max_element(row, row + classes);
    const auto label = static_cast<std::int64_t>(labels[n]);
    const double weight = call.has(2) ? call.in(2)[n] : 1;
    if (weight == 0) continue;  // the gradient is zeros
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - *largest);
    statistics[0] += weight * (*largest + std::log(sum) - row[label]);
    statistics[1] += largest - row == label ? 1 : 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      const double probability = std::exp(row[c] - *largest) / sum;
      call.out(2)[n * classes + c] = weight * (probability - (c == label ? 1 : 0)) / divisor;
    }
  }
  call.out(0)[0] = statistics[0] / divisor;
}

/// Of losses that are finite.
void check_loss(Call& call) {
  for (std::size_t i = 1; i < call.operands(); ++i) call.in(i);
  if (call.has(0)) call.out(0)[0] = call.in(0)[0];
}

void sgd(Call& call) {
  sgd_step(call, call.in(1).data, {.weight = 0, .learning_rate = 2, .velocity = 3});
}

void multi_sgd(Call& call) {
  std::size_t result = 0;
  for (std::size_t first = 1; first < call.operands(); first += 3) {
    const Tensor& rows = call.in(first + 1);
    const auto count = static_cast<std::size_t>(call.in(first).shape.elements());
    std::vector<double> gradient(count);
    for (std::size_t i = 0; i < rows.data.size(); ++i) gradient[i % count] += rows.data[i];
    sgd_step(call, gradient,
             {.weight = first, .learning_rate = 0, .velocity = first + 2, .result = result});
    result += call.has(first + 2) ? 2 : 1;
  }
}

Rules gather_rules() {
  Rules all;
  add_pointwise_rules(all);
  add_dense_rules(all);
  add_product_rules(all);
  add_axis_rules(all);
  add_convolution_rules(all);
  add_elementwise_rules(all);
  add_map_rules(all);
  add_formula_rules(all);
  add_dropout_rules(all);
  add_indexing_rules(all);
  add_pooling_rules(all);
  add_norm_rules(all);
  add_complex_rules(all);
  add_training_rules(all);
  add_optimizer_rules(all);
  return all;
}

}  // namespace

void sgd_step(Call& call, const std::vector<double>& gradient, SgdOperands at) {
  const double momentum = call.attributes().real("momentum"),
               decay = call.attributes().real("weight_decay"), rate = call.in(at.learning_rate)[0];
  Tensor& weight = call.out(at.result);
  Tensor* velocity = call.has(at.velocity) ? &call.out(at.result + 1) : nullptr;
  weight.data = call.in(at.weight).data;
  if (velocity) velocity->data = call.in(at.velocity).data;
  for (std::int64_t i = 0; i < weight.shape.elements(); ++i) {
    double g = gradient.at(static_cast<std::size_t>(i)) + decay * weight[i];
    if (velocity) g = (*velocity)[i] = momentum * (*velocity)[i] + g;
    weight[i] -= rate * g;
  }
}

void add_training_rules(Rules& rules) {
  rules["draw"] = draw;
  rules["softmax_cross_entropy"] = softmax_cross_entropy;
  rules["check_loss"] = check_loss;
  rules["sgd"] = sgd;
  rules["multi_sgd"] = multi_sgd;
}

const Rules& rules() {
  static const Rules all = gather_rules();
  return all;
}

}  // namespace arenite::reference
