// Trains a convolutional network on Fashion-MNIST and prints its accuracy on the test images.
//
//   build/release/fashion_mnist [FOLDER [EPOCHS]]
#include <arenite/arenite.hpp>

#include <cstdlib>
#include <iostream>

using namespace arenite;

int main(int argc, char** argv) try {
  auto data = data::fashion_mnist(argc > 1 ? argv[1] : data::default_folder());
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 10;

  auto model = nn::sequential(
      nn::conv2d({.channels = 32, .kernel = 3, .padding = 1}), nn::relu(), nn::max_pool2d(2),
      nn::conv2d({.channels = 64, .kernel = 3, .padding = 1}), nn::relu(), nn::max_pool2d(2),
      nn::flatten(), nn::dense(128), nn::relu(), nn::dense(10));

  runtime::Session session;  // StarPU and its workers
  train::Trainer trainer(session, model, data.shape(),
                         {.batch = 64,
                          .loss = nn::cross_entropy(),
                          .optimizer = optim::sgd({.lr = 0.02f, .momentum = 0.9f})});

  std::cout << trainer.plan();  // bytes of every arena, before the first step
  trainer.fit(data.train, {.epochs = epochs, .validation = &data.test});
  std::cout << "test accuracy: " << trainer.evaluate(data.test).accuracy << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
