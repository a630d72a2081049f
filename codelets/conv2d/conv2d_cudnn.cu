#include "codelets/conv2d/conv2d.hpp"
#include "codelets/cuda/cudnn.hpp"
#include "codelets/cuda/rectify.hpp"

namespace arenite::codelets {
namespace {

using conv2d::Geometry;
using cuda::Pass;
using runtime::Compute;
using runtime::KernelCall;

template <auto geometry, Pass pass>
struct OnePass {
  Geometry g;
  cuda::Convolution convolution;

  OnePass(const graph::OpView& op, Compute compute, int place)
      : g(geometry(op)),
        convolution(cuda::ConvolutionSizes(g.x, g.window, g.y.c, pass, compute, place)) {}

  bool usable() const noexcept { return convolution.usable(); }
  void expect_usable() const { convolution.expect_usable(); }
  std::int64_t workspace() const noexcept { return convolution.workspace(); }

  void run(const KernelCall& call) const {
    convolution.run(call, call.workspace, call.in<float>(0), call.in<float>(1), call.out<float>(0));
  }
};

using Forward = OnePass<Geometry::forward, Pass::forward>;
using GradInput = OnePass<Geometry::grad_input, Pass::input_gradient>;
using GradWeight = OnePass<Geometry::grad_weight, Pass::weight_gradient>;

void run_forward(const KernelCall& call) {
  const auto& s = *static_cast<const Forward*>(call.state);
  s.run(call);
  const bool relu = s.g.relu;
  if (!s.g.biased && !relu) return;
  const std::int64_t outputs = s.g.y.c;
  const float* bias = s.g.biased ? call.in<float>(2) : nullptr;
  float* y = call.out<float>(0);
  cuda::for_each(call, s.convolution.sizes().result(), [=] ARENITE_THREAD(std::int64_t i) {
    const float sum = y[i] + (bias != nullptr ? bias[i % outputs] : 0);
    y[i] = relu && sum <= 0 ? 0 : sum;
  });
}

void run_grad_input(const KernelCall& call) {
  const auto& s = *static_cast<const GradInput*>(call.state);
  s.run(call);
  if (s.g.output)
    cuda::rectify_gradient(call, s.convolution.sizes().image(), call.in<float>(2),
                           call.out<float>(0));
}

}  // namespace

void register_conv2d_cudnn(runtime::KernelTable& kernels) {
  for (const char* op : {"conv2d", "conv2d_relu"})
    cuda::add_convolution<Forward, run_forward>(kernels, op);
  for (const char* op : {"conv2d_grad_input", "conv2d_grad_input_relu"})
    cuda::add_convolution<GradInput, run_grad_input>(kernels, op);
  cuda::add_convolution<GradWeight, cuda::run_state<GradWeight>>(kernels, "conv2d_grad_weight");
}

}  // namespace arenite::codelets
