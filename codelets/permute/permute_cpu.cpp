#include "codelets/prepare.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace arenite::codelets {
namespace {

using graph::OpView;
using runtime::KernelCall;

/// An axis of y, and how many elements lie from one of its indices to the next.
struct Axis {
  std::int64_t size = 1, in_x = 0, in_y = 0;
};

/// The axes of y, outermost first, less those of size 1; what stays side by side in the same order
/// is one axis.
std::vector<Axis> merged_axes(const OpView& op) {
  const Shape& x = op.operand(0).shape;
  std::array<std::int64_t, Shape::max_rank> stride{};
  std::int64_t elements = 1;
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    stride[static_cast<std::size_t>(axis)] = elements;
    elements *= x[axis];
  }
  std::vector<Axis> axes;
  for (const std::int64_t from : op.attributes().integers("dims")) {
    const Axis axis{.size = x[static_cast<int>(from)],
                    .in_x = stride[static_cast<std::size_t>(from)]};
    if (axis.size == 1) continue;
    if (!axes.empty() && axes.back().in_x == axis.size * axis.in_x) {
      axes.back().size *= axis.size;
      axes.back().in_x = axis.in_x;
    } else {
      axes.push_back(axis);
    }
  }
  elements = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    axis->in_y = elements;
    elements *= axis->size;
  }
  return axes;
}

/// Runs of x that stay whole, or a matrix that is transposed, at every index of the other axes.
struct State {
  Axis last{.size = 1, .in_x = 1, .in_y = 1};   ///< of y; a run if it is x's last one too
  Axis first{.size = 1, .in_x = 1, .in_y = 1};  ///< otherwise: x's last one
  std::array<Axis, Shape::max_rank> others{};   ///< outermost first
  std::size_t other_count = 0;
  std::int64_t parts = 1;  ///< indices of the others

  explicit State(const OpView& op) {
    if (op.operand(0).shape.elements() == 0) {
      parts = 0;
      return;
    }
    std::vector<Axis> axes = merged_axes(op);
    if (!axes.empty()) {
      last = axes.back();
      axes.pop_back();
    }
    if (last.in_x != 1) {
      const auto contiguous = std::ranges::find(axes, std::int64_t{1}, &Axis::in_x);
      first = *contiguous;
      axes.erase(contiguous);
    }
    for (const Axis& axis : axes) {
      others[other_count++] = axis;
      parts *= axis.size;
    }
  }

  bool has_runs() const noexcept { return last.in_x == 1; }
};

/// `f(index in x, index in y)` at every index of the axes that are not walked within.
template <class F>
void for_each_part(const State& state, F f) noexcept {
  std::array<std::int64_t, Shape::max_rank> index{};
  std::int64_t x = 0, y = 0;
  for (std::int64_t part = 0; part < state.parts; ++part) {
    f(x, y);
    for (std::size_t i = state.other_count; i-- > 0;) {
      const Axis& axis = state.others[i];
      x += axis.in_x, y += axis.in_y;
      if (++index[i] < axis.size) break;
      index[i] = 0;
      x -= axis.size * axis.in_x, y -= axis.size * axis.in_y;
    }
  }
}

template <std::int64_t bytes>
void copy_runs(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const auto* x = call.in<std::byte>(0);
  auto* y = call.out<std::byte>(0);
  const auto length = static_cast<std::size_t>(state.last.size * bytes);
  for_each_part(state, [&](std::int64_t from, std::int64_t to) {
    std::memcpy(y + to * bytes, x + from * bytes, length);
  });
}

/// A square of so many elements each way is read and written while its lines are in the first-level
/// cache.
constexpr std::int64_t tile = 16;

/// y[i][j] = x[j][i]: rows of y are `row_y` elements apart, those of x `row_x`.
template <std::int64_t bytes>
void transpose_tile(const std::byte* x, std::int64_t row_x, std::byte* y, std::int64_t row_y,
                    std::int64_t rows, std::int64_t columns) noexcept {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j)
      std::memcpy(y + (i * row_y + j) * bytes, x + (j * row_x + i) * bytes, bytes);
  }
}

template <std::int64_t bytes>
void transpose(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const auto* x = call.in<std::byte>(0);
  auto* y = call.out<std::byte>(0);
  const std::int64_t rows = state.first.size, columns = state.last.size;
  for_each_part(state, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = 0; i < rows; i += tile) {
      for (std::int64_t j = 0; j < columns; j += tile) {
        transpose_tile<bytes>(x + (from + j * state.last.in_x + i) * bytes, state.last.in_x,
                              y + (to + i * state.first.in_y + j) * bytes, state.first.in_y,
                              std::min(tile, rows - i), std::min(tile, columns - j));
      }
    }
  });
}

runtime::PreparedKernel choose(const OpView& op) {
  auto state = std::make_shared<const State>(op);
  const bool runs = state->has_runs();
  switch (size_of(op.result(0).type)) {
    case 1:
      return {runs ? copy_runs<1> : transpose<1>, state};
    case 4:
      return {runs ? copy_runs<4> : transpose<4>, state};
    default:
      return {runs ? copy_runs<8> : transpose<8>, state};
  }
}

}  // namespace

std::vector<runtime::Kernel> permute_kernels() { return {{.name = "plain", .prepare = choose}}; }

}  // namespace arenite::codelets
