#include <arenite/error.hpp>
#include <arenite/nn/nn.hpp>

namespace arenite::nn {
namespace {

void need_rank(ModelBuilder& model, graph::ValueId x, int rank, const std::string& layer,
               const char* expected) {
  const Shape& shape = model.shape(x);
  if (shape.rank() == rank) return;
  fail({.found = "a value of shape " + to_string(shape),
        .expected = expected,
        .where = "layer '" + layer + "'",
        .hint = rank == 2 ? "put nn::flatten() before it" : ""});
}

}  // namespace

std::string ModelBuilder::begin(const std::string& kind) {
  std::string name = kind + std::to_string(++counts_[kind]);
  builder_.context.where = name;
  return name;
}

graph::ValueId ModelBuilder::parameter(const std::string& name, Shape shape, std::int64_t fan_in) {
  const graph::ValueId value =
      builder_.declare(name, DType::float32, shape, graph::StorageClass::parameter);
  parameters_.push_back({.name = name, .value = value, .fan_in = fan_in});
  return value;
}

Layer conv2d(Conv2dOptions options) {
  return [options](ModelBuilder& model, graph::ValueId x) {
    const std::string name = model.begin("conv");
    need_rank(model, x, 4, name, "images [N, H, W, C]");
    if (options.channels < 1 || options.kernel < 1) {
      fail({.found = std::to_string(options.channels) + " channels and a kernel of " +
                     std::to_string(options.kernel),
            .expected = "at least 1 of both",
            .where = "layer '" + name + "'"});
    }
    const std::int64_t in = model.shape(x)[3], k = options.kernel;
    const std::int64_t fan_in = k * k * in;
    std::vector<graph::ValueId> operands{
        x, model.parameter(name + ".weight", Shape{k, k, in, options.channels}, fan_in)};
    if (options.bias)
      operands.push_back(model.parameter(name + ".bias", Shape{options.channels}, fan_in));
    return model.graph().add1(
        "conv2d", std::move(operands),
        {{"stride", std::vector<std::int64_t>{options.stride, options.stride}},
         {"padding", std::vector<std::int64_t>{options.padding, options.padding}}});
  };
}

Layer dense(std::int64_t features, bool bias) {
  return [features, bias](ModelBuilder& model, graph::ValueId x) {
    const std::string name = model.begin("dense");
    need_rank(model, x, 2, name, "[N, features]");
    const std::int64_t in = model.shape(x)[1];
    std::vector<graph::ValueId> operands{
        x, model.parameter(name + ".weight", Shape{in, features}, in)};
    if (bias) operands.push_back(model.parameter(name + ".bias", Shape{features}, in));
    return model.graph().add1("dense", std::move(operands));
  };
}

Layer relu() {
  return [](ModelBuilder& model, graph::ValueId x) {
    model.begin("relu");
    return model.graph().add1("relu", {x});
  };
}

Layer max_pool2d(std::int64_t kernel, std::int64_t stride) {
  return [kernel, stride = stride == 0 ? kernel : stride](ModelBuilder& model, graph::ValueId x) {
    const std::string name = model.begin("pool");
    need_rank(model, x, 4, name, "images [N, H, W, C]");
    return model.graph()
        .add("max_pool2d", {x},
             {{"kernel", std::vector<std::int64_t>{kernel, kernel}},
              {"stride", std::vector<std::int64_t>{stride, stride}}})
        .front();
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

Loss cross_entropy() {
  return
      [](ModelBuilder& model, graph::ValueId logits, graph::ValueId labels, std::int64_t divisor) {
        model.begin("loss");
        const auto results =
            model.graph().add("softmax_cross_entropy", {logits, labels}, {{"divisor", divisor}});
        return LossValues{.value = results.at(0), .statistics = results.at(1)};
      };
}

}  // namespace arenite::nn
