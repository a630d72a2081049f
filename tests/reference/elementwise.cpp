// Element by element, also of values that are repeated along axes of size 1.
#include "tests/reference/rules.hpp"

namespace arenite::reference {
std::int64_t seen_at(const Shape& whole, const Shape& part, std::int64_t i) {
  std::int64_t at = 0, step = 1;
  const int missing = whole.rank() - part.rank();
  for (int axis = whole.rank(); axis-- > missing; i /= whole[axis]) {
    const std::int64_t size = part[axis - missing];
    if (size != 1) at += i % whole[axis] * step;
    step *= size;
  }
  return at;
}

namespace {

void sum_to(Call& call) {
  const Tensor& x = call.in(0);
  Tensor& y = call.out(0);
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) y[seen_at(x.shape, y.shape, i)] += x[i];
}

void broadcast_to(Call& call) {
  const Tensor& x = call.in(0);
  Tensor& y = call.out(0);
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) y[i] = x[seen_at(y.shape, x.shape, i)];
}

}  // namespace

void add_elementwise_rules(Rules& rules) {
  rules["sum_to"] = sum_to;
  rules["broadcast_to"] = broadcast_to;
}

}  // namespace arenite::reference
