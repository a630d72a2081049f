#include "codelets/cuda/status.hpp"
#include "codelets/cuda/sums.hpp"
#include "codelets/softmax_cross_entropy/softmax_cross_entropy.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

/// In the workspace lie each row's loss and hit, doubles, and behind them the chunks of their sums.
struct State {
  std::int64_t rows = 0, classes = 0;
  double divisor = 1;

  cuda::Chunks sums() const { return {2, rows}; }
  std::int64_t workspace() const {
    return 2 * rows * static_cast<std::int64_t>(sizeof(double)) + sums().workspace();
  }
};

State state_of(const graph::OpView& op) {
  const Shape& logits = op.operand(0).shape;
  const std::int64_t divisor = op.integer("divisor") > 0 ? op.integer("divisor") : logits[0];
  return {.rows = logits[0], .classes = logits[1], .divisor = static_cast<double>(divisor)};
}

/// The largest of a row, the first of equals; a NaN where there is one.
struct Largest {
  float value;
  std::int64_t at = 0;

  ARENITE_GPU Largest(const float* row, std::int64_t classes) : value(row[0]) {
    for (std::int64_t c = 1; c < classes; ++c) {
      if (!(row[c] > value) && row[c] == row[c]) continue;
      value = row[c];
      at = c;
    }
  }
};

void run_loss(const runtime::KernelCall& call) {
  const State s = *static_cast<const State*>(call.state);
  const float* logits = call.in<float>(0);
  const auto* labels = call.in<std::int32_t>(1);
  auto* loss = call.out<float>(0);
  auto* statistics = call.out<double>(1);
  float* gradient = call.out<float>(2);
  auto* of_rows = static_cast<double*>(call.workspace);
  runtime::StatusWord* status = call.status;
  const std::uint32_t op = call.op;
  cuda::for_each(call, s.rows, [=] ARENITE_THREAD(std::int64_t r) {
    const float* row = logits + r * s.classes;
    float* to = gradient + r * s.classes;  // which may be the row itself
    const std::int64_t label = labels[r];
    of_rows[r] = of_rows[s.rows + r] = 0;
    if (label < 0 || label >= s.classes) {
      cuda::report(status, op, static_cast<std::uint32_t>(LabelFault::range));
      for (std::int64_t c = 0; c < s.classes; ++c) to[c] = 0;
      return;
    }
    const Largest largest(row, s.classes);
    const float at_label = row[label];
    double sum = 0;
    for (std::int64_t c = 0; c < s.classes; ++c) {
      to[c] = std::exp(row[c] - largest.value);
      sum += static_cast<double>(to[c]);
    }
    const auto share = static_cast<float>(1 / s.divisor);
    const auto scale = static_cast<float>(static_cast<double>(share) / sum);
    for (std::int64_t c = 0; c < s.classes; ++c) to[c] = to[c] * scale - (c == label ? share : 0);
    of_rows[r] =
        std::log(sum) + (static_cast<double>(largest.value) - static_cast<double>(at_label));
    of_rows[s.rows + r] = largest.at == label && sum == sum ? 1 : 0;
  });
  runtime::KernelCall behind = call;
  behind.workspace = of_rows + 2 * s.rows;
  cuda::sum_chunks(
      behind, s.sums(),
      [=] ARENITE_THREAD(std::int64_t i, std::int64_t r) { return of_rows[i * s.rows + r]; },
      [=] ARENITE_THREAD(std::int64_t i, double total) {
        statistics[i] = total;
        if (i == 0) *loss = static_cast<float>(total / s.divisor);
      });
}

template <class T>
void run_scale_by(const runtime::KernelCall& call) {
  const T *x = call.in<T>(0), *factor = call.in<T>(1);
  T* y = call.out<T>(0);
  cuda::for_each(call, cuda::count_of(call),
                 [=] ARENITE_THREAD(std::int64_t i) { y[i] = x[i] * *factor; });
}

}  // namespace

void ARENITE_CUDA_KERNELS(softmax_cross_entropy)(runtime::KernelTable& kernels) {
  kernels.add("softmax_cross_entropy",
              cuda::own(prepare<state_of, run_loss>,
                        [](const graph::OpView& op) { return state_of(op).workspace(); }));
  kernels.add("scale_by", cuda::elementwise(run_scale_by<float>, run_scale_by<double>));
}

}  // namespace arenite::codelets
