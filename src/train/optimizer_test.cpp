#include <arenite/error.hpp>
#include <arenite/graph/operator.hpp>
#include <arenite/train/optimizer.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

namespace arenite::optim {
namespace {

using arenite::testing::error_of;
using graph::Attributes;

void expect(const Optimizer& made, const std::string& name, double rate,
            const Attributes& numbers) {
  EXPECT_EQ(made.optimizer->name, name);
  EXPECT_EQ(made.learning_rate, rate) << name;
  EXPECT_EQ(made.attributes, numbers) << name;
}

TEST(Optimizers, HaveOptionsAsInPyTorch) {
  expect(sgd(), "sgd", 0.01, {{"momentum", 0.0}, {"weight_decay", 0.0}});
  expect(sgd({.lr = 0.5, .momentum = 0.9, .dampening = 0.5}), "sgd_dampened", 0.5,
         {{"momentum", 0.9}, {"weight_decay", 0.0}, {"dampening", 0.5}});
  expect(sgd({.momentum = 0.9, .weight_decay = 0.1, .nesterov = true}), "sgd_nesterov", 0.01,
         {{"momentum", 0.9}, {"weight_decay", 0.1}});
  const Attributes adams{{"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight_decay", 0.0}};
  expect(adam(), "adam", 0.001, adams);
  expect(adam({.amsgrad = true}), "adam_amsgrad", 0.001, adams);
  expect(adamw({.lr = 0.5, .betas = {0.5, 0.25}, .eps = 0.1}), "adamw", 0.5,
         {{"beta1", 0.5}, {"beta2", 0.25}, {"eps", 0.1}, {"weight_decay", 0.01}});
  expect(rms_prop({.momentum = 0.5, .centered = true}), "rms_prop_centered_momentum", 0.01,
         {{"alpha", 0.99}, {"eps", 1e-8}, {"momentum", 0.5}, {"weight_decay", 0.0}});
  expect(rms_prop(), "rms_prop", 0.01, {{"alpha", 0.99}, {"eps", 1e-8}, {"weight_decay", 0.0}});
  expect(adagrad({.lr_decay = 0.5}), "adagrad", 0.01,
         {{"eps", 1e-10}, {"lr_decay", 0.5}, {"weight_decay", 0.0}});
  expect(adadelta(), "adadelta", 1, {{"eps", 1e-6}, {"rho", 0.9}, {"weight_decay", 0.0}});
  expect(lion(), "lion", 1e-4, {{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.0}});
  expect(lamb(), "lamb", 0.001,
         {{"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-6}, {"weight_decay", 0.01}});
}

TEST(Optimizers, RefuseNumbersOutOfRange) {
  EXPECT_EQ(error_of([] {
              adam({.betas = {1, 0.999}});
            }),
            "adam: beta1=1.0; expected a number from 0 to below 1");
  EXPECT_EQ(error_of([] { adamw({.weight_decay = -1}); }),
            "adamw: weight_decay=-1.0; expected a finite number of at least 0");
  EXPECT_EQ(error_of([] { sgd({.momentum = 1}); }),
            "sgd with momentum 1, weight decay 0, dampening 0; expected a momentum and dampening "
            "of 0 to below 1, a weight decay of at least 0");
  EXPECT_EQ(error_of([] { sgd({.nesterov = true}); }),
            "nesterov with momentum 0 and dampening 0; expected a momentum above 0 and no "
            "dampening");
  EXPECT_EQ(error_of([] { lion({.lr = -1}); }),
            "a learning rate of -1.0; expected a number of at least 0 that a float can hold");
}

constexpr const char* heavy_ball =
    R"(formula heavy_ball(weight, gradient, learning_rate, velocity, momentum=0.9) {
         v = momentum * velocity + gradient;
         yield weight - learning_rate * v, v
       })";

TEST(Optimizers, AreWritten) {
  expect(written(heavy_ball, 0.5), "heavy_ball", 0.5, {{"momentum", 0.9}});
  expect(written(heavy_ball, 0.5, {{"momentum", 0.25}}), "heavy_ball", 0.5, {{"momentum", 0.25}});
}

TEST(Optimizers, SayWhatIsWrongWithAFormula) {
  EXPECT_EQ(error_of([] { written("formula twice(x) { 2 * x }", 1); }),
            "formula 'twice', which is no optimizer; expected operands (weight, gradient, "
            "learning_rate, …), of which the second and third are called so");
  EXPECT_EQ(error_of([] {
              written(heavy_ball, 1, {{"beta", 0.9}});
            }),
            "heavy_ball: unknown attribute 'beta'; expected one of momentum");
  EXPECT_EQ(error_of([] { written("formula adam(w, gradient, learning_rate) { w }", 1); }),
            "a formula named 'adam', as an operator is; expected a name of its own");
}

}  // namespace
}  // namespace arenite::optim
