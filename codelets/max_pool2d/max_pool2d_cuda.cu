#include "codelets/cuda/windows.hpp"
#include "codelets/max_pool2d/max_pool2d.hpp"

namespace arenite::codelets {
namespace {

using max_pool2d::Geometry;

void run_forward(const KernelCall& call, const Geometry& g) {
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  auto* code = call.out<std::uint8_t>(1);
  cuda::for_each(call, cuda::elements(g.y), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.y, i);
    float best = 0;
    std::int64_t winner = -1;
    cuda::each_tap(g.window, g.x, at.y, at.x,
                   [&](std::int64_t tap, std::int64_t row, std::int64_t column) {
                     const float value = x[cuda::index_of(g.x, at.n, row, column, at.c)];
                     // A NaN wins over everything.
                     if (winner >= 0 && !(value > best) && value == value) return;
                     best = value;
                     winner = tap;
                   });
    y[i] = best;
    code[i] = static_cast<std::uint8_t>(winner);
  });
}

void run_grad(const KernelCall& call, const Geometry& g) {
  const float* gradient = call.in<float>(0);
  const auto* code = call.in<std::uint8_t>(1);
  float* dx = call.out<float>(0);
  cuda::for_each(call, cuda::elements(g.x), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.x, i);
    float sum = 0;
    cuda::each_window(g.window, g.y.h, g.y.w, at.y, at.x,
                      [&](std::int64_t tap, std::int64_t oy, std::int64_t ox) {
                        const std::int64_t from = cuda::index_of(g.y, at.n, oy, ox, at.c);
                        if (code[from] == tap) sum += gradient[from];
                      });
    dx[i] = sum;
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(max_pool2d)(runtime::KernelTable& kernels) {
  kernels.add("max_pool2d", cuda::own(prepare<Geometry::forward, run_forward>));
  kernels.add("max_pool2d_grad", cuda::own(prepare<Geometry::grad, run_grad>));
}

}  // namespace arenite::codelets
