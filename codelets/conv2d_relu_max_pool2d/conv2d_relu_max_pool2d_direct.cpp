// The fused convolution for few channels, where a GEMM over channels would leave the machine idle:
// the outputs of whole pooling windows stay in registers until they are pooled. Lanes are output
// channels where there are enough of them, else pooled columns.
#include "codelets/conv2d_relu_max_pool2d/direct.hpp"
#include "codelets/conv2d_relu_max_pool2d/forward_cost.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d {

#ifdef ARENITE_AVX512

namespace {

graph::Support supports(const OpView& op) {
  const Geometry g = Geometry::forward(op);
  if (direct_cycles(g) >= gemm_cycles(g)) return "channels enough for a GEMM to be faster";
  return by_columns(g) ? direct::columns_support(g) : direct::channels_support(g);
}

}  // namespace

Kernel direct_forward() {
  return {.name = "direct",
          .supports = supports,
          .workspace =
              [](const OpView& op) {
                const Geometry g = Geometry::forward(op);
                return by_columns(g) ? direct::columns_workspace(g) : direct::channels_workspace(g);
              },
          .prepare =
              [](const OpView& op) {
                const Geometry g = Geometry::forward(op);
                return by_columns(g) ? direct::prepare_columns(g) : direct::prepare_channels(g);
              },
          .wanted_halo =
              [](const OpView& op, std::size_t i) {
                const bool copies = by_columns(Geometry::forward(op));
                return i == 0 && copies ? 0 : padding_halo<Geometry::forward>(op, i);
              },
          .writes_halo = true};
}

#else

Kernel direct_forward() { return without_avx512("direct"); }

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
