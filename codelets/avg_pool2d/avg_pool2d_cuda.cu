#include "codelets/avg_pool2d/avg_pool2d.hpp"
#include "codelets/cuda/windows.hpp"

namespace arenite::codelets {
namespace {

using avg_pool2d::Geometry;

/// What the sum over the window of output (oy, ox) is divided by.
ARENITE_GPU float divisor(const Geometry& g, std::int64_t oy, std::int64_t ox) {
  if (g.count_padding) return static_cast<float>(g.window.kernel.h * g.window.kernel.w);
  return static_cast<float>(cuda::tap_count(g.window, g.x, oy, ox));
}

void run_forward(const KernelCall& call, const Geometry& g) {
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  cuda::for_each(call, cuda::elements(g.y), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.y, i);
    float sum = 0;
    cuda::each_tap(g.window, g.x, at.y, at.x,
                   [&](std::int64_t, std::int64_t row, std::int64_t column) {
                     sum += x[cuda::index_of(g.x, at.n, row, column, at.c)];
                   });
    y[i] = sum / divisor(g, at.y, at.x);
  });
}

void run_grad(const KernelCall& call, const Geometry& g) {
  const float* gradient = call.in<float>(0);
  float* dx = call.out<float>(0);
  cuda::for_each(call, cuda::elements(g.x), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.x, i);
    float sum = 0;
    cuda::each_window(
        g.window, g.y.h, g.y.w, at.y, at.x, [&](std::int64_t, std::int64_t oy, std::int64_t ox) {
          sum += gradient[cuda::index_of(g.y, at.n, oy, ox, at.c)] / divisor(g, oy, ox);
        });
    dx[i] = sum;
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(avg_pool2d)(runtime::KernelTable& kernels) {
  kernels.add("avg_pool2d", cuda::own(prepare<Geometry::forward, run_forward>));
  kernels.add("avg_pool2d_grad", cuda::own(prepare<Geometry::grad, run_grad>));
}

}  // namespace arenite::codelets
