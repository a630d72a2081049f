// What a program outside of the repository does: plans buffers of its own, and trains on drawn
// images.
#include <arenite/arenite.hpp>

#include <iostream>

using namespace arenite;

int main() try {
  plan::Problem problem;
  problem.add({.name = "x", .bytes = 4096, .lifetime = {0, 3}});
  problem.add({.name = "y", .bytes = 8192, .lifetime = {1, 2}});
  problem.add({.name = "z", .bytes = 8192, .lifetime = {2, 4}});
  const plan::Plan plan = plan::solve(problem);
  std::cout << "peak " << plan.peak << (plan.optimal ? ", optimal" : "") << '\n';

  const auto data = data::synthetic({.train = 640, .test = 100});
  const auto model = nn::sequential(nn::conv2d({.channels = 8, .kernel = 3, .padding = nn::same}),
                                    nn::relu(), nn::max_pool2d(2), nn::flatten(), nn::dense(10));
  runtime::Session session;
  train::Trainer trainer(session, model, data.shape(), {.batch = 64});
  const double before = trainer.evaluate(data.test).loss;
  trainer.fit(data.train, {.epochs = 3});
  const double after = trainer.evaluate(data.test).loss;
  std::cout << "loss " << before << " -> " << after << '\n';
  return plan.peak == 12288 && after < before ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
