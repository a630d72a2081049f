// A network as a graph: build it, differentiate it, print it, and see which op waits for which.
//
//   image ─► dense ─► relu ─► dense ─► softmax_cross_entropy ─► loss
//              │                │              forward
//   ───────────┼────────────────┼──────────────────────────────────
//              ▼                ▼              backward, update
//           sgd(w1)          sgd(w2)     each as soon as its gradient is there
#include <arenite/graph/builder.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <iostream>

using namespace arenite;
using graph::StorageClass;

int main() {
  graph::Graph net;
  graph::Builder build(net, operators());

  const auto image = build.declare("image", DType::float32, {32, 784}, StorageClass::input);
  const auto labels = build.declare("labels", DType::int32, {32}, StorageClass::input);
  const auto w1 = build.declare("w1", DType::float32, {784, 64}, StorageClass::parameter);
  const auto w2 = build.declare("w2", DType::float32, {64, 10}, StorageClass::parameter);
  const auto rate = build.declare("rate", DType::float32, {1}, StorageClass::buffer);

  const auto hidden = build.add1("relu", {build.add1("dense", {image, w1})});
  const auto logits = build.add1("dense", {hidden, w2});
  const auto loss = build.add("softmax_cross_entropy", {logits, labels}).front();
  net.outputs = {loss};

  // Graph to graph: each operator's own rule appends the ops of its gradient. An update may follow
  // at once.
  const std::vector<graph::ValueId> weights{w1, w2};
  graph::add_gradients(build, {loss}, weights, [&](std::size_t i, graph::ValueId gradient) {
    build.context = {.phase = Phase::update};
    build.add("sgd", {weights[i], gradient, rate});
  });

  const std::string text = graph::print(net);
  std::cout << text << '\n';
  std::cout << "reads back equal: " << std::boolalpha
            << graph::equal(net, graph::parse(text, operators())) << "\n\n";

  const graph::Dependencies order = graph::dependencies(net);
  for (graph::OpId op : order.ops) {
    std::cout << graph::describe(net, op) << " waits for:";
    for (graph::OpId before : order.of(op)) std::cout << "  " << graph::describe(net, before);
    std::cout << '\n';
  }
}
