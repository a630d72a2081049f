// Every optimizer that there is, and one that is written here.
#pragma once

#include <arenite/train/optimizer.hpp>

#include <utility>
#include <vector>

namespace arenite::testing {

inline std::vector<optim::Optimizer> optimizers() {
  std::vector<optim::Optimizer> all;
  for (const std::string& name : optim::names()) all.push_back(optim::named(name));
  all.push_back(optim::written(
      R"(formula mine(weight, gradient, learning_rate, mean, square, step, beta=0.9) {
           m = beta * mean + (1 - beta) * gradient;
           s = max(beta * square, gradient * gradient);
           yield weight - learning_rate / (1 - pow(beta, step)) * m / (sqrt(s) + 1e-8), m, s
         })",
      0.01));
  return all;
}

}  // namespace arenite::testing
