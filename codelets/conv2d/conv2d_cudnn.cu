#include "codelets/conv2d/conv2d.hpp"
#include "codelets/cuda/cudnn.hpp"

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
  if (!s.g.biased) return;
  const std::int64_t outputs = s.g.y.c;
  const float* bias = call.in<float>(2);
  float* y = call.out<float>(0);
  cuda::for_each(call, s.convolution.sizes().result(),
                 [=] ARENITE_THREAD(std::int64_t i) { y[i] += bias[i % outputs]; });
}

}  // namespace

void register_conv2d_cudnn(runtime::KernelTable& kernels) {
  cuda::add_convolution<Forward, run_forward>(kernels, "conv2d");
  cuda::add_convolution<GradInput, cuda::run_state<GradInput>>(kernels, "conv2d_grad_input");
  cuda::add_convolution<GradWeight, cuda::run_state<GradWeight>>(kernels, "conv2d_grad_weight");
}

}  // namespace arenite::codelets
