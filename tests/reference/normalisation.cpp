// Rows along the last axis, each divided by a number of its own: norms, softmax.
#include "tests/reference/rules.hpp"

#include <cmath>

namespace arenite::reference {
namespace {

/// Calls f(index of the first element) for every row.
template <class F>
void each_row(const Shape& shape, F f) {
  const std::int64_t length = shape.at(-1);
  for (std::int64_t from = 0; from < shape.elements(); from += length) f(from);
}

double root_mean_square(const Tensor& x, std::int64_t from, double eps) {
  const std::int64_t length = x.shape.at(-1);
  double squares = 0;
  for (std::int64_t i = from; i < from + length; ++i) squares += x[i] * x[i];
  return std::sqrt(squares / static_cast<double>(length) + eps);
}

void rms_norm(Call& call) {
  const Tensor &x = call.in(0), &weight = call.in(1);
  each_row(x.shape, [&](std::int64_t from) {
    const double root = root_mean_square(x, from, call.attributes().real("eps"));
    for (std::int64_t i = 0; i < x.shape.at(-1); ++i)
      call.out(0)[from + i] = x[from + i] / root * weight[i];
  });
}

void layer_norm(Call& call) {
  const Tensor &x = call.in(0), &weight = call.in(1), &bias = call.in(2);
  const std::int64_t length = x.shape.at(-1);
  each_row(x.shape, [&](std::int64_t from) {
    double mean = 0, variance = 0;
    for (std::int64_t i = from; i < from + length; ++i) mean += x[i] / static_cast<double>(length);
    for (std::int64_t i = from; i < from + length; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(length);
    const double root = std::sqrt(variance + call.attributes().real("eps"));
    for (std::int64_t i = 0; i < length; ++i)
      call.out(0)[from + i] = (x[from + i] - mean) / root * weight[i] + bias[i];
  });
}

void normalize_channels(Call& call) {
  const Tensor &x = call.in(0), &mean = call.in(1), &rest = call.in(2), &factor = call.in(3);
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
    const std::int64_t c = i % x.shape.at(-1);
    call.out(0)[i] = (x[i] - mean[c] - rest[c]) * factor[c] + (call.has(4) ? call.in(4)[c] : 0.0);
  }
}

/// The attribute, or the operand; 0 where the operand's is none.
std::int64_t prefix_of(Call& call, std::size_t value, const Shape& shape) {
  if (!call.has(value)) return call.attributes().integer("prefix");
  const double prefix = call.in(value)[0];
  const bool fits = prefix >= 0 && prefix <= static_cast<double>(shape.at(-1));
  return fits ? static_cast<std::int64_t>(prefix) : 0;
}

void softmax_of(const Tensor& x, std::int64_t prefix, Tensor& y) {
  y.data = x.data;
  if (prefix == 0) return;
  each_row(x.shape, [&](std::int64_t from) {
    const auto row = x.data.begin() + from;
    const double largest = *std::max_element(row, row + prefix);
    double sum = 0;
    for (std::int64_t i = from; i < from + prefix; ++i) sum += std::exp(x[i] - largest);
    for (std::int64_t i = from; i < from + prefix; ++i) y[i] = std::exp(x[i] - largest) / sum;
  });
}

void softmax(Call& call) {
  const Tensor& x = call.in(0);
  softmax_of(x, x.shape.at(-1), call.out(0));
}

void log_softmax(Call& call) {
  softmax(call);
  for (double& y : call.out(0).data) y = std::log(y);
}

void sliced_softmax(Call& call) {
  const Tensor& x = call.in(0);
  softmax_of(x, prefix_of(call, 1, x.shape), call.out(0));
}

/// dx = y · (g − Σ g·y) in the prefix
void sliced_softmax_grad(Call& call) {
  const Tensor &gradient = call.in(0), &y = call.in(1);
  const std::int64_t prefix = prefix_of(call, 2, y.shape);
  call.out(0).data = gradient.data;
  each_row(y.shape, [&](std::int64_t from) {
    double sum = 0;
    for (std::int64_t i = from; i < from + prefix; ++i) sum += gradient[i] * y[i];
    for (std::int64_t i = from; i < from + prefix; ++i) call.out(0)[i] = y[i] * (gradient[i] - sum);
  });
}

}  // namespace

void add_norm_rules(Rules& rules) {
  rules["rms_norm"] = rms_norm;
  rules["layer_norm"] = layer_norm;
  rules["normalize_channels"] = normalize_channels;
  rules["softmax"] = softmax;
  rules["log_softmax"] = log_softmax;
  rules["sliced_softmax"] = sliced_softmax;
  rules["sliced_softmax_grad"] = sliced_softmax_grad;
}

}  // namespace arenite::reference
