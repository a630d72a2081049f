#include "codelets/image.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets {
namespace {

/// Small channel counts are widened: `group` pixels side by side make a strip of about this many
/// floats.
constexpr std::int64_t strip_target = 64;
/// Strips summed in float before they go to the double totals.
constexpr std::int64_t strips_a_block = 32;

/// Pixels lie side by side in the whole value, or, within a halo, in each row of each image.
struct State {
  std::optional<Image> image;  ///< with a halo
  std::int64_t channels = 0;
  std::int64_t runs = 1, length = 0;  ///< of floats that lie side by side
  std::int64_t group = 1;             ///< pixels in a strip

  explicit State(const OpView& op)
      : channels(op.operand(0).shape.at(-1)),
        length(op.operand(0).shape.elements()),
        group(std::max<std::int64_t>(1, strip_target / std::max<std::int64_t>(1, channels))) {
    if (op.operand(0).layout.halo == 0) return;
    image.emplace(op.operand(0));
    runs = image->n * image->h;
    length = image->w * image->c;
  }

  /// Elements from the value's first byte to run r.
  std::int64_t at(std::int64_t r) const noexcept {
    return image ? image->at(r / image->h, r % image->h, 0) : 0;
  }
};

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
void run_bias_grad(const KernelCall& call, const State& state) {
  const std::int64_t length = state.length, channels = state.channels;
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
  for (std::int64_t r = 0; r < state.runs && channels > 0; ++r) {
    const float* x = call.in<float>(0) + state.at(r);
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

std::vector<Kernel> bias_grad_kernels() {
  return {{.name = "plain",
           .workspace = bias_grad_workspace,
           .prepare = prepare<made_of<State>, run_bias_grad>,
           .wanted_halo = skipped_halo<0>}};
}

}  // namespace arenite::codelets
