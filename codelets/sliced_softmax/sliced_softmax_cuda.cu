#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/status.hpp"
#include "codelets/last_axis.hpp"
#include "codelets/sliced_softmax/sliced_softmax.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

struct State {
  LastAxis axis;
  std::int64_t prefix = -1;  ///< -1: an operand says
};

State whole_axis(const graph::OpView& op) {
  const LastAxis axis(op.operand(0).shape);
  return {axis, axis.length};
}

State sliced_axis(const graph::OpView& op) {
  return {LastAxis(op.operand(0).shape), op.integer("prefix")};
}

/// Where the length of the prefix stands: in the attribute, or in an operand.
struct Prefix {
  std::int64_t attribute = 0, length = 0;
  const std::int64_t* operand = nullptr;

  ARENITE_GPU bool valid() const {
    return operand == nullptr || (*operand >= 0 && *operand <= length);
  }
  ARENITE_GPU std::int64_t get() const {
    return operand == nullptr ? attribute : valid() ? *operand : 0;
  }
};

Prefix prefix_of(const runtime::KernelCall& call, const State& s, std::size_t value) {
  const Prefix prefix{s.prefix, s.axis.length,
                      s.prefix < 0 ? call.in<std::int64_t>(value) : nullptr};
  runtime::StatusWord* status = call.status;
  const std::uint32_t op = call.op;
  if (prefix.operand != nullptr) {
    cuda::for_each(call, 1, [=] ARENITE_THREAD(std::int64_t) {
      if (!prefix.valid()) cuda::report(status, op, static_cast<std::uint32_t>(PrefixFault::range));
    });
  }
  return prefix;
}

void run_softmax(const runtime::KernelCall& call) {
  const State s = *static_cast<const State*>(call.state);
  const Prefix given = prefix_of(call, s, 1);
  const std::int64_t length = s.axis.length;
  const float* from = call.in<float>(0);
  float* to = call.out<float>(0);
  cuda::for_each(call, s.axis.rows, [=] ARENITE_THREAD(std::int64_t r) {
    const std::int64_t prefix = given.get();
    const float* x = from + r * length;
    float* y = to + r * length;  // which may be x
    float largest = prefix > 0 ? x[0] : 0;
    double sum = 0;
    for (std::int64_t i = 1; i < prefix; ++i) {
      if (x[i] > largest || x[i] != x[i]) largest = x[i];
    }
    for (std::int64_t i = 0; i < prefix; ++i) {
      y[i] = std::exp(x[i] - largest);
      sum += static_cast<double>(y[i]);
    }
    const auto scale = static_cast<float>(1 / sum);
    for (std::int64_t i = 0; i < prefix; ++i) y[i] *= scale;
    for (std::int64_t i = prefix; i < length; ++i) y[i] = x[i];
  });
}

void run_grad(const runtime::KernelCall& call) {
  const State s = *static_cast<const State*>(call.state);
  const Prefix given = prefix_of(call, s, 2);
  const std::int64_t length = s.axis.length;
  const float *gradients = call.in<float>(0), *outputs = call.in<float>(1);
  float* to = call.out<float>(0);
  cuda::for_each(call, s.axis.rows, [=] ARENITE_THREAD(std::int64_t r) {
    const std::int64_t prefix = given.get();
    const float *gradient = gradients + r * length, *y = outputs + r * length;
    float* dx = to + r * length;  // which may be either
    double sum = 0;
    for (std::int64_t i = 0; i < prefix; ++i)
      sum += static_cast<double>(gradient[i]) * static_cast<double>(y[i]);
    const auto mean = static_cast<float>(sum);
    for (std::int64_t i = 0; i < prefix; ++i) dx[i] = y[i] * (gradient[i] - mean);
    for (std::int64_t i = prefix; i < length; ++i) dx[i] = gradient[i];
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(sliced_softmax)(runtime::KernelTable& kernels) {
  kernels.add("softmax", cuda::own(prepare<whole_axis, run_softmax>));
  kernels.add("sliced_softmax", cuda::own(prepare<sliced_axis, run_softmax>));
  kernels.add("sliced_softmax_grad", cuda::own(prepare<sliced_axis, run_grad>));
}

}  // namespace arenite::codelets
