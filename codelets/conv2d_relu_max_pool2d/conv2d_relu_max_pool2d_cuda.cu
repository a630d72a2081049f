#include "codelets/conv2d/by_element.hpp"

namespace arenite::codelets {
namespace {

using conv2d::Geometry;

void run_forward(const KernelCall& call, const Geometry& g) {
  const float *x = call.in<float>(0), *weight = call.in<float>(1),
              *bias = g.biased ? call.in<float>(2) : nullptr;
  float* y = call.out<float>(0);
  auto* code = call.out<std::uint8_t>(1);
  constexpr std::uint8_t dead = pool2d::dead;
  cuda::for_each(call, cuda::elements(g.y), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.y, i);
    const float offset = bias != nullptr ? bias[at.c] : 0;
    float best = 0;
    std::uint8_t winner = dead;
    for (std::int64_t tap = 0; tap < g.pool.h * g.pool.w; ++tap) {
      const float value =
          offset + conv2d::add_products(0, g, x, weight, at.n, at.y * g.pool.h + tap / g.pool.w,
                                        at.x * g.pool.w + tap % g.pool.w, at.c);
      // The first of equals; a NaN wins.
      if (!(value > best) && value == value) continue;
      best = value;
      winner = static_cast<std::uint8_t>(tap);
    }
    y[i] = best;
    code[i] = winner;
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(conv2d_relu_max_pool2d)(runtime::KernelTable& kernels) {
  kernels.add("conv2d_relu_max_pool2d", cuda::own(prepare<Geometry::forward, run_forward>));
  conv2d::add_gradients<true>(kernels, "conv2d_relu_max_pool2d");
}

}  // namespace arenite::codelets
