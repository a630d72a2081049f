#include <arenite/error.hpp>
#include <arenite/nn/nn.hpp>

#include "src/base/nearest.hpp"

namespace arenite::nn {
namespace {

/// What a model is meant for.
struct Images {
  const char* dataset;
  Shape shape;
};

Layer conv3x3(std::int64_t channels, WeightInit init = WeightInit::standard) {
  return sequential(conv2d({.channels = channels, .kernel = 3, .padding = same, .init = init}),
                    relu());
}

Layer normalised_conv3x3(std::int64_t channels) {
  return sequential(conv2d({.channels = channels, .kernel = 3, .padding = same, .bias = false}),
                    batch_norm(), relu(), max_pool2d(2));
}

/// Two convolutions and a pooling, which halves rows and columns.
Layer vgg_block(std::int64_t channels) {
  return sequential(conv3x3(channels, WeightInit::he), conv3x3(channels, WeightInit::he),
                    max_pool2d(2));
}

}  // namespace

const std::vector<NamedModel>& models() {
  const Images grey{"fashion-mnist", {28, 28, 1}}, colour{"synthetic-color", {32, 32, 3}};
  static const std::vector<NamedModel> all{
      {"mlp", "dense 512, ReLU, dense 10", grey.dataset, grey.shape,
       sequential(flatten(), dense(512), relu(), dense(10))},
      {"cnn1", "conv 3x3x4, ReLU, max-pool 2, dense 10", grey.dataset, grey.shape,
       sequential(conv2d({.channels = 4, .kernel = 3}), relu(), max_pool2d(2), flatten(),
                  dense(10))},
      {"lenet5", "conv 5x5x6, pool, conv 5x5x16, pool, dense 120, 84, 10", grey.dataset, grey.shape,
       sequential(conv2d({.channels = 6, .kernel = 5, .padding = 2}), relu(), max_pool2d(2),
                  conv2d({.channels = 16, .kernel = 5}), relu(), max_pool2d(2), flatten(),
                  dense(120), relu(), dense(84), relu(), dense(10))},
      {"cnn2", "conv 3x3x32, pool, conv 3x3x64, pool, dense 128, 10", grey.dataset, grey.shape,
       sequential(conv3x3(32), max_pool2d(2), conv3x3(64), max_pool2d(2), flatten(), dense(128),
                  relu(), dense(10))},
      {"cnn2-bn", "cnn2 with batch norm behind its convolutions, and dropout", grey.dataset,
       grey.shape,
       sequential(normalised_conv3x3(32), normalised_conv3x3(64), flatten(), dense(128), relu(),
                  dropout(), dense(10))},
      {"vgg-small",
       "conv 3x3x64 twice, pool, 3x3x128 twice, pool, 3x3x256 twice, pool, dense 512, 10",
       colour.dataset, colour.shape,
       sequential(vgg_block(64), vgg_block(128), vgg_block(256), flatten(),
                  dense({.features = 512, .init = WeightInit::he}), relu(), dense(10))},
  };
  return all;
}

const NamedModel& model(std::string_view name) {
  std::string known;
  Nearest nearest(name);
  for (const NamedModel& candidate : models()) {
    if (candidate.name == name) return candidate;
    nearest.consider(candidate.name);
    known += (known.empty() ? "" : ", ") + candidate.name;
  }
  fail({.found = "unknown model '" + std::string(name) + "'",
        .expected = "one of " + known,
        .hint = nearest.hint()});
}

}  // namespace arenite::nn
