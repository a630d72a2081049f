// Layers: small functions that append ops to a graph and name their parameters.
//
//   auto model = nn::sequential(nn::conv2d({.channels = 32, .kernel = 3, .padding = 1}),
//   nn::relu(),
//                               nn::max_pool2d(2), nn::flatten(), nn::dense(10));
//
// A model is a plain value that can be built into any number of graphs. Images are [N, H, W, C],
// float32; `dense` takes [N, features].
#pragma once

#include <arenite/graph/builder.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arenite::nn {

/// A parameter as declared by a layer: what an initialiser has to know.
struct Parameter {
  std::string name;  ///< "conv1.weight"
  graph::ValueId value;
  std::int64_t fan_in = 1;  ///< inputs that one output sums over
};

/// What a layer builds with: appends ops, hands out names ("conv1", "conv2", "dense1", …).
class ModelBuilder {
 public:
  explicit ModelBuilder(graph::Builder& builder) : builder_(builder) {}

  graph::Builder& graph() noexcept { return builder_; }
  const Shape& shape(graph::ValueId value) const { return builder_.graph()[value].shape; }

  /// Starts a layer of this kind: the ops that follow carry its name. Returns the name.
  std::string begin(const std::string& kind);
  graph::ValueId parameter(const std::string& name, Shape shape, std::int64_t fan_in);

  const std::vector<Parameter>& parameters() const noexcept { return parameters_; }

 private:
  graph::Builder& builder_;
  std::map<std::string, int> counts_;
  std::vector<Parameter> parameters_;
};

/// Takes a value, appends ops, returns the result. Throws Error on a shape it cannot take.
using Layer = std::function<graph::ValueId(ModelBuilder&, graph::ValueId)>;

struct Conv2dOptions {
  std::int64_t channels = 0;  ///< of the output
  std::int64_t kernel = 3;    ///< height and width
  std::int64_t stride = 1;
  std::int64_t padding = 0;  ///< zeros on each side
  bool bias = true;
};

Layer conv2d(Conv2dOptions options);
Layer dense(std::int64_t features, bool bias = true);
Layer relu();
Layer max_pool2d(std::int64_t kernel, std::int64_t stride = 0);  ///< stride 0: the kernel's size
Layer flatten();                                                 ///< [N, …] → [N, rest]

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

/// The networks of the command line by name. Throws Error on an unknown one.
struct NamedModel {
  std::string name, summary;
  Layer layers;
};

const std::vector<NamedModel>& models();
const NamedModel& model(std::string_view name);

}  // namespace arenite::nn
