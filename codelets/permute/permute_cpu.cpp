#include "codelets/strides.hpp"
#include "codelets/words.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace arenite::codelets {
namespace {

/// Runs of x that stay whole, or a matrix that is transposed, at every index of the other axes.
/// Steps are those in x, and in y.
struct State {
  Nest<2> others;
  Axis<2> last;   ///< of y; a run if it is x's last one too
  Axis<2> first;  ///< otherwise: x's last one

  explicit State(const OpView& op) {
    const Strides x(op.operand(0)), y(op.result(0));
    const std::vector<std::int64_t>& dims = op.attributes().integers("dims");
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const auto from = static_cast<std::size_t>(dims[i]);
      others.add({op.result(0).shape[static_cast<int>(i)], {x.axis[from], y.axis[i]}});
    }
    // An empty axis stays among the others, which are walked at no index then.
    last = others.take_innermost([](const auto& axis) { return axis.size > 0; });
    if (!has_runs()) first = others.take([](const auto& axis) { return axis.step[0] == 1; });
  }

  bool has_runs() const noexcept { return last.size == 1 || last.step[0] == 1; }
};

template <std::int64_t bytes>
void copy_runs(const KernelCall& call, const State& state) {
  const auto* x = call.in<std::byte>(0);
  auto* y = call.out<std::byte>(0);
  const auto length = static_cast<std::size_t>(state.last.size * bytes);
  state.others.for_each(
      {0, 0}, [&](const auto& at) { std::memcpy(y + at[1] * bytes, x + at[0] * bytes, length); });
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
void transpose(const KernelCall& call, const State& state) {
  const auto* x = call.in<std::byte>(0);
  auto* y = call.out<std::byte>(0);
  const std::int64_t rows = state.first.size, columns = state.last.size;
  const std::int64_t row_x = state.last.step[0], row_y = state.first.step[1];
  state.others.for_each({0, 0}, [&](const auto& at) {
    const auto [from, to] = at;
    for (std::int64_t i = 0; i < rows; i += tile) {
      for (std::int64_t j = 0; j < columns; j += tile) {
        transpose_tile<bytes>(x + (from + j * row_x + i) * bytes, row_x,
                              y + (to + i * row_y + j) * bytes, row_y, std::min(tile, rows - i),
                              std::min(tile, columns - j));
      }
    }
  });
}

template <std::int64_t bytes>
PreparedKernel of_bytes(const State& state) {
  return state.has_runs() ? prepared<copy_runs<bytes>>(state) : prepared<transpose<bytes>>(state);
}

PreparedKernel choose(const OpView& op) {
  switch (size_of(op.result(0).type)) {
    case 1:
      return of_bytes<1>(State(op));
    case 4:
      return of_bytes<4>(State(op));
    default:
      return of_bytes<8>(State(op));
  }
}

}  // namespace

std::vector<Kernel> permute_kernels() { return {{.name = "plain", .prepare = choose}}; }

}  // namespace arenite::codelets
