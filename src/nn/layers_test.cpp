// Layers in every form their options can take: the shapes they make and what they refuse.
#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace arenite::nn {
namespace {

using arenite::testing::error_of;

/// A graph with one input, into which a test builds.
class LayersTest : public ::testing::Test {
 protected:
  graph::ValueId input(Shape shape) {
    return builder_.declare("x" + std::to_string(inputs_++), DType::float32, std::move(shape),
                            graph::StorageClass::input);
  }

  Shape shape_of(const Layer& layer, const Shape& images = {2, 12, 10, 3}) {
    return model_.shape(layer(model_, input(images)));
  }

  /// In a graph of its own, where its layer is the first of its kind.
  static std::string refusal(const Layer& layer, const Shape& images = {2, 12, 10, 3}) {
    graph::Graph graph;
    graph::Builder builder(graph, operators());
    ModelBuilder model(builder);
    const graph::ValueId x =
        builder.declare("x", DType::float32, images, graph::StorageClass::input);
    return error_of([&] { layer(model, x); });
  }

  std::vector<graph::ValueId> parameters() const {
    return graph_.declared(graph::StorageClass::parameter);
  }
  const graph::Op& last_op() const { return graph_[graph_[graph::Graph::body].ops.back()]; }

  graph::Graph graph_;
  graph::Builder builder_{graph_, operators()};
  ModelBuilder model_{builder_};
  int inputs_ = 0;
};

TEST_F(LayersTest, NormsDeclareWhatTheyKeep) {
  EXPECT_EQ(shape_of(batch_norm()), (Shape{2, 12, 10, 3}));
  EXPECT_EQ(shape_of(batch_norm({.affine = false}), {5, 7}), (Shape{5, 7}));
  EXPECT_EQ(graph_[graph_.find("norm1.running_mean")].shape, Shape{3});
  EXPECT_EQ(graph_[graph_.find("norm2.running_variance")].shape, Shape{7});
  EXPECT_EQ(graph_[graph_.find("norm2.running_variance")].first, graph::constant(1));
  ASSERT_EQ(parameters().size(), 2u);
  EXPECT_EQ(graph_[parameters()[0]].name, "norm1.weight");
  EXPECT_EQ(graph_[parameters()[0]].first, graph::constant(1));
  EXPECT_TRUE(graph_[parameters()[1]].first.is_zero());
  EXPECT_EQ(refusal(batch_norm(), {5}),
            "batch_norm 'norm1': operand 'x' (x) of shape [5]; expected rank 2 or more, [N, ..., "
            "C]");
}

TEST_F(LayersTest, DropoutKeepsTheShape) {
  EXPECT_EQ(shape_of(dropout(0.25, 7)), (Shape{2, 12, 10, 3}));
  EXPECT_EQ(last_op().attributes.real("rate"), 0.25);
  EXPECT_EQ(last_op().attributes.integer("seed"), 7);
  EXPECT_EQ(refusal(dropout(2)), "dropout 'dropout1': rate=2.0; expected a number from 0 to 1");
}

TEST_F(LayersTest, ConvolutionsTakeNumbersAndPairs) {
  EXPECT_EQ(shape_of(conv2d({.channels = 32, .kernel = 3, .padding = 1})), (Shape{2, 12, 10, 32}));
  EXPECT_EQ(shape_of(conv2d({.channels = 4})), (Shape{2, 10, 8, 4}));
  EXPECT_EQ(shape_of(conv2d({.channels = 4, .kernel = {5, 3}})), (Shape{2, 8, 8, 4}));
  EXPECT_EQ(shape_of(conv2d({.channels = 4, .kernel = 2, .stride = 2})), (Shape{2, 6, 5, 4}));
  EXPECT_EQ(shape_of(conv2d({.channels = 4, .kernel = 3, .stride = {1, 3}})), (Shape{2, 10, 3, 4}));
  EXPECT_EQ(shape_of(conv2d({.channels = 4, .kernel = 3, .padding = {0, 2}})),
            (Shape{2, 10, 12, 4}));
  EXPECT_EQ(shape_of(conv2d({.channels = 4, .kernel = 3, .dilation = {3, 1}})),
            (Shape{2, 6, 8, 4}));
  EXPECT_EQ(
      shape_of(conv2d(
          {.channels = 4, .kernel = {5, 3}, .stride = {2, 1}, .padding = {2, 1}, .dilation = 2})),
      (Shape{2, 4, 8, 4}));
}

TEST_F(LayersTest, ConvolutionsDeclareTheirParameters) {
  shape_of(conv2d({.channels = 7, .kernel = {5, 3}}));
  shape_of(conv2d({.channels = 2, .kernel = 1, .bias = false}));
  std::vector<std::pair<std::string, Shape>> declared;
  for (const graph::ValueId id : parameters())
    declared.emplace_back(graph_[id].name, graph_[id].shape);
  const std::vector<std::pair<std::string, Shape>> expected{
      {"conv1.weight", {5, 3, 3, 7}}, {"conv1.bias", {7}}, {"conv2.weight", {1, 1, 3, 2}}};
  EXPECT_EQ(declared, expected);
}

TEST_F(LayersTest, WeightsSayInWhichRangeTheyBegin) {
  shape_of(conv2d({.channels = 1, .init = WeightInit::he}));  // sums over 27
  shape_of(conv2d({.channels = 1, .kernel = 1, .bias = false, .init = WeightInit::he}));  // over 3
  shape_of(dense({.features = 4, .bias = false, .init = WeightInit::he}), {2, 600});
  shape_of(dense({.features = 4}), {2, 600});
  shape_of(dense(4, false), {2, 600});
  const auto within = [](double gain, double fan_in) {
    const auto range = static_cast<float>(gain / std::sqrt(fan_in));
    return graph::uniform(-range, range);
  };
  const double he = std::sqrt(6.0);
  const std::vector<std::pair<std::string, graph::FirstValue>> expected{
      {"conv1.weight", within(he, 27)},  {"conv1.bias", within(1, 27)},
      {"conv2.weight", within(he, 3)},   {"dense1.weight", within(he, 600)},
      {"dense2.weight", within(1, 600)}, {"dense2.bias", within(1, 600)},
      {"dense3.weight", within(1, 600)}};
  std::vector<std::pair<std::string, graph::FirstValue>> declared;
  for (const graph::ValueId id : parameters())
    declared.emplace_back(graph_[id].name, graph_[id].first);
  EXPECT_EQ(declared, expected);
}

TEST_F(LayersTest, SameKeepsTheSizeAndStridesDivideItRoundedUp) {
  for (const Extent kernel : {Extent(1), Extent(3), Extent(5, 7), Extent(9, 1)}) {
    for (const Extent dilation : {Extent(1), Extent(2, 3)}) {
      for (const Extent stride : {Extent(1), Extent(2), Extent(3, 5)}) {
        const Shape out = shape_of(conv2d({.channels = 1,
                                           .kernel = kernel,
                                           .stride = stride,
                                           .padding = same,
                                           .dilation = dilation}),
                                   {1, 13, 10, 2});
        EXPECT_EQ(out, (Shape{1, (13 + stride.rows - 1) / stride.rows,
                              (10 + stride.columns - 1) / stride.columns, 1}));
      }
    }
  }
  // An even kernel with an even dilation has a middle between its taps.
  EXPECT_EQ(shape_of(conv2d({.channels = 1, .kernel = 2, .padding = same, .dilation = 2})),
            (Shape{2, 12, 10, 1}));
  EXPECT_EQ(shape_of(max_pool2d({.kernel = 3, .stride = 1, .padding = same})),
            (Shape{2, 12, 10, 3}));
}

TEST_F(LayersTest, PoolingsTakeNumbersAndPairs) {
  EXPECT_EQ(shape_of(max_pool2d(2)), (Shape{2, 6, 5, 3}));
  EXPECT_EQ(shape_of(max_pool2d({.kernel = {3, 2}})), (Shape{2, 4, 5, 3}));
  EXPECT_EQ(shape_of(max_pool2d({.kernel = 3, .stride = 2, .padding = 1})), (Shape{2, 6, 5, 3}));
  EXPECT_EQ(shape_of(max_pool2d({.kernel = {5, 3}, .stride = {2, 1}, .padding = {2, 0}})),
            (Shape{2, 6, 8, 3}));
  EXPECT_EQ(shape_of(max_pool2d({.kernel = 3, .stride = {0, 1}})), (Shape{2, 4, 8, 3}));
  EXPECT_EQ(shape_of(avg_pool2d(5)), (Shape{2, 2, 2, 3}));
  EXPECT_EQ(shape_of(avg_pool2d({.kernel = {2, 3}, .stride = 1, .padding = {0, 1}})),
            (Shape{2, 11, 10, 3}));
  EXPECT_EQ(last_op().attributes.integer("count_padding"), 1);
  shape_of(avg_pool2d({.kernel = 3, .padding = 1, .count_padding = false}));
  EXPECT_EQ(last_op().attributes.integer("count_padding"), 0);
}

TEST_F(LayersTest, GlobalPoolingLeavesAValueAChannel) {
  EXPECT_EQ(shape_of(global_avg_pool()), (Shape{2, 1, 1, 3}));
  EXPECT_EQ(last_op().attributes.integers("kernel"), (std::vector<std::int64_t>{12, 10}));
  EXPECT_EQ(shape_of(sequential(global_avg_pool(), flatten(), dense(5))), (Shape{2, 5}));
}

TEST_F(LayersTest, RefusedLayersAreNamed) {
  EXPECT_EQ(refusal(conv2d({.kernel = 3})),
            "layer 'conv1': 0 output channels; expected at least 1");
  EXPECT_EQ(refusal(conv2d({.channels = 1, .kernel = {3, 0}})),
            "layer 'conv1': a kernel of 3x0; expected rows and columns of at least 1 and below "
            "2^31");
  EXPECT_EQ(refusal(conv2d({.channels = 1, .stride = 0})),
            "layer 'conv1': a stride of 0x0; expected rows and columns of at least 1 and below "
            "2^31");
  EXPECT_EQ(refusal(conv2d({.channels = 1, .padding = -1})),
            "layer 'conv1': a padding of -1x-1; expected rows and columns of at least 0 and below "
            "2^31");
  EXPECT_EQ(refusal(conv2d({.channels = 1, .dilation = {1, std::int64_t{1} << 31}})),
            "layer 'conv1': a dilation of 1x2147483648; expected rows and columns of at least 1 "
            "and below 2^31");
  EXPECT_EQ(refusal(conv2d({.channels = 1, .kernel = {3, 4}, .padding = same})),
            "layer 'conv1': padding nn::same with a kernel of 3x4; expected a kernel with a "
            "middle: odd rows and columns (hint: give the zeros on each side as a number)");
  EXPECT_EQ(refusal(sequential(conv2d({.channels = 1}), conv2d({.channels = 1, .kernel = 11}))),
            "conv2d 'conv2': kernel 11x11 larger than the padded input 10x8; expected a kernel "
            "that fits (hint: more padding, or fewer poolings and strides before it)");
  EXPECT_EQ(refusal(sequential(flatten(), conv2d({.channels = 1}))),
            "layer 'conv1': a value of shape [2, 360]; expected images [N, H, W, C]");
  EXPECT_EQ(refusal(sequential(flatten(), dense(0))),
            "layer 'dense1': 0 output features; expected at least 1");
  // A product that no integer holds is refused, not wrapped around.
  const std::int64_t huge = (std::int64_t{1} << 31) - 1;
  EXPECT_NE(refusal(conv2d({.channels = huge, .kernel = huge})).find("2^48"), std::string::npos);
}

TEST_F(LayersTest, RefusedPoolingsAreNamed) {
  EXPECT_EQ(refusal(max_pool2d(0)),
            "layer 'pool1': a kernel of 0x0; expected rows and columns of at least 1 and below "
            "2^31");
  EXPECT_EQ(refusal(sequential(avg_pool2d(2), avg_pool2d({.kernel = 2, .stride = {1, -2}}))),
            "layer 'pool2': a stride of 1x-2; expected rows and columns of at least 0 and below "
            "2^31");
  EXPECT_EQ(refusal(max_pool2d({.kernel = 2, .padding = 2})),
            "max_pool2d 'pool1': padding 2x2 with kernel 2x2; expected padding smaller than the "
            "kernel, so that no window is all padding");
  EXPECT_EQ(refusal(avg_pool2d({.kernel = 2, .stride = 1, .padding = same})),
            "layer 'pool1': padding nn::same with a kernel of 2x2; expected a kernel with a "
            "middle: odd rows and columns (hint: give the zeros on each side as a number)");
  EXPECT_EQ(refusal(sequential(flatten(), global_avg_pool())),
            "layer 'pool1': a value of shape [2, 360]; expected images [N, H, W, C]");
  EXPECT_EQ(refusal(sequential(global_avg_pool(), dense(3))),
            "layer 'dense1': a value of shape [2, 1, 1, 3]; expected [N, features] (hint: put "
            "nn::flatten() before it)");
}

TEST_F(LayersTest, EveryNamedModelTakesItsDataSet) {
  const std::vector<std::string> known = data::names();
  for (const NamedModel& named : models()) {
    EXPECT_NE(std::find(known.begin(), known.end(), named.dataset), known.end()) << named.name;
    const bool coloured = named.dataset == "synthetic-color";
    const Shape image = named.image;
    EXPECT_EQ(image, coloured ? data::synthetic_color({.train = 10, .test = 10}).shape()
                              : data::synthetic({.train = 10, .test = 10}).shape());
    EXPECT_EQ(shape_of(named.layers, {4, image[0], image[1], image[2]}), (Shape{4, 10}))
        << named.name;
  }
  EXPECT_EQ(model("vgg-small").dataset, "synthetic-color");
  EXPECT_EQ(refusal([](ModelBuilder&, graph::ValueId x) {
              model("vgg");
              return x;
            }),
            "unknown model 'vgg'; expected one of mlp, cnn1, lenet5, cnn2, cnn2-bn, vgg-small");
  EXPECT_EQ(
      refusal([](ModelBuilder&, graph::ValueId x) {
        model("cnn");
        return x;
      }),
      "unknown model 'cnn'; expected one of mlp, cnn1, lenet5, cnn2, cnn2-bn, vgg-small (hint: did "
      "you mean 'cnn1'?)");
}

TEST_F(LayersTest, VggSmallIsTheNetworkItSays) {
  shape_of(model("vgg-small").layers, {1, 32, 32, 3});
  std::vector<Shape> weights;
  std::int64_t elements = 0;
  for (const graph::ValueId parameter : parameters()) {
    const Shape& shape = model_.shape(parameter);
    elements += shape.elements();
    if (shape.rank() > 1) weights.push_back(shape);
  }
  EXPECT_EQ(weights, (std::vector<Shape>{{3, 3, 3, 64},
                                         {3, 3, 64, 64},
                                         {3, 3, 64, 128},
                                         {3, 3, 128, 128},
                                         {3, 3, 128, 256},
                                         {3, 3, 256, 256},
                                         {4096, 512},
                                         {512, 10}}));
  // Weights as above, and a bias for each of their columns.
  EXPECT_EQ(elements, 1728 + 36864 + 73728 + 147456 + 294912 + 589824 + 2097152 + 5120 +
                          2 * (64 + 128 + 256) + 512 + 10);
}

}  // namespace
}  // namespace arenite::nn
