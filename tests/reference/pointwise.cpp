// Element by element, and views: y[i] depends on the operands' i-th elements only.
#include "tests/reference/rules.hpp"

#include <cmath>

namespace arenite::reference {
namespace {

std::int64_t count(const Tensor& tensor) { return tensor.shape.elements(); }

void relu_grad(Call& call) {
  call.out(0).data = call.in(0).data;
  rectify_gradient(call, 1);
}

void sum(Call& call) {
  for (std::size_t term = 0; term < call.operands(); ++term) {
    const Tensor& x = call.in(term);
    for (std::int64_t i = 0; i < count(x); ++i) call.out(0)[i] += x[i];
  }
}

void accumulate(Call& call) {
  const Tensor &total = call.in(0), &value = call.in(1);
  for (std::int64_t i = 0; i < count(value); ++i) call.out(0)[i] = total[i] + value[i];
}

void average(Call& call) {
  const Tensor &mean = call.in(0), &value = call.in(1);
  const double kept = call.in(2)[0];
  for (std::int64_t i = 0; i < count(value); ++i)
    call.out(0)[i] = kept * mean[i] + (1 - kept) * value[i];
}

/// Whatever the target was.
void assign(Call& call) {
  call.in(0);
  call.out(0).data = call.in(1).data;
}

/// Rows [begin, end) of the first axis, and zeros around them on the way back.
void slice(Call& call) {
  const Tensor& x = call.in(0);
  const std::int64_t from = call.attributes().integer("begin") * x.shape.with(0, 1).elements();
  for (std::int64_t i = 0; i < count(call.out(0)); ++i) call.out(0)[i] = x[from + i];
}

void slice_grad(Call& call) {
  const Tensor& gradient = call.in(0);
  const std::int64_t row = gradient.shape.with(0, 1).elements();
  for (std::int64_t i = 0; i < count(gradient); ++i)
    call.out(0)[call.attributes().integer("begin") * row + i] = gradient[i];
}

/// identity, flatten, reshape: the same elements under another shape.
void copy(Call& call) { call.out(0).data = call.in(0).data; }

}  // namespace

void rectify(Call& call) {
  Tensor& y = call.out(0);
  for (std::int64_t i = 0; i < count(y); ++i) {
    const bool alive = y[i] > 0;
    call.decide(alive, std::fabs(y[i]));
    if (!alive) y[i] = 0;
  }
}

void rectify_gradient(Call& call, std::size_t i) {
  const Tensor& output = call.in(i);
  for (std::int64_t e = 0; e < count(output); ++e) {
    if (!(output[e] > 0)) call.out(0)[e] = 0;
  }
}

void add_pointwise_rules(Rules& rules) {
  rules["relu_grad"] = relu_grad;
  rules["sum"] = sum;
  rules["accumulate"] = accumulate;
  rules["average"] = average;
  rules["assign"] = assign;
  rules["slice"] = slice;
  rules["slice_grad"] = slice_grad;
  rules["identity"] = copy;
  rules["flatten"] = copy;
  rules["reshape"] = copy;
  rules["full"] = [](Call& call) {
    std::ranges::fill(call.out(0).data, call.attributes().real("value"));
  };
}

}  // namespace arenite::reference
