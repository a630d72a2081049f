// A published learning curve, run again: cnn1 on the first 6,000 images of Fashion-MNIST in their
// order, batch 10, plain SGD with learning rate 0.001.
//
// dahl, a C framework on StarPU, published loss and accuracy of this run (in double precision,
// accuracy counted on the training batches as they pass) for epochs 0, 4 and 19. There the
// accuracies agree to the digit, and the losses within 3e-6. Its parameters are U(-0.1, 0.1) from
// the C library's `rand` after `srand(42)`: filters, their biases, dense weights, their biases.
// Drawing them alike gives its curve; four more seeds show how much of the first epochs is the
// draw's luck.
//
//   build/release/cnn1_curve [FOLDER]
//
// Status 1: the curve is another one.
#include <arenite/arenite.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <vector>

using namespace arenite;

namespace {

constexpr int epochs = 20, images = 6000;
constexpr unsigned published_seed = 42, seeds = 5;

struct Point {
  double loss = 0, accuracy = 0;  // accuracy in percent
};

const std::map<int, Point> published{
    {0, {2.282767, 12.23}}, {4, {0.884220, 69.45}}, {19, {0.568928, 80.15}}};

/// But for what another processor may round otherwise: two images, and as much of the loss.
bool agree(const Point& ours, const Point& theirs) {
  return std::abs(ours.loss - theirs.loss) < 2e-5 &&
         std::abs(ours.accuracy - theirs.accuracy) < 100 * 2.5 / images;
}

float draw() {
  return static_cast<float>(-0.1 + 0.2 * (static_cast<double>(std::rand()) / RAND_MAX));
}

/// Draws in dahl's order, where channels come before rows and columns, and a class before its
/// features; ours are [3, 3, 1, 4], [4], [13 · 13 · 4, 10] and [10], channels last.
void initialise(train::Trainer& trainer, unsigned seed) {
  constexpr std::size_t taps = 9, channels = 4, pixels = 13 * 13, classes = 10;
  const auto parameters = trainer.parameters();
  std::srand(seed);
  for (std::size_t k = 0; k < channels; ++k) {
    for (std::size_t t = 0; t < taps; ++t) parameters[0].values[t * channels + k] = draw();
  }
  for (float& bias : parameters[1].values) bias = draw();
  for (std::size_t o = 0; o < classes; ++o) {
    for (std::size_t k = 0; k < channels; ++k) {
      for (std::size_t p = 0; p < pixels; ++p)
        parameters[2].values[(p * channels + k) * classes + o] = draw();
    }
  }
  for (float& bias : parameters[3].values) bias = draw();
}

/// Appends the seconds that each epoch's training took.
std::vector<Point> run(runtime::Session& session, const data::ImageData& data, unsigned seed,
                       std::vector<double>& seconds) {
  const data::Split first = data.train.first(images);
  train::Trainer trainer(session, nn::model("cnn1").layers, data.shape(),
                         {.batch = 10, .optimizer = optim::sgd({.lr = 0.001f, .momentum = 0})});
  trainer.prepare(&first, nullptr);
  initialise(trainer, seed);
  std::vector<Point> curve;
  train::FitOptions options{.epochs = epochs, .shuffle = false};
  options.on_epoch = [&](const train::EpochReport& report) {
    curve.push_back({report.train.loss, 100 * report.train.accuracy});
    seconds.push_back(report.train.seconds);
  };
  trainer.fit(first, options);
  return curve;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto data = data::fashion_mnist(argc > 1 ? argv[1] : data::default_folder());
  runtime::Session session({.workers = 1});
  std::vector<std::vector<Point>> curves;
  std::vector<double> seconds;
  for (unsigned i = 0; i < seeds; ++i)
    curves.push_back(run(session, data, published_seed + i, seconds));

  std::printf("           seed %u              mean of %u seeds (lowest … highest)    published\n",
              published_seed, seeds);
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    Point mean;
    double lowest = 100, highest = 0;
    for (const auto& curve : curves) {
      mean.loss += curve[epoch].loss / seeds;
      mean.accuracy += curve[epoch].accuracy / seeds;
      lowest = std::min(lowest, curve[epoch].accuracy);
      highest = std::max(highest, curve[epoch].accuracy);
    }
    std::printf("epoch %2zu   %8.6f %6.2f %%   %8.6f %6.2f %% (%5.2f … %5.2f)", epoch,
                curves[0][epoch].loss, curves[0][epoch].accuracy, mean.loss, mean.accuracy, lowest,
                highest);
    if (const auto at = published.find(static_cast<int>(epoch)); at != published.end()) {
      std::printf("   %8.6f %6.2f %%, the mean %+.2f points apart", at->second.loss,
                  at->second.accuracy, mean.accuracy - at->second.accuracy);
    }
    std::puts("");
  }
  const bool same = std::ranges::all_of(published, [&](const auto& point) {
    return agree(curves[0][static_cast<std::size_t>(point.first)], point.second);
  });
  std::puts(same ? "the published curve" : "another curve than the published one");
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  std::printf("an epoch's training took %.3f s with one worker (median); published: 3.09 s\n",
              *middle);
  return same ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
