#include "codelets/conv2d/conv2d.hpp"
#include "codelets/cuda/cudnn.hpp"
#include "codelets/cuda/rectify.hpp"

namespace arenite::codelets {
namespace {

using conv2d::Geometry;
using cuda::Direction;
using runtime::Compute;

template <auto geometry, Direction direction>
struct OneConvolution : cuda::Convolution {
  Geometry g;

  OneConvolution(const OpView& op, Compute compute, int place)
      : OneConvolution(geometry(op), compute, place) {}

  void run(const KernelCall& call) const {
    Convolution::run(call, call.workspace, call.in<float>(0), call.in<float>(1),
                     call.out<float>(0));
  }

 private:
  OneConvolution(const Geometry& of, Compute compute, int place)
      : Convolution(cuda::ConvolutionSizes(of.x, of.window, of.y.c, direction, compute, place)),
        g(of) {}
};

using Forward = OneConvolution<Geometry::forward, Direction::forward>;
using GradInput = OneConvolution<Geometry::grad_input, Direction::input_gradient>;
using GradWeight = OneConvolution<Geometry::grad_weight, Direction::weight_gradient>;

void run_forward(const KernelCall& call, const Forward& s) {
  s.run(call);
  const bool relu = s.g.relu;
  if (!s.g.biased && !relu) return;
  const std::int64_t outputs = s.g.y.c;
  const float* bias = s.g.biased ? call.in<float>(2) : nullptr;
  float* y = call.out<float>(0);
  cuda::for_each(call, s.sizes().result(), [=] ARENITE_THREAD(std::int64_t i) {
    const float sum = y[i] + (bias != nullptr ? bias[i % outputs] : 0);
    y[i] = relu && sum <= 0 ? 0 : sum;
  });
}

void run_grad_input(const KernelCall& call, const GradInput& s) {
  s.run(call);
  if (s.g.output)
    cuda::rectify_gradient(call, s.sizes().image(), call.in<float>(2), call.out<float>(0));
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
