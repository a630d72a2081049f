// Dense layers that neither tiles nor cuBLAS take: a thread an element, whatever the shape.
#include "codelets/cuda/sums.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/sgd/step_one.hpp"

namespace arenite::codelets {
namespace {

void run_forward(const KernelCall& call, const DenseForward& s) {
  const float *x = call.in<float>(0), *weight = call.in<float>(1),
              *bias = s.biased ? call.in<float>(2) : nullptr;
  float* y = call.out<float>(0);
  cuda::for_each(call, s.n * s.o, [=] ARENITE_THREAD(std::int64_t at) {
    const std::int64_t n = at / s.o, o = at % s.o;
    float sum = bias != nullptr ? bias[o] : 0;
    for (std::int64_t i = 0; i < s.i; ++i) sum += x[n * s.i + i] * weight[i * s.o + o];
    y[at] = s.relu && sum <= 0 ? 0 : sum;
  });
}

void run_grad_input(const KernelCall& call, const DenseGradInput& s) {
  const float *gradient = call.in<float>(0), *weight = call.in<float>(1),
              *output = s.masked ? call.in<float>(2) : nullptr;
  float* dx = call.out<float>(0);
  cuda::for_each(call, s.n * s.i, [=] ARENITE_THREAD(std::int64_t at) {
    const std::int64_t n = at / s.i, i = at % s.i;
    float sum = 0;
    for (std::int64_t o = 0; o < s.o; ++o) sum += gradient[n * s.o + o] * weight[i * s.o + o];
    dx[at] = output != nullptr && output[at] <= 0 ? 0 : sum;
  });
}

/// Pairs that one launch is given: their addresses are among its arguments.
constexpr std::size_t most_pairs = 128;

struct Pairs {
  const float *x[most_pairs], *gradient[most_pairs];
  std::int64_t samples[most_pairs];
  std::int64_t inputs, outputs, begin;

  Pairs(const KernelCall& call, const DensePairs& pairs)
      : inputs(pairs.inputs), outputs(pairs.outputs), begin(pairs.begin) {
    for (std::size_t p = 0; p < pairs.samples.size(); ++p) {
      x[p] = pairs.x(call, p);
      gradient[p] = pairs.gradient(call, p);
      samples[p] = pairs.samples[p];
    }
  }

  /// What sample t of all pairs adds to element i of the rows.
  ARENITE_GPU float term(std::int64_t i, std::int64_t t) const {
    int p = 0;
    for (; t >= samples[p]; ++p) t -= samples[p];
    return x[p][t * inputs + begin + i / outputs] * gradient[p][t * outputs + i % outputs];
  }
};

cuda::Chunks chunks_of(const DensePairs& pairs) {
  std::int64_t samples = 0;
  for (std::int64_t count : pairs.samples) samples += count;
  return {(pairs.end - pairs.begin) * pairs.outputs, samples};
}

void run_grad_weight(const KernelCall& call, const DensePairs& state) {
  const Pairs pairs(call, state);
  float* dweight = call.out<float>(0);
  cuda::sum_chunks(
      call, chunks_of(state),
      [=] ARENITE_THREAD(std::int64_t i, std::int64_t t) { return pairs.term(i, t); },
      [=] ARENITE_THREAD(std::int64_t i, double sum) { dweight[i] = static_cast<float>(sum); });
}

struct Update {
  DensePairs pairs;
  sgd::Rule rule;
  bool has_velocity;
};

Update update(const OpView& op) {
  return {DensePairs(op, DensePairs::of_update), sgd::Rule(op), op.has_operand(2)};
}

void run_update(const KernelCall& call, const Update& state) {
  const Pairs pairs(call, state.pairs);
  const sgd::Rule rule = state.rule;
  const sgd::States states(call, {.velocity = 2}, state.has_velocity);
  const float* rate = call.in<float>(1);
  cuda::sum_chunks(
      call, chunks_of(state.pairs),
      [=] ARENITE_THREAD(std::int64_t i, std::int64_t t) { return pairs.term(i, t); },
      [=] ARENITE_THREAD(std::int64_t i, double sum) {
        states.step(rule, *rate, static_cast<float>(sum), i);
      });
}

template <std::size_t first_pair>
std::int64_t workspace(const OpView& op) {
  return chunks_of(DensePairs(op, first_pair)).workspace();
}

template <std::size_t first_pair>
graph::Support supports(const OpView& op) {
  const DensePairs pairs(op, first_pair);
  if (pairs.tree) return "a sum of pairs in a tree";
  if (pairs.samples.size() > most_pairs) return "a sum over too many pairs";
  return cuda::disjoint(op);
}

}  // namespace

void ARENITE_CUDA_KERNELS(dense)(runtime::KernelTable& kernels) {
  for (const char* op : {"dense", "dense_relu"})
    kernels.add(op, cuda::own(prepare<made_of<DenseForward>, run_forward>));
  for (const char* op : {"dense_grad_input", "dense_grad_input_relu"})
    kernels.add(op, cuda::own(prepare<made_of<DenseGradInput>, run_grad_input>));
  kernels.add(
      "dense_grad_weight",
      cuda::own("own", supports<0>, prepare<made_of<DensePairs>, run_grad_weight>, workspace<0>));
  constexpr std::size_t of_update = DensePairs::of_update;
  kernels.add(
      "dense_grad_weight_sgd",
      cuda::own("own", supports<of_update>, prepare<update, run_update>, workspace<of_update>));
}

}  // namespace arenite::codelets
