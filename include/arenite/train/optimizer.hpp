// Optimizers: what changes parameters when their gradients are complete.
#pragma once

#include <arenite/graph/graph.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::optim {

/// Data: the same as `train` says in scripts. The learning rate is that at first: a state of the
/// program, which may change between steps.
using Optimizer = graph::UpdateRule;

// Options have PyTorch's names and numbers. Whatever makes an optimizer throws Error on numbers out
// of range: rates and eps are at least 0, betas, momentum and their like from 0 to below 1.

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;
  double dampening = 0;   ///< of the gradient in the velocity, but in the first step
  bool nesterov = false;  ///< with a momentum, and no dampening
};
/// w ← w − lr·v with v ← momentum·v + (1 − dampening)·g, at first g; or, with Nesterov,
/// w ← w − lr·(g + momentum·v). g is the gradient + weight_decay·w.
Optimizer sgd(const SgdOptions& options = {});

struct AdamOptions {
  double lr = 0.001;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
};
/// Steps by means of gradients over roots of means of their squares.
Optimizer adam(const AdamOptions& options = {});

struct AdamWOptions {
  double lr = 0.001;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool amsgrad = false;
};
/// Adam whose weights decay by themselves, not by their gradients.
Optimizer adamw(const AdamWOptions& options = {});

struct RmsPropOptions {
  double lr = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};
Optimizer rms_prop(const RmsPropOptions& options = {});

struct AdagradOptions {
  double lr = 0.01;
  double lr_decay = 0;
  double weight_decay = 0;
  double eps = 1e-10;
};
Optimizer adagrad(const AdagradOptions& options = {});

struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
};
Optimizer adadelta(const AdadeltaOptions& options = {});

struct LionOptions {
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0;
};
/// Steps by the sign of a mean: Chen and others, Symbolic discovery of optimization algorithms.
Optimizer lion(const LionOptions& options = {});

struct LambOptions {
  double lr = 0.001;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-6;
  double weight_decay = 0.01;
};
/// Adam's step as long as the weight is: You and others, Large batch optimization for deep
/// learning.
Optimizer lamb(const LambOptions& options = {});

/// The optimizers that there are: "adam", "adamw", "lion", "sgd", …
std::vector<std::string> names();

/// An optimizer with its standard numbers but for those that are given, as in
/// named("adam", {{"beta1", 0.8}}, 0.01), and with the learning rate that it begins with in
/// PyTorch or in its paper, `sgd` with that of SgdOptions, unless another is given. Throws Error on
/// a name that is none (as `names`), on a number that it has not or that is out of range, and on a
/// rate that is not finite or below 0.
Optimizer named(std::string_view name, const graph::Attributes& numbers = {},
                std::optional<double> learning_rate = {});

/// An optimizer of one's own, as scripts declare it (arenite/graph/formula.hpp), with these numbers
/// in place of its standard ones:
///
///   written(R"(formula heavy_ball(weight, gradient, learning_rate, velocity, momentum=0.9) {
///                v = momentum * velocity + gradient;
///                yield weight - learning_rate * v, v
///              })", 0.05, {{"momentum", 0.8}})
///
/// Throws Error on whatever is wrong with the formula, and as `named`.
Optimizer written(std::string_view formula, double learning_rate,
                  const graph::Attributes& numbers = {});

/// What Optimizer::schedule may be, by name: schedule("cosine", {{"steps", 1000.0}}) ends at 0 in
/// 1,000 steps. Any formula of `$1`, the number of the step from 1 on, is one too. Throws Error on
/// a name that is none and on numbers that it has not (docs/scripts.md lists them).
std::string schedule(std::string_view name, const graph::Attributes& numbers);

}  // namespace arenite::optim
