// Adds operators from outside the library and trains through them.
//
//   x ─► dense ─► leaky_relu ─► dense ─► loss          forward
//   w ◄─ sgd ◄─── leaky_relu_grad ◄───── …             backward, from leaky_relu's own rule
//
// leaky_relu keeps the samples of a batch apart, and says so: lanes can each take some. center,
// which takes the batch's mean from each sample, does not, and is given all of them at once.
//
//   build/release/outside_operator
#include <arenite/arenite.hpp>

#include <iostream>

using namespace arenite;

namespace {

/// What a kernel knows of its op: it is prepared once, when a program is built, and then runs with
/// addresses from the plan.
struct Leaky {
  std::int64_t count;
  float slope;
};

Leaky leaky(const graph::OpView& op) {
  return {op.operand(0).shape.elements(), static_cast<float>(op.real("slope"))};
}

/// y = x where x > 0, else slope · x.
void leaky_relu(const runtime::KernelCall& call, const Leaky& op) {
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  for (std::int64_t i = 0; i < op.count; ++i) y[i] = x[i] > 0 ? x[i] : op.slope * x[i];
}

/// dx = dy where x > 0, else slope · dy.
void leaky_relu_grad(const runtime::KernelCall& call, const Leaky& op) {
  const float *dy = call.in<float>(0), *x = call.in<float>(1);
  float* dx = call.out<float>(0);
  for (std::int64_t i = 0; i < op.count; ++i) dx[i] = x[i] > 0 ? dy[i] : op.slope * dy[i];
}

/// y = x − mean of x over the samples, each column by itself.
void center(const runtime::KernelCall& call, const Shape& shape) {
  const std::int64_t rows = shape[0], columns = shape[1];
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  for (std::int64_t c = 0; c < columns; ++c) {
    float sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) sum += x[r * columns + c];
    const float mean = sum / static_cast<float>(rows);
    for (std::int64_t r = 0; r < rows; ++r) y[r * columns + c] = x[r * columns + c] - mean;
  }
}

void register_leaky_relu() {
  const graph::AttributeSchema slope{"slope", graph::AttributeType::real, 0.01};
  register_operator({.name = "leaky_relu_grad",
                     .operands = {{"gradient"}, {"x"}},
                     .results = {"x_gradient"},
                     .attributes = {slope},
                     .infer = graph::like_first,
                     .in_place = {{0, 0}}},
                    {{.name = "plain", .prepare = runtime::prepare<leaky, leaky_relu_grad>}});
  register_operator(
      {.name = "leaky_relu",
       .operands = {{"x"}},
       .results = {"y"},
       .attributes = {slope},
       .infer = graph::like_first,
       .gradient =
           graph::gradient_of_first([](graph::GradientContext& context, graph::ValueId gradient) {
             return context.builder().add1("leaky_relu_grad", {gradient, context.operand(0)},
                                           context.forward().attributes());
           }),
       .of_share = graph::rows_of_first<>},
      {{.name = "plain", .prepare = runtime::prepare<leaky, leaky_relu>}});
}

/// Its gradient is the same of the gradient. Without an `of_share` it is never given a part of a
/// batch.
void register_center() {
  register_operator({.name = "center",
                     .operands = {{"x"}},
                     .results = {"y"},
                     .infer = graph::like_first,
                     .gradient = graph::gradient_of_first(
                         [](graph::GradientContext& context, graph::ValueId gradient) {
                           return context.builder().add1("center", {gradient});
                         })},
                    {{.name = "plain", .prepare = [](const graph::OpView& op) {
                        return runtime::prepared<center>(op.operand(0).shape);
                      }}});
}

nn::Layer leaky_relu_layer(double slope) {
  return [slope](nn::ModelBuilder& model, graph::ValueId x) {
    model.begin("leaky_relu");
    return model.graph().add1("leaky_relu", {x}, {{"slope", slope}});
  };
}

nn::Layer center_layer() {
  return [](nn::ModelBuilder& model, graph::ValueId x) {
    model.begin("center");
    return model.graph().add1("center", {x});
  };
}

}  // namespace

int main() try {
  register_leaky_relu();
  register_center();
  const auto data = data::synthetic();
  const auto model = nn::sequential(nn::flatten(), center_layer(), nn::dense(64),
                                    leaky_relu_layer(0.1), nn::dense(10));

  runtime::Session session;
  train::Trainer trainer(session, model, data.shape(), {.batch = 32, .lanes = 4});
  std::cout << "lanes: " << trainer.lanes() << "; " << trainer.undivided() << '\n';
  trainer.fit(data.train, {.epochs = 3, .on_epoch = [](const train::EpochReport& report) {
                             std::cout << "epoch " << report.epoch << ": training accuracy "
                                       << report.train.accuracy << '\n';
                           }});
  std::cout << "test accuracy: " << trainer.evaluate(data.test).accuracy << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
