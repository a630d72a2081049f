#include <arenite/error.hpp>
#include <arenite/nn/nn.hpp>

namespace arenite::nn {

const std::vector<NamedModel>& models() {
  static const std::vector<NamedModel> all{
      {"mlp", "784-512-10, one hidden layer with ReLU",
       sequential(flatten(), dense(512), relu(), dense(10))},
      {"cnn1", "conv 3x3x4, ReLU, max-pool 2, dense 10",
       sequential(conv2d({.channels = 4, .kernel = 3}), relu(), max_pool2d(2), flatten(),
                  dense(10))},
      {"lenet5", "conv 5x5x6, pool, conv 5x5x16, pool, dense 120, 84, 10",
       sequential(conv2d({.channels = 6, .kernel = 5, .padding = 2}), relu(), max_pool2d(2),
                  conv2d({.channels = 16, .kernel = 5}), relu(), max_pool2d(2), flatten(),
                  dense(120), relu(), dense(84), relu(), dense(10))},
      {"cnn2", "conv 3x3x32, pool, conv 3x3x64, pool, dense 128, 10",
       sequential(conv2d({.channels = 32, .kernel = 3, .padding = 1}), relu(), max_pool2d(2),
                  conv2d({.channels = 64, .kernel = 3, .padding = 1}), relu(), max_pool2d(2),
                  flatten(), dense(128), relu(), dense(10))},
  };
  return all;
}

const NamedModel& model(std::string_view name) {
  std::string known;
  for (const NamedModel& candidate : models()) {
    if (candidate.name == name) return candidate;
    known += (known.empty() ? "" : ", ") + candidate.name;
  }
  fail({.found = "unknown model '" + std::string(name) + "'", .expected = "one of " + known});
}

}  // namespace arenite::nn
