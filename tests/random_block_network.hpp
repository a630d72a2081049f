// Random networks of `if`s and loops in each other, with the gradients of their loss.
#pragma once

#include <arenite/arenite.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace arenite::testing {

inline constexpr std::int64_t rows = 3, width = 4;

/// Layers of one width, some of them in blocks, and the gradients of their loss.
class RandomNetwork {
 public:
  /// `needless`: some of it is what `tidy` finds.
  explicit RandomNetwork(unsigned seed, bool needless = false)
      : random_(seed), needless_(needless) {
    for (int i = 0; i < 3; ++i) {
      const std::string n = std::to_string(i);
      conditions_.push_back(
          builder_.declare("c" + n, DType::int32, {1}, graph::StorageClass::input));
      trips_.push_back(builder_.declare("t" + n, DType::int64, {1}, graph::StorageClass::input));
      weights_.push_back(builder_.declare("w" + n, DType::float32, {width, width},
                                          graph::StorageClass::parameter));
      biases_.push_back(
          builder_.declare("b" + n, DType::float32, {width}, graph::StorageClass::parameter));
    }
    const graph::ValueId x =
        builder_.declare("x", DType::float32, {rows, width}, graph::StorageClass::input);
    const graph::ValueId labels =
        builder_.declare("labels", DType::int32, {rows}, graph::StorageClass::input);
    values_.push_back(x);
    layers(3 + below(4), 0);
    // All of them lead to the loss.
    const graph::ValueId logits = builder_.add1("sum", values_);
    loss = builder_.add("softmax_cross_entropy", {logits, labels}, {{"divisor", rows}}).front();
    forward = graph;
    wrt.push_back(x);
    for (const auto& list : {weights_, biases_}) wrt.insert(wrt.end(), list.begin(), list.end());
    gradients = add_gradients(builder_, {loss}, wrt);
    graph.outputs = {loss};
    for (graph::ValueId id : gradients) {
      if (id) graph.outputs.push_back(id);
    }
  }

  graph::Graph graph, forward;
  std::vector<graph::ValueId> wrt, gradients;
  graph::ValueId loss;
  int branches = 0, loops = 0, deepest = 0;

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  graph::ValueId any(const std::vector<graph::ValueId>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  graph::ValueId dense(graph::ValueId x) { return builder_.add1("dense", {x, any(weights_)}); }

  graph::ValueId transposed(graph::ValueId x) {
    return builder_.add1("permute", {x}, {{"dims", std::vector<std::int64_t>{1, 0}}});
  }

  /// Transposed and back, or a product twice, once more with a weight that was transposed for it.
  void needless() {
    const graph::ValueId x = any(values_), weight = any(weights_);
    values_.push_back(dense(transposed(transposed(x))));
    const graph::ValueId first = builder_.add1("dense", {x, weight}),
                         again = builder_.add1("dense", {x, weight}),
                         other = builder_.add1("matmul", {x, transposed(weight)});
    values_.push_back(builder_.add1("sum", {first, again, other}));
  }

  void layers(int count, int depth) {
    for (int i = 0; i < count; ++i) {
      if (needless_ && below(3) == 0) {
        needless();
        continue;
      }
      switch (below(depth < 3 ? 8 : 5)) {
        case 0:
          values_.push_back(builder_.add1("relu", {any(values_)}));
          break;
        case 1:
          values_.push_back(dense(any(values_)));
          break;
        case 2:
          values_.push_back(builder_.add1("bias", {any(values_), any(biases_)}));
          break;
        case 3:
          values_.push_back(builder_.add1("sum", {any(values_), any(values_)}));
          break;
        case 4:  // a view, and what reads it again in its gradient
          values_.push_back(dense(builder_.add1(
              "reshape", {any(values_)}, {{"shape", std::vector<std::int64_t>{rows, width}}})));
          break;
        case 5:
          loop(depth);
          break;
        default:
          branch(depth);
          break;
      }
    }
  }

  void branch(int depth) {
    ++branches;
    deepest = std::max(deepest, depth + 1);
    const graph::ValueId condition = any(conditions_);
    const int results = 1 + below(2);
    std::vector<graph::RegionId> blocks;
    for (int side = 0; side < 2; ++side) {
      const std::size_t outside = values_.size();
      blocks.push_back(builder_.begin_region("if", {condition}));
      layers(below(4), depth + 1);
      std::vector<graph::ValueId> yielded;
      for (int i = 0; i < results; ++i) yielded.push_back(any(values_));
      builder_.end_region(yielded);
      values_.resize(outside);
    }
    const auto made = builder_.add("if", {condition}, {}, blocks);
    values_.insert(values_.end(), made.begin(), made.end());
  }

  void loop(int depth) {
    ++loops;
    deepest = std::max(deepest, depth + 1);
    std::vector<graph::ValueId> operands{below(3) ? any(trips_) : graph::ValueId{},
                                         below(3) ? graph::ValueId{} : any(conditions_)};
    for (int n = 1 + below(2); n > 0; --n) operands.push_back(any(values_));
    const graph::Attributes attributes{{"max_trips", std::int64_t{1 + below(3)}}};
    const std::size_t outside = values_.size(), trips = trips_.size();
    const graph::RegionId region = builder_.begin_region("loop", operands, attributes);
    const std::vector<graph::ValueId> parameters = graph[region].parameters;
    trips_.push_back(parameters[0]);
    values_.insert(values_.end(), parameters.begin() + 1, parameters.end());
    layers(1 + below(3), depth + 1);
    std::vector<graph::ValueId> yielded;
    if (operands[1]) yielded.push_back(any(conditions_));
    for (std::size_t i = 1; i < parameters.size(); ++i) yielded.push_back(any(values_));
    builder_.end_region(yielded);
    values_.resize(outside);
    trips_.resize(trips);
    const auto made = builder_.add("loop", operands, attributes, {region});
    values_.insert(values_.end(), made.begin(), made.end());
  }

  std::mt19937 random_;
  bool needless_;
  graph::Builder builder_{graph, operators()};
  std::vector<graph::ValueId> trips_, conditions_, weights_, biases_, values_;
};

using Inputs = std::map<std::string, std::vector<double>>;

/// As float32 holds them.
inline Inputs draw(const graph::Graph& graph, std::mt19937& random) {
  Inputs inputs;
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    const graph::Value& value = graph[graph::ValueId(i)];
    if (!value.is_declared()) continue;
    for (std::int64_t e = 0; e < value.shape.elements(); ++e) {
      const float real = static_cast<float>(random() % 2001) / 1000 - 1;
      // Classes, conditions, and trips from none to too many.
      const std::uint64_t choices = value.name == "labels" ? width : value.name[0] == 't' ? 5 : 2;
      const auto integer = static_cast<double>(random() % choices);
      inputs[value.name].push_back(value.type == DType::float32 ? static_cast<double>(real)
                                                                : integer);
    }
  }
  return inputs;
}

}  // namespace arenite::testing
