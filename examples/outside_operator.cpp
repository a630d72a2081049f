// Adds an operator from outside the library and trains through it.
//
//   x ─► dense ─► leaky_relu ─► dense ─► loss          forward
//   w ◄─ sgd ◄─── leaky_relu_grad ◄───── …             backward, from leaky_relu's own rule
//
//   build/release/outside_operator
#include <arenite/arenite.hpp>

#include <iostream>

using namespace arenite;

namespace {

/// y = x where x > 0, else slope · x.
void leaky_relu(const runtime::KernelCall& call) {
  const auto& [count, slope] = *static_cast<const std::pair<std::int64_t, float>*>(call.state);
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

/// dx = dy where x > 0, else slope · dy.
void leaky_relu_grad(const runtime::KernelCall& call) {
  const auto& [count, slope] = *static_cast<const std::pair<std::int64_t, float>*>(call.state);
  const float *dy = call.in<float>(0), *x = call.in<float>(1);
  float* dx = call.out<float>(0);
  for (std::int64_t i = 0; i < count; ++i) dx[i] = x[i] > 0 ? dy[i] : slope * dy[i];
}

/// A kernel is prepared once, when a program is built, and then runs with addresses from the plan.
runtime::Kernel plain(runtime::KernelFunction run) {
  return {.name = "plain", .prepare = [run](const graph::OpView& op) -> runtime::PreparedKernel {
            return {run, std::make_shared<std::pair<std::int64_t, float>>(
                             op.operand(0).shape.elements(), static_cast<float>(op.real("slope")))};
          }};
}

std::vector<graph::ResultType> like_first_operand(const graph::OpView& op) {
  return {{op.operand(0).type, op.operand(0).shape}};
}

void register_leaky_relu() {
  const graph::AttributeSchema slope{"slope", graph::AttributeType::real, 0.01};
  register_operator({.name = "leaky_relu_grad",
                     .operands = {{"gradient"}, {"x"}},
                     .results = {"x_gradient"},
                     .attributes = {slope},
                     .infer = like_first_operand,
                     .in_place = {{0, 0}}},
                    {plain(leaky_relu_grad)});
  register_operator(
      {.name = "leaky_relu",
       .operands = {{"x"}},
       .results = {"y"},
       .attributes = {slope},
       .infer = like_first_operand,
       .gradient =
           [](graph::GradientContext& context) {
             if (!context.wants(0)) return;
             context.set(0, context.builder().add1("leaky_relu_grad",
                                                   {context.result_gradient(0), context.operand(0)},
                                                   {{"slope", context.forward().real("slope")}}));
           }},
      {plain(leaky_relu)});
}

nn::Layer leaky_relu_layer(double slope) {
  return [slope](nn::ModelBuilder& model, graph::ValueId x) {
    model.begin("leaky_relu");
    return model.graph().add1("leaky_relu", {x}, {{"slope", slope}});
  };
}

}  // namespace

int main() try {
  register_leaky_relu();
  const auto data = data::synthetic();
  const auto model =
      nn::sequential(nn::flatten(), nn::dense(64), leaky_relu_layer(0.1), nn::dense(10));

  runtime::Session session;
  train::Trainer trainer(session, model, data.shape(), {.batch = 32});
  trainer.fit(data.train, {.epochs = 3, .on_epoch = [](const train::EpochReport& report) {
                             std::cout << "epoch " << report.epoch << ": training accuracy "
                                       << report.train.accuracy << '\n';
                           }});
  std::cout << "test accuracy: " << trainer.evaluate(data.test).accuracy << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
