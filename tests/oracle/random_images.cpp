#include "tests/oracle/random_images.hpp"

#include <algorithm>

namespace arenite::oracle {
namespace {

using graph::Attributes;
using graph::ValueId;
using List = std::vector<std::int64_t>;

struct Window {
  List kernel, stride, padding, dilation, output;
};

/// One that fits the image, smaller paddings than kernels.
Window window(Draw& draw, const Shape& x, bool dilated) {
  Window w;
  for (int axis : {1, 2}) {
    const std::int64_t wanted = draw.between(1, 3), padding = draw.between(0, wanted - 1),
                       step = dilated && x[axis] > 1 ? draw.between(1, 2) : 1,
                       size = x[axis] + 2 * padding;
    const std::int64_t kernel = std::max(padding + 1, std::min(wanted, (size - 1) / step + 1));
    const bool fits = (kernel - 1) * step < size;
    w.kernel.push_back(kernel);
    w.padding.push_back(padding);
    w.dilation.push_back(fits ? step : 1);
    w.stride.push_back(draw.between(1, 2));
    w.output.push_back((size - (kernel - 1) * w.dilation.back() - 1) / w.stride.back() + 1);
  }
  return w;
}

}  // namespace

void add_convolution(RandomValues& values) {
  const ValueId x = values.image();
  const Shape of = values.shape(x);
  const Window w = window(values.draw, of, true);
  const std::int64_t outputs = values.draw.of<std::int64_t>({1, 3, 5, 16});
  const std::int64_t fan_in = w.kernel[0] * w.kernel[1] * of[3];
  std::vector<ValueId> operands{x,
                                values.weight({w.kernel[0], w.kernel[1], of[3], outputs}, fan_in)};
  if (values.draw.chance(60)) operands.push_back(values.floats({outputs}));
  Attributes attributes{{"stride", w.stride}, {"padding", w.padding}, {"dilation", w.dilation}};
  if (values.draw.chance(70)) {
    values.builder.add(values.draw.chance(70) ? "conv2d" : "conv2d_relu", operands, attributes);
    return;
  }
  attributes.set("pool", List{values.draw.between(1, std::min<std::int64_t>(3, w.output[0])),
                              values.draw.between(1, std::min<std::int64_t>(3, w.output[1]))});
  values.builder.add("conv2d_relu_max_pool2d", operands, attributes);
}

void add_convolution_to_relu(RandomValues& values) {
  if (values.draw.chance(50)) {
    const ValueId g = values.image();
    const Shape of = values.shape(g);
    const List kernel{values.draw.between(1, 3), values.draw.between(1, 3)};
    const std::int64_t inputs = values.draw.between(1, 5);
    const Shape x{of[0], of[1] + kernel[0] - 1, of[2] + kernel[1] - 1, inputs};
    values.builder.add("conv2d_grad_input_relu",
                       {g, values.floats({kernel[0], kernel[1], inputs, of[3]}), values.floats(x)},
                       {{"size", List{x[1], x[2]}}});
    return;
  }
  // Of winners that there are.
  const ValueId x = values.image();
  const Shape of = values.shape(x);
  const std::int64_t outputs = values.draw.between(1, 5);
  const ValueId weight = values.weight({1, 1, of[3], outputs}, of[3]);
  Attributes attributes{{"pool", List{1, 1}}};
  const auto pooled = values.builder.add("conv2d_relu_max_pool2d", {x, weight}, attributes);
  attributes.set("size", List{of[1], of[2]});
  values.builder.add("conv2d_relu_max_pool2d_grad_input_relu",
                     {values.floats(values.shape(pooled[0])), pooled[1], weight, x}, attributes);
}

void add_pooling(RandomValues& values) {
  const ValueId x = values.image();
  const Window w = window(values.draw, values.shape(x), false);
  Attributes attributes{{"kernel", w.kernel}, {"padding", w.padding}};
  if (values.draw.chance(60)) attributes.set("stride", w.stride);
  const bool averages = values.draw.chance(70);
  if (averages) attributes.set("count_padding", values.draw.between(0, 1));
  values.builder.add(averages ? "avg_pool2d" : "max_pool2d", {x}, attributes);
}

}  // namespace arenite::oracle
