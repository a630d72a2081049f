// Houses, whose prices tests of training guess from two inputs.
#pragma once

#include <arenite/arenite.hpp>

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace arenite::testing {

using graph::ValueId;
using nn::ModelBuilder;

/// Houses: sizes as doubles, places as bytes, and what they cost.
struct Houses {
  static constexpr std::int64_t count = 203;
  std::vector<double> sizes = std::vector<double>(count * 3);
  std::vector<std::uint8_t> places = std::vector<std::uint8_t>(count * 2);
  std::vector<float> prices = std::vector<float>(count);

  Houses() {
    std::mt19937 engine(7);
    std::uniform_real_distribution<double> size(0, 1);
    std::uniform_int_distribution<int> place(0, 255);
    for (std::size_t i = 0; i < prices.size(); ++i) {
      double price = 0.2;
      for (std::size_t k = 0; k < 3; ++k)
        price += static_cast<double>(k + 1) * (sizes[i * 3 + k] = size(engine));
      for (std::size_t k = 0; k < 2; ++k) {
        places[i * 2 + k] = static_cast<std::uint8_t>(place(engine));
        price += places[i * 2 + k] / 255.0;
      }
      prices[i] = static_cast<float>(price);
    }
  }

  Samples samples() const {
    return {{{"sizes", sizes.data(), DType::float64, {count, 3}},
             {"places", places.data(), DType::uint8, {count, 2}, 1.0 / 255},
             {"prices", prices.data(), DType::float32, {count, 1}}}};
  }
};

inline const Houses& houses() {
  static const Houses all;
  return all;
}

inline ValueId dense_relu(ModelBuilder& model, ValueId x, std::int64_t features) {
  return nn::relu()(model, nn::dense(features)(model, x));
}

/// Two inputs, each through a layer of its own.
inline train::Objective price(ModelBuilder& model, std::int64_t batch) {
  const ValueId sizes = model.input("sizes", {batch, 3}),
                places = model.input("places", {batch, 2}),
                prices = model.input("prices", {batch, 1});
  const ValueId of_sizes = dense_relu(model, sizes, 16), of_places = dense_relu(model, places, 16);
  const ValueId both = model.graph().add1("add", {of_sizes, of_places});
  const ValueId guess = nn::dense(1)(model, both);
  return {.loss = nn::mse()(model, guess, prices),
          .metrics = {{"mae", nn::sum_over(model, {guess, prices}, "abs($1 - $2)")},
                      {"near", nn::sum_over(model, {guess, prices}, "abs($1 - $2) < 0.1")}},
          .predictions = guess};
}

inline train::TrainerOptions options(std::int64_t batch = 32) {
  return {.batch = batch, .optimizer = optim::adam({.lr = 0.01})};
}

inline train::Metrics last_of(train::Trainer& trainer, int epochs, const Samples& samples) {
  return trainer.fit(samples, {.epochs = epochs}).train;
}

inline std::filesystem::path file_named(const std::string& name) {
  return std::filesystem::temp_directory_path() / (name + "." + std::to_string(getpid()));
}

inline std::string refusal_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

}  // namespace arenite::testing
