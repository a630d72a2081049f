// Values whose axes stand in another order, and matrices put together.
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

/// Calls f(operand, element of it, element of y) for all that is copied.
template <class F>
void each_copied(Call& call, bool stacks, F f) {
  const auto& range = call.attributes().integers(stacks ? "columns" : "rows");
  const std::int64_t width = call.out(0).shape[1];
  std::int64_t row = 0, column = 0;  // in y, of the operand's first element
  for (std::size_t i = 0; i < call.operands(); ++i) {
    const Shape& x = call.in(i).shape;
    for (std::int64_t r = 0; r < x[0]; ++r) {
      for (std::int64_t c = 0; c < x[1]; ++c) {
        const std::int64_t along = stacks ? c : r;
        if (!range.empty() && (along < range[0] || along >= range[1])) continue;
        const std::int64_t skipped = range.empty() ? 0 : range[0];
        const std::int64_t y_row = row + r - (stacks ? 0 : skipped),
                           y_column = column + c - (stacks ? skipped : 0);
        f(i, r * x[1] + c, y_row * width + y_column);
      }
    }
    (stacks ? row : column) += stacks ? x[0] : x[1];
  }
}

template <bool stacks>
void put_together(Call& call) {
  each_copied(call, stacks, [&](std::size_t i, std::int64_t from, std::int64_t to) {
    call.out(0)[to] = call.in(i)[from];
  });
}

}  // namespace

void add_axis_rules(Rules& rules) {
  rules["permute"] = permute;
  rules["stack_columns"] = put_together<true>;
  rules["join_columns"] = put_together<false>;
}

}  // namespace arenite::reference
