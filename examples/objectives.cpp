// One trainer for whatever has a loss: words of a sequence, an autoencoder, several labels at once,
// and two losses in turn. examples/objectives.py has the same in Python, and house_prices.cpp a
// network of two inputs.
//
//   build/release/objectives
#include <arenite/arenite.hpp>

#include <cstdint>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace arenite;
using graph::ValueId;

namespace {

constexpr std::int64_t count = 600;

train::TrainerOptions options() { return {.batch = 50, .optimizer = optim::adam({.lr = 0.01})}; }

ValueId hidden(nn::ModelBuilder& model, ValueId x, std::int64_t features) {
  return nn::relu()(model, nn::dense(features)(model, x));
}

std::vector<float> numbers(std::int64_t many, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> all;
  for (std::int64_t i = 0; i < many; ++i)
    all.push_back(static_cast<float>(random() / 2147483648.0 - 1));
  return all;
}

/// Sequences of eight of ten words, which are integers; the label is how many of them are even.
//
//   words [N, 8] ── one-hot [N, 8, 10] ── sum over the sequence ── dense ── ReLU ── dense
double count_even_words(runtime::Session& session) {
  std::mt19937 random(3);
  std::vector<std::int64_t> words, labels;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t even = 0;
    for (int k = 0; k < 8; ++k) {
      words.push_back(random() % 10);
      even += words.back() % 2 == 0;
    }
    labels.push_back(even);
  }
  const train::Build network = [](nn::ModelBuilder& model, std::int64_t batch) {
    const ValueId given = model.input("words", {batch, 8, 1}, DType::int64),
                  even = model.input("even", {batch}, DType::int32),
                  ten = model.graph().add1("full", {}, {{"shape", std::vector<std::int64_t>{10}}}),
                  one_hot = model.graph().add1(
                      "map", {given, ten}, {{"expression", "yield select($1 == index(2), 1, $2)"}}),
                  bag = model.graph().add1(
                      "reduce", {one_hot},
                      {{"axes", std::vector<std::int64_t>{1}}, {"expression", "yield sum($1)"}}),
                  logits = nn::dense(9)(model, hidden(model, bag, 32));
    const nn::LossValues loss = nn::cross_entropy()(model, logits, even, batch);
    return train::Objective{
        .loss = loss.value,
        .metrics = {{"loss", loss.statistics}, {"accuracy", loss.statistics, 1}},
        .predictions = logits};
  };
  train::Trainer trainer(session, network, options());
  const Samples samples{{{"words", words.data(), DType::int64, {count, 8, 1}},
                         {"even", labels.data(), DType::int64, {count}}}};
  trainer.fit(samples, {.epochs = 40});
  return trainer.evaluate(samples).accuracy;
}

/// Points of a plane in eight dimensions, through a code of two numbers and back: what goes in is
/// what is to come out. The share of their variance that does.
double compress(runtime::Session& session) {
  const std::vector<float> plane = numbers(count * 2, 5), axes = numbers(16, 6);
  std::vector<float> points;
  double variance = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < 8; ++k) {
      points.push_back(plane[2 * i] * axes[k] + plane[2 * i + 1] * axes[8 + k]);
      variance += points.back() * points.back() / static_cast<double>(count * 8);
    }
  }
  const train::Build network = [](nn::ModelBuilder& model, std::int64_t batch) {
    const ValueId in = model.input("points", {batch, 8}), code = nn::dense(2)(model, in),
                  out = nn::dense(8)(model, code);
    return train::Objective{.loss = nn::mse()(model, out, in), .predictions = out};
  };
  train::Trainer trainer(session, network, options());
  const Samples samples{{{"points", points.data(), DType::float32, {count, 8}}}};
  trainer.fit(samples, {.epochs = 40});
  return 1 - trainer.evaluate(samples).loss / variance;
}

/// Three labels of a sample, of which any may hold. How many are right.
double tag(runtime::Session& session) {
  const std::vector<float> x = numbers(count * 6, 7);
  std::vector<std::uint8_t> tags;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < 3; ++k) tags.push_back(x[6 * i + k] + x[6 * i + k + 3] > 0);
  const train::Build network = [](nn::ModelBuilder& model, std::int64_t batch) {
    const ValueId in = model.input("x", {batch, 6}), held = model.input("tags", {batch, 3}),
                  logits = nn::dense(3)(model, in);
    return train::Objective{
        .loss = nn::binary_cross_entropy()(model, logits, held),
        .metrics = {{.name = "right",
                     .sums = nn::sum_over(model, {logits, held}, "($1 > 0) == ($2 > 0.5)"),
                     .each = 3}},
        .predictions = logits};
  };
  train::Trainer trainer(session, network, options());
  const Samples samples{{{"x", x.data(), DType::float32, {count, 6}},
                         {"tags", tags.data(), DType::uint8, {count, 3}}}};
  trainer.fit(samples, {.epochs = 30});
  return trainer.evaluate(samples)["right"];
}

/// One body with two heads, whose losses are trained in turn: a trainer each, which take over from
/// each other. The loss of both, over that at first.
double take_turns(runtime::Session& session) {
  const std::vector<float> x = numbers(count * 4, 9);
  std::vector<float> sums, products;
  for (std::size_t i = 0; i < count; ++i) {
    sums.push_back(x[4 * i] + x[4 * i + 1]);
    products.push_back(x[4 * i + 2] * x[4 * i + 3]);
  }
  const auto head = [](bool is_sum) -> train::Build {
    return [is_sum](nn::ModelBuilder& model, std::int64_t batch) {
      const ValueId body = hidden(model, model.input("x", {batch, 4}), 32),
                    sum = nn::dense(1)(model, body), product = nn::dense(1)(model, body),
                    wanted = model.input("wanted", {batch, 1}), found = is_sum ? sum : product;
      return train::Objective{.loss = nn::mse()(model, found, wanted), .predictions = found};
    };
  };
  train::Trainer adds(session, head(true), options()), multiplies(session, head(false), options());
  const auto samples = [&](const std::vector<float>& wanted) {
    return Samples{{{"x", x.data(), DType::float32, {count, 4}},
                    {"wanted", wanted.data(), DType::float32, {count, 1}}}};
  };
  const double before =
      adds.evaluate(samples(sums)).loss + multiplies.evaluate(samples(products)).loss;
  for (int turn = 0; turn < 30; ++turn) {
    adds.fit(samples(sums));
    multiplies.take_over(adds);
    multiplies.fit(samples(products));
    adds.take_over(multiplies);
  }
  return (adds.evaluate(samples(sums)).loss + multiplies.evaluate(samples(products)).loss) / before;
}

}  // namespace

int main() {
  runtime::Session session;
  const double words = count_even_words(session), points = compress(session), tags = tag(session),
               turns = take_turns(session);
  std::cout << "even words counted right      " << words << "\nvariance behind a code of two "
            << points << "\nlabels right                  " << tags
            << "\ntwo losses in turn, of before " << turns << '\n';
  return words > 0.9 && points > 0.95 && tags > 0.95 && turns < 0.1 ? 0 : 1;
}
