#include "codelets/cuda/blocks.hpp"
#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/status.hpp"
#include "codelets/cuda/sums.hpp"
#include "codelets/softmax_cross_entropy/softmax_cross_entropy.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

/// So many classes a thread keeps in registers.
constexpr int few_classes = 16;

/// The largest of a row, the first of equals; a NaN where there is one.
struct Largest {
  float value;
  std::int32_t at;  ///< negative where there was nothing to look at

  ARENITE_GPU void look_at(float another, std::int32_t c) {
    const bool first = at < 0 || another != another;
    if (first || another > value || (another == value && c < at)) *this = {another, c};
  }
};

/// What is wanted of all rows, and where it goes.
struct Loss {
  LossSizes s;
  const float* logits;
  const std::int32_t* labels;
  const float* weights;    ///< null: all are 1
  float *loss, *gradient;  ///< the gradient may lie where the logits do
  double* statistics;      ///< the rows' losses, and their hits
  runtime::StatusWord* status;
  std::uint32_t op;

  Loss(const KernelCall& call, const LossSizes& sizes)
      : s(sizes),
        logits(call.in<float>(0)),
        labels(call.in<std::int32_t>(1)),
        weights(sizes.weighted ? call.in<float>(2) : nullptr),
        loss(call.out<float>(0)),
        gradient(call.out<float>(2)),
        statistics(call.out<double>(1)),
        status(call.status),
        op(call.op) {}

  ARENITE_GPU bool has_class(std::int64_t label) const {
    return static_cast<std::uint64_t>(label) < static_cast<std::uint64_t>(s.classes);
  }
  ARENITE_GPU void report(std::int64_t row) const {
    cuda::report(status, op, static_cast<std::uint32_t>(row) + 1);  // label_fault of it
  }
  ARENITE_GPU float weight(std::int64_t row) const { return weights == nullptr ? 1 : weights[row]; }
  /// A row's loss is log Σ exp(x) − x[label], hit where the largest is the label's.
  ARENITE_GPU double loss_of(double sum, const Largest& largest, float at_label) const {
    return std::log(sum) + (static_cast<double>(largest.value) - static_cast<double>(at_label));
  }
  ARENITE_GPU double hits_of(double sum, const Largest& largest, std::int64_t label) const {
    return largest.at == label && sum == sum ? 1 : 0;
  }
  ARENITE_GPU float share(float weight) const { return weight * static_cast<float>(1 / s.divisor); }
  ARENITE_GPU static float scale(float share, double sum) {
    return static_cast<float>(static_cast<double>(share) / sum);
  }
  /// i: 0, the losses, or 1, the hits.
  ARENITE_GPU void store(std::int64_t i, double total) const {
    statistics[i] = total;
    if (i == 0) *loss = static_cast<float>(total / s.divisor);
  }
};

/// Few classes: a batch's rows as one block, of which a thread has every `threads`-th.
template <int threads_>
struct RowsOfThreads {
  static constexpr int threads = threads_, group = 32;
  struct Shared {
    double of[2][threads];  ///< losses, hits
  };

  Loss all;

  ARENITE_GPU void operator()(cuda::Block<threads> block, Shared& shared) const {
    block.each([&](int t) {
      double loss = 0, hits = 0;
      for (std::int64_t r = t; r < all.s.rows; r += threads) add_row(r, loss, hits);
      shared.of[0][t] = loss;
      shared.of[1][t] = hits;
    });
    block.each([&](int t) {
      if (t >= 2 * group) return;
      double* const mine = shared.of[t / group] + t % group;
      *mine = cuda::sum_of<threads / group>(mine, group);
    });
    block.each([&](int t) {
      if (t < 2) all.store(t, cuda::sum_of<group>(shared.of[t], 1));
    });
  }

 private:
  ARENITE_GPU void add_row(std::int64_t r, double& loss, double& hits) const {
    const auto classes = static_cast<std::int32_t>(all.s.classes);
    const float* from = all.logits + r * classes;
    float* to = all.gradient + r * classes;
    const std::int64_t label = all.labels[r];
    const float weight = all.weight(r);
    const bool known = weight != 0 && all.has_class(label);
    if (!known && weight != 0) all.report(r);
    float row[few_classes], at_label = 0;
    each_class(classes, [&](int c) { row[c] = from[c]; });
    Largest largest{0, -1};
    each_class(classes, [&](int c) {
      largest.look_at(row[c], c);
      if (c == label) at_label = row[c];
    });
    double sum = 0;
    each_class(classes, [&](int c) {
      row[c] = std::exp(row[c] - largest.value);
      sum += static_cast<double>(row[c]);
    });
    const float share = all.share(weight), scale = Loss::scale(share, sum);
    each_class(classes,
               [&](int c) { to[c] = known ? row[c] * scale - (c == label ? share : 0) : 0; });
    if (!known) return;
    loss += static_cast<double>(weight) * all.loss_of(sum, largest, at_label);
    hits += all.hits_of(sum, largest, label);
  }

  template <class F>
  static ARENITE_GPU void each_class(std::int32_t classes, F f) {
    ARENITE_UNROLL_ALL
    for (int c = 0; c < few_classes; ++c) {
      if (c < classes) f(c);
    }
  }
};

/// More classes: a block for each row, whose loss and hit it leaves in `parts`, [rows, 2].
struct RowsOfBlocks {
  static constexpr int threads = 128, group = 8;
  struct Shared {
    Largest largest[threads];
    double sum[threads];
  };

  Loss all;
  double* parts;

  ARENITE_GPU void operator()(cuda::Block<threads> block, Shared& shared) const {
    const std::int64_t r = block.index, classes = all.s.classes, label = all.labels[r];
    const float* from = all.logits + r * classes;
    float* to = all.gradient + r * classes;
    double* const part = parts + 2 * r;
    const float weight = all.weight(r);
    if (weight == 0 || !all.has_class(label)) {
      block.each([&](int t) {
        if (t == 0 && weight != 0) all.report(r);
        if (t < 2) part[t] = 0;
        for (std::int64_t c = t; c < classes; c += threads) to[c] = 0;
      });
      return;
    }
    cuda::PerThread<float, threads> at_label;
    block.each([&](int t) {
      at_label[t] = from[label];
      Largest mine{0, -1};
      for (std::int64_t c = t; c < classes; c += threads)
        mine.look_at(from[c], static_cast<std::int32_t>(c));
      shared.largest[t] = mine;
    });
    block.each([&](int t) {
      if (t < group) look_at_all(shared.largest, t, group, threads);
    });
    block.each([&](int t) {
      if (t == 0) look_at_all(shared.largest, 0, 1, group);
    });
    block.each([&](int t) {
      double sum = 0;
      for (std::int64_t c = t; c < classes; c += threads) {
        to[c] = std::exp(from[c] - shared.largest[0].value);
        sum += static_cast<double>(to[c]);
      }
      shared.sum[t] = sum;
    });
    block.each([&](int t) {
      if (t < group) shared.sum[t] = cuda::sum_of<threads / group>(shared.sum + t, group);
    });
    block.each([&](int t) {
      if (t != 0) return;
      const double sum = shared.sum[0] = cuda::sum_of<group>(shared.sum, 1);
      part[0] = static_cast<double>(weight) * all.loss_of(sum, shared.largest[0], at_label[t]);
      part[1] = all.hits_of(sum, shared.largest[0], label);
    });
    block.each([&](int t) {
      const float share = all.share(weight), scale = Loss::scale(share, shared.sum[0]);
      for (std::int64_t c = t; c < classes; c += threads)
        to[c] = to[c] * scale - (c == label ? share : 0);
    });
  }

 private:
  /// The largest of every `step`-th from `first` on, in its place.
  static ARENITE_GPU void look_at_all(Largest* of, int first, int step, int end) {
    Largest mine = of[first];
    for (int i = first + step; i < end; i += step) {
      if (of[i].at >= 0) mine.look_at(of[i].value, of[i].at);
    }
    of[first] = mine;
  }
};

std::int64_t loss_workspace(const OpView& op) {
  const LossSizes s(op);
  return s.classes <= few_classes ? 0 : s.rows * 2 * static_cast<std::int64_t>(sizeof(double));
}

void run_loss(const KernelCall& call, const LossSizes& sizes) {
  const Loss all(call, sizes);
  constexpr int some_rows = 128, many_rows = 1024;
  if (all.s.classes > few_classes) {
    auto* const parts = static_cast<double*>(call.workspace);
    cuda::for_each_block(call, all.s.rows, RowsOfBlocks{all, parts});
    cuda::add_parts<double>(
        call, 2, all.s.rows, parts,
        [=] ARENITE_THREAD(std::int64_t i, double total) { all.store(i, total); });
  } else if (all.s.rows > some_rows) {
    cuda::for_each_block(call, 1, RowsOfThreads<many_rows>{all});
  } else {
    cuda::for_each_block(call, 1, RowsOfThreads<some_rows>{all});
  }
}

}  // namespace

void ARENITE_CUDA_KERNELS(softmax_cross_entropy)(runtime::KernelTable& kernels) {
  kernels.add("softmax_cross_entropy",
              cuda::own(prepare<made_of<LossSizes>, run_loss>, loss_workspace));
}

}  // namespace arenite::codelets
