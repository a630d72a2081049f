// Fully connected layers: x [N, I], weight [I, O], bias [O], y [N, O].
#include "tests/reference/rules.hpp"

namespace arenite::reference {
namespace {

/// Calls f(index in x, in weight, in y) for every product of y = x · weight.
template <class F>
void each_product(std::int64_t samples, std::int64_t inputs, std::int64_t outputs, F f) {
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t i = 0; i < inputs; ++i) {
      for (std::int64_t o = 0; o < outputs; ++o)
        f(n * inputs + i, i * outputs + o, n * outputs + o);
    }
  }
}

void dense(Call& call) {
  const Tensor &x = call.in(0), &weight = call.in(1);
  Tensor& y = call.out(0);
  const std::int64_t outputs = weight.shape[1];
  if (call.has(2)) {
    const Tensor& b = call.in(2);
    for (std::int64_t i = 0; i < y.shape.elements(); ++i) y[i] = b[i % outputs];
  }
  each_product(x.shape[0], x.shape[1], outputs,
               [&](auto xi, auto wi, auto yi) { y[yi] += x[xi] * weight[wi]; });
}

void dense_relu(Call& call) {
  dense(call);
  rectify(call);
}

void dense_grad_input(Call& call) {
  const Tensor &gradient = call.in(0), &weight = call.in(1);
  Tensor& dx = call.out(0);
  each_product(gradient.shape[0], weight.shape[0], weight.shape[1],
               [&](auto xi, auto wi, auto yi) { dx[xi] += gradient[yi] * weight[wi]; });
}

void dense_grad_input_relu(Call& call) {
  dense_grad_input(call);
  rectify_gradient(call, 2);
}

/// Over the pairs (x, gradient) from operand `first` on, each with samples of its own; all rows, or
/// some.
std::vector<double> weight_gradient(Call& call, std::size_t first) {
  const std::int64_t outputs = call.in(first + 1).shape[1], inputs = call.in(first).shape[1];
  Tensor dweight({inputs, outputs});
  for (std::size_t i = first; i < call.operands(); i += 2) {
    const Tensor &x = call.in(i), &gradient = call.in(i + 1);
    each_product(x.shape[0], x.shape[1], gradient.shape[1],
                 [&](auto xi, auto wi, auto yi) { dweight[wi] += x[xi] * gradient[yi]; });
  }
  const auto& rows = call.attributes().integers("rows");
  const std::int64_t from = rows.empty() ? 0 : rows[0], to = rows.empty() ? inputs : rows[1];
  return {dweight.data.begin() + from * outputs, dweight.data.begin() + to * outputs};
}

void dense_grad_weight(Call& call) { call.out(0).data = weight_gradient(call, 0); }

void dense_grad_weight_sgd(Call& call) {
  sgd_step(call, weight_gradient(call, 3), {.weight = 0, .learning_rate = 1, .velocity = 2});
}

void bias_grad(Call& call) {
  const Tensor& gradient = call.in(0);
  for (std::int64_t i = 0; i < gradient.shape.elements(); ++i)
    call.out(0)[i % gradient.shape.at(-1)] += gradient[i];
}

}  // namespace

void add_dense_rules(Rules& rules) {
  rules["dense"] = dense;
  rules["dense_relu"] = dense_relu;
  rules["dense_grad_input"] = dense_grad_input;
  rules["dense_grad_input_relu"] = dense_grad_input_relu;
  rules["dense_grad_weight"] = dense_grad_weight;
  rules["dense_grad_weight_sgd"] = dense_grad_weight_sgd;
  rules["bias_grad"] = bias_grad;
}

}  // namespace arenite::reference
