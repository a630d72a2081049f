#include "codelets/softmax_cross_entropy/exponentials.hpp"
#include "codelets/softmax_cross_entropy/softmax_cross_entropy.hpp"
#include "codelets/words.hpp"

#include <algorithm>
#include <cmath>

namespace arenite::codelets {
namespace {

/// True when no class before `label` is as large.
bool is_first(const float* logits, std::int64_t label, float largest) noexcept {
  int equal = 0;
  for (std::int64_t from = 0; from < label; from += chunk_lanes) {
    const Chunk chunk = load(logits + from, label - from, std::numeric_limits<float>::quiet_NaN());
#pragma omp simd reduction(| : equal)
    for (int i = 0; i < chunk_lanes; ++i) equal |= chunk.lane[i] == largest ? 1 : 0;
  }
  return equal == 0;
}

/// share · (softmax − one at `label`) of a row into `gradient`, which may be the row itself;
/// returns the sum of exp(row − largest).
float write_gradient(const float* row, std::int64_t count, std::int64_t label, float largest,
                     float share, float* gradient) noexcept {
  const float sum = exponentials(row, count, largest, gradient), scale = share / sum;
#pragma omp simd
  for (std::int64_t c = 0; c < count; ++c) gradient[c] *= scale;
  gradient[label] -= share;
  return sum;
}

/// The same for no more classes than a chunk has lanes: what is between load and store stays in
/// registers.
float write_few(const float* row, std::int64_t count, std::int64_t label, float largest,
                float share, float* gradient) noexcept {
  Chunk chunk = load(row, count, -std::numeric_limits<float>::infinity());
#pragma omp simd
  for (int i = 0; i < chunk_lanes; ++i) chunk.lane[i] = exponential(chunk.lane[i] - largest);
  const float sum = total(chunk), scale = share / sum;
  const int at = static_cast<int>(label), end = static_cast<int>(count);
#pragma omp simd
  for (int i = 0; i < chunk_lanes; ++i) {
    const float value = chunk.lane[i] * scale - (i == at ? share : 0.0f);
    if (i < end) gradient[i] = value;
  }
  return sum;
}

void run_loss(const KernelCall& call, const LossSizes& state) {
  const std::int64_t classes = state.classes;
  const auto* labels = call.in<std::int32_t>(1);
  const float* weights = state.weighted ? call.in<float>(2) : nullptr;
  const auto share = static_cast<float>(1 / state.divisor);
  double losses = 0;
  std::int64_t correct = 0;
  for (std::int64_t r = 0; r < state.rows; ++r) {
    const float* logits = call.in<float>(0) + r * classes;
    float* gradient = call.out<float>(2) + r * classes;
    const std::int64_t label = labels[r];
    const float weight = weights == nullptr ? 1.0f : weights[r];
    if (weight == 0) {
      std::fill_n(gradient, classes, 0.0f);
      continue;
    }
    if (label < 0 || label >= classes) {
      call.status->report(call.op, label_fault(r));
      std::fill_n(gradient, classes, 0.0f);
      continue;
    }
    // All reads of the logits come before the row's gradient, which may lie in their place.
    const float largest = largest_of(logits, classes);
    const float at_label = logits[label];
    const bool hit = at_label == largest && is_first(logits, label, largest);
    const float sum = (classes <= chunk_lanes ? write_few : write_gradient)(
        logits, classes, label, largest, weight * share, gradient);
    losses += static_cast<double>(weight) *
              (std::log(static_cast<double>(sum)) +
               (static_cast<double>(largest) - static_cast<double>(at_label)));
    // A NaN in the row reaches the sum.
    correct += hit && sum == sum ? 1 : 0;
  }
  *call.out<float>(0) = static_cast<float>(losses / state.divisor);
  call.out<double>(1)[0] = losses;
  call.out<double>(1)[1] = static_cast<double>(correct);
}

}  // namespace

std::vector<Kernel> softmax_cross_entropy_kernels() {
  return {{.name = "plain", .prepare = prepare<made_of<LossSizes>, run_loss>}};
}

}  // namespace arenite::codelets
