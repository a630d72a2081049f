// A network of two inputs that guesses numbers: sizes of houses as doubles and their places as
// bytes, each through a layer of its own, and what they cost.
//
//   sizes [N, 3] ── dense ── ReLU ──┐
//                                   add ── dense ── guess [N, 1] ── squared error
//   places [N, 2] ─ dense ── ReLU ──┘
//
// The houses are drawn here; the arrays of a file would do as well.
//
//   build/release/house_prices
#include <arenite/arenite.hpp>

#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

using namespace arenite;

namespace {

struct Houses {
  std::vector<double> sizes;
  std::vector<std::uint8_t> places;
  std::vector<float> prices;

  Houses(std::int64_t count, std::uint32_t seed) {
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < count; ++i) {
      double price = 0;
      for (int k = 1; k <= 3; ++k) {
        sizes.push_back(random() / 4294967296.0);
        price += k * sizes.back();
      }
      for (int k = 0; k < 2; ++k) {
        places.push_back(static_cast<std::uint8_t>(random() % 256));
        price += places.back() / 255.0;
      }
      prices.push_back(static_cast<float>(price));
    }
  }

  Samples samples() const {
    const auto count = static_cast<std::int64_t>(prices.size());
    return {{{"sizes", sizes.data(), DType::float64, {count, 3}},
             {"places", places.data(), DType::uint8, {count, 2}, 1.0 / 255},
             {"prices", prices.data(), DType::float32, {count, 1}}}};
  }
};

train::Objective guess_prices(nn::ModelBuilder& model, std::int64_t batch) {
  const auto branch = nn::sequential(nn::dense(16), nn::relu());
  const auto sizes = model.input("sizes", {batch, 3}), places = model.input("places", {batch, 2}),
             prices = model.input("prices", {batch, 1});
  const auto of_sizes = branch(model, sizes), of_places = branch(model, places);
  const auto guess = nn::dense(1)(model, model.graph().add1("add", {of_sizes, of_places}));
  return {.loss = nn::mse()(model, guess, prices),
          .metrics = {{"mean error", nn::sum_over(model, {guess, prices}, "abs($1 - $2)")}},
          .predictions = guess};
}

}  // namespace

int main() {
  const Houses known(2000, 1), others(500, 2);
  const Samples tested = others.samples();
  runtime::Session session;
  train::Trainer trainer(session, guess_prices,
                         {.batch = 50, .optimizer = optim::adam({.lr = 0.005})});
  trainer.fit(known.samples(), {.epochs = 40, .validation = &tested});
  const train::Metrics found = trainer.evaluate(tested);
  std::cout << "squared error " << found.loss << ", mean error " << found["mean error"] << '\n';
  return found["mean error"] < 0.05 ? 0 : 1;
}
