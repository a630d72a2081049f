// Rows along the last axis, each divided by a number of its own: rms_norm.
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

/// dx = g·w/r − x · Σ g·w·x / (C·r³)
void rms_norm_grad_input(Call& call) {
  const Tensor &gradient = call.in(0), &x = call.in(1), &weight = call.in(2);
  const std::int64_t length = x.shape.at(-1);
  each_row(x.shape, [&](std::int64_t from) {
    const double root = root_mean_square(x, from, call.attributes().real("eps"));
    double sum = 0;
    for (std::int64_t i = 0; i < length; ++i) sum += gradient[from + i] * weight[i] * x[from + i];
    for (std::int64_t i = 0; i < length; ++i) {
      call.out(0)[from + i] = gradient[from + i] * weight[i] / root -
                              x[from + i] * sum / (static_cast<double>(length) * std::pow(root, 3));
    }
  });
}

void rms_norm_grad_weight(Call& call) {
  const Tensor &gradient = call.in(0), &x = call.in(1);
  each_row(x.shape, [&](std::int64_t from) {
    const double root = root_mean_square(x, from, call.attributes().real("eps"));
    for (std::int64_t i = 0; i < x.shape.at(-1); ++i)
      call.out(0)[i] += gradient[from + i] * x[from + i] / root;
  });
}

}  // namespace

void add_norm_rules(Rules& rules) {
  rules["rms_norm"] = rms_norm;
  rules["rms_norm_grad_input"] = rms_norm_grad_input;
  rules["rms_norm_grad_weight"] = rms_norm_grad_weight;
}

}  // namespace arenite::reference
