#include "codelets/conv2d/by_element.hpp"

namespace arenite::codelets {
namespace {

using conv2d::Geometry;

void run_forward(const KernelCall& call, const Geometry& g) {
  const float *x = call.in<float>(0), *weight = call.in<float>(1),
              *bias = g.biased ? call.in<float>(2) : nullptr;
  float* y = call.out<float>(0);
  cuda::for_each(call, cuda::elements(g.y), [=] ARENITE_THREAD(std::int64_t i) {
    const cuda::Element at = cuda::element_at(g.y, i);
    const float sum = conv2d::add_products(bias != nullptr ? bias[at.c] : 0, g, x, weight, at.n,
                                           at.y, at.x, at.c);
    y[i] = g.relu && sum <= 0 ? 0 : sum;
  });
}

}  // namespace

void ARENITE_TILED_KERNELS(conv2d_behind_libraries)(runtime::KernelTable& kernels);

void ARENITE_CUDA_KERNELS(conv2d)(runtime::KernelTable& kernels) {
  ARENITE_TILED_KERNELS(conv2d_behind_libraries)(kernels);
  for (const char* op : {"conv2d", "conv2d_relu"})
    kernels.add(op, cuda::own(prepare<Geometry::forward, run_forward>));
  conv2d::add_gradients<false>(kernels, "conv2d");
}

}  // namespace arenite::codelets
