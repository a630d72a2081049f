#include "codelets/rows.hpp"

namespace arenite::codelets {
namespace {

/// Small channel counts are widened: `group` pixels side by side make a strip of about this many
/// floats.
constexpr std::int64_t strip_target = 64;
/// Strips summed in float before they go to the double totals.
constexpr std::int64_t strips_a_block = 32;

struct State {
  Rows in, out;
  std::int64_t channels = 0, group = 1;  ///< pixels in a strip
};

State state_of(const graph::Value& in, const graph::Value& out) {
  const bool by_row = any_halo({&in, &out});
  const std::int64_t channels = in.shape.at(-1);
  return {.in = Rows(in, by_row),
          .out = Rows(out, by_row),
          .channels = channels,
          .group = std::max<std::int64_t>(1, strip_target / std::max<std::int64_t>(1, channels))};
}
State bias_state(const OpView& op) { return state_of(op.operand(0), op.result(0)); }
State grad_state(const OpView& op) { return state_of(op.operand(0), op.operand(0)); }

void run_bias(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t length = state.in.length(), channels = state.channels;
  if (channels == 0) return;
  const float* bias = call.in<float>(1);
  // The bias repeated over a strip, so that few channels still fill the vectors.
  float repeated[strip_target];
  std::int64_t strip = channels;
  if (state.group > 1) {
    strip = state.group * channels;
    for (std::int64_t i = 0; i < strip; ++i) repeated[i] = bias[i % channels];
    bias = repeated;
  }
  for (std::int64_t r = 0; r < state.in.count(); ++r) {
    const float* x = call.in<float>(0) + state.in.at(r);
    float* y = call.out<float>(0) + state.out.at(r);
    for (std::int64_t at = 0; at < length; at += strip) {
      const std::int64_t n = std::min(strip, length - at);
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) y[at + i] = x[at + i] + bias[i];
    }
  }
  state.out.zero_halo(call.out<float>(0));
}

/// partial[i] += the sum of strips i, i + strip, i + 2·strip, …
void add_strips(const float* x, std::int64_t strip, std::int64_t strips, float* partial) {
  std::int64_t s = 0;
  for (; s + 4 <= strips; s += 4, x += 4 * strip) {
    const float *a = x, *b = x + strip, *c = x + 2 * strip, *d = x + 3 * strip;
#pragma omp simd
    for (std::int64_t i = 0; i < strip; ++i) partial[i] += (a[i] + b[i]) + (c[i] + d[i]);
  }
  for (; s < strips; ++s, x += strip) {
#pragma omp simd
    for (std::int64_t i = 0; i < strip; ++i) partial[i] += x[i];
  }
}

/// Each channel's terms are summed in a fixed order: at most 32 strips in float, four at a time,
/// then the blocks' sums (and the pixels side by side in a strip) in double. The error therefore
/// does not grow with the number of pixels, and no schedule can change the bits.
void run_bias_grad(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t length = state.in.length(), channels = state.channels;
  const std::int64_t strip = state.group * channels;
  auto* total = static_cast<double*>(call.workspace);
  auto* partial = reinterpret_cast<float*>(total + channels);
  std::fill_n(total, channels, 0.0);
  const auto flush = [&](std::int64_t n) {
    for (std::int64_t from = 0; from < n; from += channels) {
#pragma omp simd
      for (std::int64_t c = 0; c < channels; ++c)
        total[c] += static_cast<double>(partial[from + c]);
    }
  };
  for (std::int64_t r = 0; r < state.in.count() && channels > 0; ++r) {
    const float* x = call.in<float>(0) + state.in.at(r);
    const std::int64_t strips = length / strip;
    for (std::int64_t s = 0; s < strips; s += strips_a_block) {
      std::fill_n(partial, strip, 0.0f);
      add_strips(x + s * strip, strip, std::min(strips_a_block, strips - s), partial);
      flush(strip);
    }
    // The pixels that fill no strip.
    const std::int64_t rest = length - strips * strip;
    std::copy_n(x + strips * strip, rest, partial);
    flush(rest);
  }
  float* result = call.out<float>(0);
  for (std::int64_t c = 0; c < channels; ++c) result[c] = static_cast<float>(total[c]);
}

std::int64_t bias_grad_workspace(const OpView& op) {
  const std::int64_t channels = op.operand(0).shape.at(-1);
  constexpr auto double_bytes = static_cast<std::int64_t>(sizeof(double));
  return channels * double_bytes + std::max(channels, strip_target) * float_bytes;
}

}  // namespace

std::vector<Kernel> bias_kernels() {
  return {plain_with_halos<prepare<bias_state, run_bias>, skipped_halo<0>>()};
}

std::vector<Kernel> bias_grad_kernels() {
  return {{.name = "plain",
           .workspace = bias_grad_workspace,
           .prepare = prepare<grad_state, run_bias_grad>,
           .wanted_halo = skipped_halo<0>}};
}

}  // namespace arenite::codelets
