// The fused operation by cuDNN: the convolution's outputs, or their gradient, stand in the
// workspace, and grids of our own pool them and spread gradients.
#include "codelets/conv2d_relu_max_pool2d/spread.hpp"
#include "codelets/cuda/cudnn.hpp"
#include "codelets/cuda/rectify.hpp"
#include "codelets/cuda/sums.hpp"

namespace arenite::codelets {
namespace {

using conv2d_relu_max_pool2d::Geometry;
using cuda::Direction;
using runtime::Compute;

template <auto geometry, Direction direction>
struct Fused {
  Geometry g;
  cuda::Convolution convolution;
  Pair size;  ///< of the convolution's output
  cuda::Scratch scratch;
  std::int64_t convolved, convolution_scratch;  ///< offsets

  Fused(const OpView& op, Compute compute, int place)
      : g(geometry(op)),
        convolution(cuda::ConvolutionSizes(g.x, g.window, g.y.c, direction, compute, place)),
        size{convolution.sizes().rows, convolution.sizes().columns} {
    convolved = scratch.add(convolution.sizes().result() * float_bytes);
    convolution_scratch = scratch.add(convolution.workspace());
  }

  bool usable() const noexcept { return convolution.usable(); }
  void expect_usable() const { convolution.expect_usable(); }
  std::int64_t workspace() const noexcept { return scratch.bytes(); }

  float* outputs(const KernelCall& call) const {
    return cuda::at<float>(call.workspace, convolved);
  }
  void run(const KernelCall& call, const float* first, const float* second, float* to) const {
    convolution.run(call, cuda::at<void>(call.workspace, convolution_scratch), first, second, to);
  }
};

using Forward = Fused<Geometry::forward, Direction::forward>;
using GradInput = Fused<Geometry::grad_input, Direction::input_gradient>;

void run_forward(const KernelCall& call, const Forward& s) {
  float* convolved = s.outputs(call);
  s.run(call, call.in<float>(0), call.in<float>(1), convolved);
  pool_convolved(call, s.g, s.size, convolved, s.g.biased ? call.in<float>(2) : nullptr,
                 call.out<float>(0), call.out<std::uint8_t>(1));
}

void run_grad_input(const KernelCall& call, const GradInput& s) {
  float* spread = s.outputs(call);
  spread_gradient(call, s.g, s.size, call.in<float>(0), call.in<std::uint8_t>(1), spread);
  s.run(call, spread, call.in<float>(2), call.out<float>(0));
  if (s.g.output)
    cuda::rectify_gradient(call, cuda::elements(s.g.x), call.in<float>(3), call.out<float>(0));
}

/// With the sums of the living gradients besides: the bias'.
struct GradWeight : Fused<Geometry::grad_weight, Direction::weight_gradient> {
  cuda::Chunks chunks;
  std::int64_t sums;

  GradWeight(const OpView& op, Compute compute, int place)
      : Fused(op, compute, place), chunks(g.y.c, g.y.n * g.y.h * g.y.w) {
    sums = scratch.add(chunks.workspace());
  }
};

void run_grad_weight(const KernelCall& call, const GradWeight& s) {
  const float* gradient = call.in<float>(1);
  const auto* code = call.in<std::uint8_t>(2);
  float *spread = s.outputs(call), *dbias = call.out<float>(1);
  spread_gradient(call, s.g, s.size, gradient, code, spread);
  s.run(call, call.in<float>(0), spread, call.out<float>(0));
  constexpr std::uint8_t dead = pool2d::dead;
  const std::int64_t outputs = s.g.y.c;
  KernelCall behind = call;
  behind.workspace = cuda::at<void>(call.workspace, s.sums);
  cuda::sum_chunks(
      behind, s.chunks,
      [=] ARENITE_THREAD(std::int64_t k, std::int64_t pixel) {
        const std::int64_t from = pixel * outputs + k;
        return (code[from] & dead) != 0 ? 0.0f : gradient[from];
      },
      [=] ARENITE_THREAD(std::int64_t k, double total) { dbias[k] = static_cast<float>(total); });
}

}  // namespace

void register_conv2d_relu_max_pool2d_cudnn(runtime::KernelTable& kernels) {
  cuda::add_convolution<Forward, run_forward>(kernels, "conv2d_relu_max_pool2d");
  for (const char* op :
       {"conv2d_relu_max_pool2d_grad_input", "conv2d_relu_max_pool2d_grad_input_relu"})
    cuda::add_convolution<GradInput, run_grad_input>(kernels, op);
  cuda::add_convolution<GradWeight, run_grad_weight>(kernels, "conv2d_relu_max_pool2d_grad_weight");
}

}  // namespace arenite::codelets
