#include <arenite/nn/nn.hpp>

#include <cmath>
#include <limits>

#include "src/base/refuse.hpp"

namespace arenite::nn {
namespace {

void need_rank(ModelBuilder& model, graph::ValueId x, int rank, const std::string& layer,
               const char* expected) {
  const Shape& shape = model.shape(x);
  if (shape.rank() == rank) return;
  refuse("a value of shape " + to_string(shape), expected, "layer '" + layer + "'",
         rank == 2 ? "put nn::flatten() before it" : "");
}

std::string text(Extent extent) {
  return std::to_string(extent.rows) + "x" + std::to_string(extent.columns);
}

std::vector<std::int64_t> attribute(Extent extent) { return {extent.rows, extent.columns}; }

/// `what` names the option: "a kernel".
void need_extent(Extent extent, std::int64_t least, const std::string& what,
                 const std::string& layer) {
  // As operators limit them: sums and products stay far below 2^63.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const auto outside = [&](std::int64_t v) { return v < least || v > most; };
  if (!outside(extent.rows) && !outside(extent.columns)) return;
  refuse(what + " of " + text(extent),
         "rows and columns of at least " + std::to_string(least) + " and below 2^31",
         "layer '" + layer + "'");
}

/// The zeros on each side; the kernel and its dilation are checked already.
Extent zeros(const Padding& padding, Extent kernel, Extent dilation, const std::string& layer) {
  if (!padding.is_same) {
    need_extent(padding, 0, "a padding", layer);
    return padding;
  }
  const Extent reach{(kernel.rows - 1) * dilation.rows, (kernel.columns - 1) * dilation.columns};
  if (reach.rows % 2 != 0 || reach.columns % 2 != 0) {
    refuse("padding nn::same with a kernel of " + text(kernel),
           "a kernel with a middle: odd rows and columns", "layer '" + layer + "'",
           "give the zeros on each side as a number");
  }
  const Extent sides{reach.rows / 2, reach.columns / 2};
  need_extent(sides, 0, "a padding nn::same", layer);
  return sides;
}

/// Attributes of a pooling with these options.
template <class Options>
graph::Attributes pool_attributes(const Options& options, const std::string& layer) {
  const Extent kernel = options.kernel;
  need_extent(kernel, 1, "a kernel", layer);
  need_extent(options.stride, 0, "a stride", layer);
  const Extent stride{options.stride.rows == 0 ? kernel.rows : options.stride.rows,
                      options.stride.columns == 0 ? kernel.columns : options.stride.columns};
  return {{"kernel", attribute(kernel)},
          {"stride", attribute(stride)},
          {"padding", attribute(zeros(options.padding, kernel, 1, layer))}};
}

/// In ±1/√fan_in, where each output sums over so many inputs, or as `init` says.
graph::FirstValue uniform_over(std::int64_t fan_in, WeightInit init = WeightInit::standard) {
  const double gain = init == WeightInit::he ? std::sqrt(6.0) : 1.0;
  const float range = static_cast<float>(gain / std::sqrt(static_cast<double>(fan_in)));
  return graph::uniform(-range, range);
}

void need_outputs(std::int64_t count, const std::string& what, const std::string& layer) {
  if (count >= 1) return;
  refuse(std::to_string(count) + " output " + what, "at least 1", "layer '" + layer + "'");
}

std::string begin_pool(ModelBuilder& model, graph::ValueId x) {
  std::string name = model.begin("pool");
  need_rank(model, x, 4, name, "images [N, H, W, C]");
  return name;
}

}  // namespace

std::string ModelBuilder::begin(const std::string& kind) {
  std::string name = kind + std::to_string(++counts_[kind]);
  builder_.context.where = name;
  return name;
}

graph::ValueId ModelBuilder::input(const std::string& name, const Shape& shape, DType type) {
  const graph::ValueId value = builder_.declare(name, type, shape, graph::StorageClass::input);
  if (batch_ && shape.rank() > 0 && shape[0] == batch_->bound)
    graph::name_size(builder_.graph(), value, 0, batch_->name);
  return value;
}

graph::Attributes ModelBuilder::samples(const std::string& attribute, std::int64_t number) const {
  graph::Attributes attributes;
  std::vector<std::string> names;
  if (batch_ && number == batch_->bound) names.push_back(batch_->name);
  attributes.set(attribute, number, std::move(names));
  return attributes;
}

graph::ValueId ModelBuilder::elements(std::int64_t number) {
  const std::int64_t batch = batch_ && number % batch_->bound == 0 ? batch_->bound : 1;
  graph::Attributes attributes = samples("value", batch);
  attributes.set("shape", std::vector<std::int64_t>{1});
  attributes.set("type", std::string("float64"));
  const graph::ValueId samples = builder_.add1("full", {}, attributes);
  if (number == batch) return samples;
  return builder_.add1("map", {samples},
                       {{"expression", "yield $1 * " + std::to_string(number / batch)}});
}

graph::ValueId ModelBuilder::kept(const std::string& name, const Shape& shape,
                                  const graph::FirstValue& first, graph::StorageClass cls) {
  const graph::ValueId value = builder_.declare(name, DType::float32, shape, cls);
  builder_.graph()[value].first = first;
  return value;
}

graph::ValueId ModelBuilder::parameter(const std::string& name, const Shape& shape,
                                       const graph::FirstValue& first) {
  return kept(name, shape, first, graph::StorageClass::parameter);
}

graph::ValueId ModelBuilder::buffer(const std::string& name, const Shape& shape,
                                    const graph::FirstValue& first) {
  return kept(name, shape, first, graph::StorageClass::buffer);
}

Layer conv2d(Conv2dOptions options) {
  return [options](ModelBuilder& model, graph::ValueId x) {
    const std::string name = model.begin("conv");
    need_rank(model, x, 4, name, "images [N, H, W, C]");
    need_outputs(options.channels, "channels", name);
    const Extent kernel = options.kernel;
    need_extent(kernel, 1, "a kernel", name);
    need_extent(options.stride, 1, "a stride", name);
    need_extent(options.dilation, 1, "a dilation", name);
    const Extent padding = zeros(options.padding, kernel, options.dilation, name);
    const std::int64_t in = model.shape(x)[3];
    // Made first: it refuses sizes whose product would not fit.
    const Shape weight{kernel.rows, kernel.columns, in, options.channels};
    const std::int64_t fan_in = kernel.rows * kernel.columns * in;
    std::vector<graph::ValueId> operands{
        x, model.parameter(name + ".weight", weight, uniform_over(fan_in, options.init))};
    if (options.bias) {
      operands.push_back(
          model.parameter(name + ".bias", Shape{options.channels}, uniform_over(fan_in)));
    }
    return model.graph().add1("conv2d", std::move(operands),
                              {{"stride", attribute(options.stride)},
                               {"padding", attribute(padding)},
                               {"dilation", attribute(options.dilation)}});
  };
}

Layer dense(DenseOptions options) {
  return [options](ModelBuilder& model, graph::ValueId x) {
    const std::string name = model.begin("dense");
    need_rank(model, x, 2, name, "[N, features]");
    need_outputs(options.features, "features", name);
    const std::int64_t in = model.shape(x)[1];
    std::vector<graph::ValueId> operands{
        x, model.parameter(name + ".weight", Shape{in, options.features},
                           uniform_over(in, options.init))};
    if (options.bias) {
      operands.push_back(
          model.parameter(name + ".bias", Shape{options.features}, uniform_over(in)));
    }
    return model.graph().add1("dense", std::move(operands));
  };
}

Layer dense(std::int64_t features, bool bias) {
  return dense(DenseOptions{.features = features, .bias = bias});
}

Layer relu() {
  return [](ModelBuilder& model, graph::ValueId x) {
    model.begin("relu");
    return model.graph().add1("relu", {x});
  };
}

Layer dropout(double rate, std::int64_t seed) {
  return [=](ModelBuilder& model, graph::ValueId x) {
    model.begin("dropout");
    return model.graph().add1("dropout", {x}, {{"rate", rate}, {"seed", seed}});
  };
}

Layer batch_norm(BatchNormOptions options) {
  return [options](ModelBuilder& model, graph::ValueId x) {
    const std::string name = model.begin("norm");
    const Shape channels{model.shape(x).rank() > 0 ? model.shape(x).at(-1) : 0};
    std::vector<graph::ValueId> operands{
        x, model.buffer(name + ".running_mean", channels),
        model.buffer(name + ".running_variance", channels, graph::constant(1))};
    if (options.affine) {
      operands.push_back(model.parameter(name + ".weight", channels, graph::constant(1)));
      operands.push_back(model.parameter(name + ".bias", channels, {}));
    }
    return model.graph()
        .add("batch_norm", std::move(operands),
             {{"momentum", options.momentum},
              {"eps", options.epsilon},
              {"per_shard", std::int64_t{options.per_shard}}})
        .front();
  };
}

Layer max_pool2d(MaxPool2dOptions options) {
  return [options](ModelBuilder& model, graph::ValueId x) {
    const std::string name = begin_pool(model, x);
    return model.graph().add("max_pool2d", {x}, pool_attributes(options, name)).front();
  };
}

Layer avg_pool2d(AvgPool2dOptions options) {
  return [options](ModelBuilder& model, graph::ValueId x) {
    const std::string name = begin_pool(model, x);
    graph::Attributes attributes = pool_attributes(options, name);
    attributes.set("count_padding", std::int64_t{options.count_padding});
    return model.graph().add1("avg_pool2d", {x}, std::move(attributes));
  };
}

Layer global_avg_pool() {
  return [](ModelBuilder& model, graph::ValueId x) {
    begin_pool(model, x);
    const Shape& shape = model.shape(x);
    return model.graph().add1("avg_pool2d", {x}, {{"kernel", attribute({shape[1], shape[2]})}});
  };
}

Layer flatten() {
  return [](ModelBuilder& model, graph::ValueId x) {
    model.begin("flatten");
    return model.graph().add1("flatten", {x});
  };
}

Layer sequential(std::vector<Layer> layers) {
  return [layers = std::move(layers)](ModelBuilder& model, graph::ValueId x) {
    for (const Layer& layer : layers) x = layer(model, x);
    return x;
  };
}

}  // namespace arenite::nn
