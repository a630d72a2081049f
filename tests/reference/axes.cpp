// Values whose axes stand in another order.
#include "tests/reference/rules.hpp"

namespace arenite::reference {
namespace {

/// Axis i of y is axis dims[i] of x.
void permute(Call& call) {
  const Tensor& x = call.in(0);
  Tensor& y = call.out(0);
  const auto& dims = call.attributes().integers("dims");
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    std::vector<std::int64_t> index(dims.size());  // in x
    std::int64_t rest = i, from = 0;
    for (int axis = y.shape.rank() - 1; axis >= 0; --axis) {
      index.at(static_cast<std::size_t>(dims.at(static_cast<std::size_t>(axis)))) =
          rest % y.shape[axis];
      rest /= y.shape[axis];
    }
    for (int axis = 0; axis < x.shape.rank(); ++axis)
      from = from * x.shape[axis] + index.at(static_cast<std::size_t>(axis));
    y[i] = x[from];
  }
}

}  // namespace

void add_axis_rules(Rules& rules) { rules["permute"] = permute; }

}  // namespace arenite::reference
