#include "codelets/cuda/blocks.hpp"
#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/status.hpp"
#include "codelets/softmax_cross_entropy/softmax_cross_entropy.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

struct State {
  std::int64_t rows = 0, classes = 0;
  double divisor = 1;
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

/// What the rows' losses and hits add up to.
struct Totals {
  double loss = 0, hits = 0;
};

/// A batch's rows, as one block: a thread has every `threads`-th row, and each group of `group`
/// threads' totals are added before all groups' are, in order.
struct Loss {
  static constexpr int threads = 1024, group = 32;
  struct Shared {
    double loss[threads], hits[threads];
  };

  State s;
  const float* logits;
  const std::int32_t* labels;
  float *loss, *gradient;
  double* statistics;
  runtime::StatusWord* status;
  std::uint32_t op;

  ARENITE_GPU void operator()(cuda::Block<threads> block, Shared& shared) const {
    block.each([&](int t) {
      Totals mine;
      for (std::int64_t r = t; r < s.rows; r += threads) add_row(r, mine);
      shared.loss[t] = mine.loss;
      shared.hits[t] = mine.hits;
    });
    for (int step = 1; step < threads; step *= group) {
      block.each([&](int t) {
        if (t * step * group >= threads) return;
        const int first = t * step * group;
        for (int i = 1; i < group; ++i) {
          shared.loss[first] += shared.loss[first + i * step];
          shared.hits[first] += shared.hits[first + i * step];
        }
      });
    }
    block.each([&](int t) {
      if (t != 0) return;
      statistics[0] = shared.loss[0];
      statistics[1] = shared.hits[0];
      *loss = static_cast<float>(shared.loss[0] / s.divisor);
    });
  }

 private:
  ARENITE_GPU void add_row(std::int64_t r, Totals& totals) const {
    const float* row = logits + r * s.classes;
    float* to = gradient + r * s.classes;  // which may be the row itself
    const std::int64_t label = labels[r];
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
    totals.loss +=
        std::log(sum) + (static_cast<double>(largest.value) - static_cast<double>(at_label));
    totals.hits += largest.at == label && sum == sum ? 1 : 0;
  }
};

void run_loss(const runtime::KernelCall& call) {
  cuda::for_each_block(call, 1,
                       Loss{.s = *static_cast<const State*>(call.state),
                            .logits = call.in<float>(0),
                            .labels = call.in<std::int32_t>(1),
                            .loss = call.out<float>(0),
                            .gradient = call.out<float>(2),
                            .statistics = call.out<double>(1),
                            .status = call.status,
                            .op = call.op});
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
  kernels.add("softmax_cross_entropy", cuda::own(prepare<state_of, run_loss>));
  kernels.add("scale_by", cuda::elementwise(run_scale_by<float>, run_scale_by<double>));
}

}  // namespace arenite::codelets
