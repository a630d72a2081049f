#include "codelets/last_axis.hpp"
#include "codelets/words.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

struct State {
  LastAxis axis;
  double eps = 0;
};

State state_of(const OpView& op) { return {LastAxis(op.operand(0).shape), op.real("eps")}; }

/// In double: squares of large floats do not fit a float.
double inverse_rms(const float* x, const State& state) noexcept {
  const double squares = sum_along(state.axis.length, [x](std::int64_t i) {
    return static_cast<double>(x[i]) * static_cast<double>(x[i]);
  });
  return 1 / std::sqrt(squares / static_cast<double>(state.axis.length) + state.eps);
}

void run_norm(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t length = state.axis.length;
  const float* weight = call.in<float>(1);
  for (std::int64_t r = 0; r < state.axis.rows; ++r) {
    const float* x = call.in<float>(0) + r * length;
    float* y = call.out<float>(0) + r * length;
    const auto scale = static_cast<float>(inverse_rms(x, state));
#pragma omp simd
    for (std::int64_t i = 0; i < length; ++i) y[i] = x[i] * scale * weight[i];
  }
}

/// With n = x · s: dx = s · (g · weight − n · mean(g · weight · n)).
void run_grad_input(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t length = state.axis.length;
  const float* weight = call.in<float>(2);
  for (std::int64_t r = 0; r < state.axis.rows; ++r) {
    const float* gradient = call.in<float>(0) + r * length;
    const float* x = call.in<float>(1) + r * length;
    float* dx = call.out<float>(0) + r * length;
    const double inverse = inverse_rms(x, state);
    const double sum = sum_along(length, [=](std::int64_t i) {
      return static_cast<double>(gradient[i]) * static_cast<double>(weight[i]) *
             static_cast<double>(x[i]);
    });
    const auto scale = static_cast<float>(inverse),
               mean = static_cast<float>(sum * inverse / static_cast<double>(length));
#pragma omp simd
    for (std::int64_t i = 0; i < length; ++i)
      dx[i] = scale * (gradient[i] * weight[i] - x[i] * scale * mean);
  }
}

/// Rows summed in float before they go to the double totals.
constexpr std::int64_t rows_a_block = 16;

/// Rows in their order: at most 16 in float, then the blocks' sums in double. The error therefore
/// does not grow with the number of rows, and no schedule can change the bits.
void run_grad_weight(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t rows = state.axis.rows, length = state.axis.length;
  auto* total = static_cast<double*>(call.workspace);
  auto* partial = reinterpret_cast<float*>(total + length);
  std::fill_n(total, length, 0.0);
  for (std::int64_t begin = 0; begin < rows; begin += rows_a_block) {
    std::fill_n(partial, length, 0.0f);
    for (std::int64_t r = begin; r < std::min(rows, begin + rows_a_block); ++r) {
      const float* gradient = call.in<float>(0) + r * length;
      const float* x = call.in<float>(1) + r * length;
      const auto scale = static_cast<float>(inverse_rms(x, state));
#pragma omp simd
      for (std::int64_t i = 0; i < length; ++i) partial[i] += gradient[i] * (x[i] * scale);
    }
#pragma omp simd
    for (std::int64_t i = 0; i < length; ++i) total[i] += static_cast<double>(partial[i]);
  }
  float* dweight = call.out<float>(0);
  for (std::int64_t i = 0; i < length; ++i) dweight[i] = static_cast<float>(total[i]);
}

std::int64_t grad_weight_workspace(const OpView& op) {
  return op.operand(0).shape.at(-1) * static_cast<std::int64_t>(sizeof(double) + sizeof(float));
}

}  // namespace

std::vector<Kernel> rms_norm_kernels() {
  return {{.name = "plain", .prepare = prepare<state_of, run_norm>}};
}

std::vector<Kernel> rms_norm_grad_input_kernels() {
  return {{.name = "plain", .prepare = prepare<state_of, run_grad_input>}};
}

std::vector<Kernel> rms_norm_grad_weight_kernels() {
  return {{.name = "plain",
           .workspace = grad_weight_workspace,
           .prepare = prepare<state_of, run_grad_weight>}};
}

}  // namespace arenite::codelets
