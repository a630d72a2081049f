// What a trainer trains: a network of any inputs, its loss, and what is said of it.
//
//   train::Build rising = [](nn::ModelBuilder& model, std::int64_t batch) {
//     const auto price = model.input("price", {batch, 3}), rise = model.input("rise", {batch, 1});
//     const auto guess = nn::dense(1)(model, nn::relu()(model, nn::dense(16)(model, price)));
//     return train::Objective{.loss = nn::mse()(model, guess, rise), .predictions = guess};
//   };
//   train::Trainer trainer(session, rising, {.batch = 32, .optimizer = optim::adam()});
//   trainer.fit(samples);
#pragma once

#include <arenite/nn/nn.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace arenite::train {

/// A mean: what sums over batches come to, over what counts come to.
struct Metric {
  std::string name;
  graph::ValueId sums;      ///< float64 [k], of a batch
  std::size_t element = 0;  ///< of these
  /// Likewise; none: each sample counts `each`.
  graph::ValueId counts = {};
  std::size_t count_element = 0;
  double each = 1;
};

inline constexpr std::size_t most_metrics = 16;

struct Objective {
  graph::ValueId loss;  ///< float32 [1], a mean over the batch
  /// At most most_metrics. Where none is called "loss" it is the first: the mean of the batches'
  /// losses by their samples.
  std::vector<Metric> metrics = {};
  graph::ValueId predictions = {};  ///< [batch, …]; none: there are none
};

/// Builds all of it for batches of this size: declares the inputs [batch, …], and the layers. It is
/// called for each size that there is, the remainder of an epoch's among them.
using Build = std::function<Objective(nn::ModelBuilder&, std::int64_t batch)>;

/// Images [H, W, C] in the input "images", and labels in "labels".
Build classify(nn::Layer model, Shape image, nn::Loss loss = nn::cross_entropy());

}  // namespace arenite::train
