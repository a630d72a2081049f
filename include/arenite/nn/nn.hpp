// Layers: small functions that append ops to a graph and name their parameters.
//
//   auto model = nn::sequential(
//       nn::conv2d({.channels = 32, .kernel = 3, .padding = nn::same}), nn::relu(),
//       nn::max_pool2d(2), nn::flatten(), nn::dense(10));
//
// A model is a plain value that can be built into any number of graphs. Images are [N, H, W, C],
// float32; `dense` takes [N, features].
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/graph/run_time_sizes.hpp>

#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arenite::nn {

/// What a layer builds with: appends ops, hands out names ("conv1", "conv2", "dense1", …).
class ModelBuilder {
 public:
  /// `batch`: the size of a batch, where the graph leaves it open (graph/run_time_sizes.hpp).
  explicit ModelBuilder(graph::Builder& builder, std::optional<graph::RunTimeSize> batch = {})
      : builder_(builder), batch_(std::move(batch)) {}

  graph::Builder& graph() noexcept { return builder_; }
  const Shape& shape(graph::ValueId value) const { return builder_.graph()[value].shape; }

  /// Starts a layer of this kind: the ops that follow carry its name. Returns the name.
  std::string begin(const std::string& kind);
  /// What each step is given: [batch, …].
  graph::ValueId input(const std::string& name, const Shape& shape, DType type = DType::float32);
  /// An attribute of an op that counts the batch's samples: in a smaller batch it is less.
  graph::Attributes samples(const std::string& attribute, std::int64_t number) const;
  /// float64 [1]: how many elements there are, of which each sample has as many.
  graph::ValueId elements(std::int64_t number);
  /// float32 values that begin so.
  graph::ValueId parameter(const std::string& name, const Shape& shape,
                           const graph::FirstValue& first);
  /// The same of what survives steps and is not trained.
  graph::ValueId buffer(const std::string& name, const Shape& shape,
                        const graph::FirstValue& first = {});

 private:
  graph::ValueId kept(const std::string& name, const Shape& shape, const graph::FirstValue& first,
                      graph::StorageClass cls);

  graph::Builder& builder_;
  std::optional<graph::RunTimeSize> batch_;
  std::map<std::string, int> counts_;
};

/// Takes a value, appends ops, returns the result. Throws Error on a shape it cannot take.
using Layer = std::function<graph::ValueId(ModelBuilder&, graph::ValueId)>;

/// Something for rows and something for columns: `3` means (3, 3), `{5, 3}` five rows and three
/// columns.
struct Extent {
  std::int64_t rows, columns;

  template <std::integral T>
  requires(!std::same_as<T, bool>) constexpr Extent(T both)
      : rows(static_cast<std::int64_t>(both)), columns(rows) {}
  constexpr Extent(std::int64_t r, std::int64_t c) : rows(r), columns(c) {}

  friend bool operator==(const Extent&, const Extent&) = default;
};

struct Same {};

/// The padding (kernel − 1)·dilation / 2 on each side: the output is as large as the input divided
/// by the stride, rounded up. Only kernels whose (kernel − 1)·dilation is even have it, all odd
/// ones do; any other is an Error when the layer is built.
inline constexpr Same same;

/// Zeros around an image: `1`, `{rows, columns}` (on each side) or `same`.
struct Padding : Extent {
  using Extent::Extent;
  constexpr Padding(Same) : Extent(0), is_same(true) {}

  friend bool operator==(const Padding&, const Padding&) = default;

  bool is_same = false;
};

/// The range ±r in which a layer's weights begin, unless the trainer is given one.
enum class WeightInit : std::uint8_t {
  standard,  ///< r = 1/√fan_in, as PyTorch's layers: a signal shrinks √6-fold a layer with ReLU
  /// r = √(6/fan_in): a signal keeps its size through layers with ReLU, which networks of more than
  /// about five of them need (He et al., "Delving deep into rectifiers", 2015).
  he,
};

struct Conv2dOptions {
  std::int64_t channels = 0;  ///< of the output
  Extent kernel = 3;
  Extent stride = 1;
  Padding padding = 0;
  Extent dilation = 1;  ///< from one tap of the kernel to the next
  bool bias = true;
  WeightInit init = WeightInit::standard;
};

/// [N, H, W, C] → [N, OH, OW, channels], OH = ⌊(H + 2·padding − (kernel − 1)·dilation − 1) /
/// stride⌋ + 1 for rows and likewise for columns.
Layer conv2d(Conv2dOptions options);

struct DenseOptions {
  std::int64_t features = 0;  ///< of the output
  bool bias = true;
  WeightInit init = WeightInit::standard;
};

Layer dense(DenseOptions options);  ///< [N, K] → [N, features]
Layer dense(std::int64_t features, bool bias = true);
Layer relu();

/// In training leaves out elements with the probability `rate`, and divides the others by 1 − rate;
/// those of each layer and each sample drawn are others, and follow from `seed`.
Layer dropout(double rate = 0.5, std::int64_t seed = 0);

struct BatchNormOptions {
  double momentum = 0.1;  ///< of the newest batch in the running statistics
  double epsilon = 1e-5;
  bool affine = true;  ///< with a weight and a bias
  /// In training over a shard alone, where the batch is cut in several; else it is not cut so.
  bool per_shard = false;
};

/// [N, …, C] → the same: each channel with mean 0 and variance 1, over the batch in training, by
/// running statistics in an evaluation.
Layer batch_norm(BatchNormOptions options = {});

struct MaxPool2dOptions {
  Extent kernel = 2;
  Extent stride = 0;    ///< 0: the kernel's size, windows side by side
  Padding padding = 0;  ///< below the kernel's size; never the maximum itself
};

struct AvgPool2dOptions {
  Extent kernel = 2;
  Extent stride = 0;          ///< 0: the kernel's size, windows side by side
  Padding padding = 0;        ///< below the kernel's size
  bool count_padding = true;  ///< divide by the window's area, else by its pixels inside the image
};

/// [N, H, W, C] → [N, OH, OW, C], sizes as of a convolution. Pixels that fill no whole window at
/// the lower and right edge are left out.
Layer max_pool2d(MaxPool2dOptions options);
/// Windows of this many rows and columns side by side.
template <std::integral T>
Layer max_pool2d(T kernel) {
  return max_pool2d(MaxPool2dOptions{.kernel = kernel});
}
Layer avg_pool2d(AvgPool2dOptions options);
template <std::integral T>
Layer avg_pool2d(T kernel) {
  return avg_pool2d(AvgPool2dOptions{.kernel = kernel});
}
Layer global_avg_pool();  ///< the mean of each channel: [N, H, W, C] → [N, 1, 1, C]
Layer flatten();          ///< [N, …] → [N, rest]

Layer sequential(std::vector<Layer> layers);

template <class... Layers>
Layer sequential(Layer first, Layers... rest) {
  return sequential(std::vector<Layer>{std::move(first), std::move(rest)...});
}

/// A loss over logits [N, classes] and labels int32 [N]. `value` is the mean over `divisor`
/// samples.
struct LossValues {
  graph::ValueId value;  ///< float32 [1]
  graph::ValueId
      statistics;  ///< float64 [2]: sum of the samples' losses, number classified correctly
};

using Loss = std::function<LossValues(ModelBuilder&, graph::ValueId logits, graph::ValueId labels,
                                      std::int64_t divisor)>;

Loss cross_entropy();  ///< softmax cross-entropy with integer labels
/// The same, each sample's loss times its weight, float32 [N]; the mean is over all samples. One of
/// weight 0 is not looked at, whatever its label, nor counted as classified correctly.
LossValues weighted_cross_entropy(ModelBuilder& model, graph::ValueId logits, graph::ValueId labels,
                                  graph::ValueId weights, std::int64_t divisor);

/// A loss of each element of predictions and of targets like them: the mean of all, float32 [1].
using ElementLoss = std::function<graph::ValueId(ModelBuilder&, graph::ValueId predictions,
                                                 graph::ValueId targets)>;

ElementLoss mse();  ///< (prediction − target)²
ElementLoss l1();   ///< |prediction − target|
ElementLoss huber(
    double delta = 1);  ///< ½·d² of differences d up to delta, else delta·(|d| − ½·delta)
ElementLoss
binary_cross_entropy();  ///< of logits, and targets from 0 to 1: several labels may hold
/// One of one's own, as `map` has formulas in scripts: `$1` is a prediction, `$2` its target.
ElementLoss of_elements(std::string name, std::string formula);

/// A metric's sums: float64 [1], a formula of elements, `$1` of the first value and so on, summed.
graph::ValueId sum_over(ModelBuilder& model, const std::vector<graph::ValueId>& values,
                        const std::string& formula);

/// The networks of the command line by name. Throws Error on an unknown one.
struct NamedModel {
  std::string name, summary;
  std::string dataset;  ///< the images it is meant for, as `data::find` names them
  Shape image;          ///< one of them: [H, W, C]
  Layer layers;
};

const std::vector<NamedModel>& models();
const NamedModel& model(std::string_view name);

}  // namespace arenite::nn
