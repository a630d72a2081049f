#include "codelets/sliced_softmax/sliced_softmax.hpp"
#include "codelets/softmax_cross_entropy/exponentials.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets {
namespace {

/// `value`: which operand prefix_value is.
std::int64_t prefix_of(const KernelCall& call, const PrefixedRows& state, std::size_t value) {
  if (state.prefix >= 0) return state.prefix;
  const std::int64_t prefix = *call.in<std::int64_t>(value);
  if (prefix >= 0 && prefix <= state.axis.length) return prefix;
  call.status->report(call.op, static_cast<std::uint32_t>(PrefixFault::range));
  return 0;
}

/// Elements [begin, end), which may be in their place already.
void copy(const float* from, float* to, std::int64_t begin, std::int64_t end) noexcept {
  if (from != to) std::copy(from + begin, from + end, to + begin);
}

void run_softmax(const KernelCall& call, const PrefixedRows& state) {
  const LastAxis axis = state.axis;
  const std::int64_t prefix = prefix_of(call, state, 1);
  for (std::int64_t r = 0; r < axis.rows; ++r) {
    const float* x = call.in<float>(0) + r * axis.length;
    float* y = call.out<float>(0) + r * axis.length;
    copy(x, y, prefix, axis.length);
    if (prefix == 0) continue;
    const float scale = 1 / exponentials(x, prefix, largest_of(x, prefix), y);
#pragma omp simd
    for (std::int64_t i = 0; i < prefix; ++i) y[i] *= scale;
  }
}

void run_grad(const KernelCall& call, const PrefixedRows& state) {
  const LastAxis axis = state.axis;
  const std::int64_t prefix = prefix_of(call, state, 2);
  for (std::int64_t r = 0; r < axis.rows; ++r) {
    const float* gradient = call.in<float>(0) + r * axis.length;
    const float* y = call.in<float>(1) + r * axis.length;
    float* dx = call.out<float>(0) + r * axis.length;
    const auto mean = static_cast<float>(sum_along(prefix, [=](std::int64_t i) {
      return static_cast<double>(gradient[i]) * static_cast<double>(y[i]);
    }));
#pragma omp simd
    for (std::int64_t i = 0; i < prefix; ++i) dx[i] = y[i] * (gradient[i] - mean);
    copy(gradient, dx, prefix, axis.length);
  }
}

}  // namespace

std::vector<Kernel> sliced_softmax_kernels() {
  return {{.name = "plain", .prepare = prepare<PrefixedRows::sliced, run_softmax>}};
}

std::vector<Kernel> sliced_softmax_grad_kernels() {
  return {{.name = "plain", .prepare = prepare<PrefixedRows::sliced, run_grad>}};
}

}  // namespace arenite::codelets
